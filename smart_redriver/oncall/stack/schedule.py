"""The schedule that starts passes."""

from __future__ import annotations

from typing import Any

from smart_redriver.oncall.stack.session import Session

#: CloudFormation cuts the names that it makes, but not their beginning.
_NAME_KEPT = 20

ENABLED = "ENABLED"


def schedule_state(session: Session) -> str | None:
    """The state of the schedule that starts passes; None where there is none. Raises CallFailed and Refused."""
    arn = session.function_configuration["FunctionArn"]
    request: dict[str, Any] = {"NamePrefix": session.place.stack[:_NAME_KEPT]}
    while True:
        page = session.aws.client("scheduler").list_schedules(**request)
        for one in page["Schedules"]:
            if one["Target"]["Arn"] == arn:
                return str(one["State"])
        if "NextToken" not in page:
            return None
        request["NextToken"] = page["NextToken"]

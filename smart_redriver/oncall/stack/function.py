"""The deployed function, started by hand."""

from __future__ import annotations

import json
from typing import Any

from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.table import printable


def invoke(session: Session) -> dict[str, Any]:
    """Let the function make one pass; its report. Raises CallFailed and Refused."""
    if session.place.function is None:
        raise Refused(f"Stack {session.place.stack!r} names no function. Deploy it anew.")
    answer = session.aws.client("lambda").invoke(FunctionName=session.place.function, Payload=b"{}")
    payload = answer["Payload"].read()
    try:
        report = json.loads(payload)
    except ValueError:
        report = None
    if answer.get("FunctionError") or not isinstance(report, dict):
        raise Refused(
            f"The function failed: {printable(payload.decode(errors='replace'))[:300]}. `redrive logs` tells more; "
            "the letters are safe in the DLQ."
        )
    return report

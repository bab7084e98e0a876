"""IAM: batch calls need the permission of the single action; move tasks name queues by ARN."""

import json
import re
from typing import Any

from ministack.core import iam_actions

from .patching import wrap

_SQS_BATCH_ACTION = re.compile(r"^(sqs:\w+)Batch$")


def install() -> None:
    @wrap(iam_actions, "extract_iam_action")
    def action(extract: Any, service: str, *args: Any, **kwargs: Any) -> str | None:
        """`SendMessageBatch` is authorised as `sqs:SendMessage`, and so on."""
        found: str | None = extract(service, *args, **kwargs)
        return _SQS_BATCH_ACTION.sub(r"\1", found) if found else found

    @wrap(iam_actions, "extract_resource_arn")
    def resource(
        extract: Any,
        service: str,
        method: str,
        path: str,
        headers: Any,
        body: bytes,
        *args: Any,
        **kwargs: Any,
    ) -> str:
        """Move tasks are authorised on the queue in `SourceArn`: they carry no QueueUrl."""
        found: str = extract(service, method, path, headers, body, *args, **kwargs)
        if service == "sqs" and found == "*" and b'"SourceArn"' in body:
            return str(json.loads(body)["SourceArn"])
        return found

"""IAM: batch calls need the single action's permission, move tasks name queues by ARN, Lambda has more actions."""

import json
import re
from typing import Any

from ministack.core import iam_actions

from .patching import wrap

#: MiniStack takes unknown actions on a function for GetFunction or the like.
_EVENT_INVOKE_CONFIG = re.compile(r"/functions/[^/]+/event-invoke-config$")
_ON_EVENT_INVOKE_CONFIG = {
    "GET": "lambda:GetFunctionEventInvokeConfig",
    "PUT": "lambda:PutFunctionEventInvokeConfig",
    "POST": "lambda:UpdateFunctionEventInvokeConfig",
    "DELETE": "lambda:DeleteFunctionEventInvokeConfig",
}
_SQS_BATCH_ACTION = re.compile(r"^(sqs:\w+)Batch$")


def install() -> None:
    @wrap(iam_actions, "extract_iam_action")
    def action(
        extract: Any, service: str, method: str, path: str, *args: Any, **kwargs: Any
    ) -> str | None:
        """The action that authorises a call: `sqs:SendMessage` for `SendMessageBatch`, and so on."""
        if service == "lambda" and _EVENT_INVOKE_CONFIG.search(path):
            return _ON_EVENT_INVOKE_CONFIG.get(method)
        found: str | None = extract(service, method, path, *args, **kwargs)
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
        """The resource of a call. Move tasks are authorised on the queue in `SourceArn`: they carry no QueueUrl."""
        found: str = extract(service, method, path, headers, body, *args, **kwargs)
        if service == "sqs" and found == "*" and b'"SourceArn"' in body:
            return str(json.loads(body)["SourceArn"])
        return found

"""Message attributes as they stand in the parameters of a call that a schedule was to make. Pure.

What SQS and SNS refuse for its shape is found here, before anybody is asked: a refusal that a letter brings about by
itself must never be read as one of its target.
"""

from __future__ import annotations

import base64
import re

from redrive.core.letter import Attribute

#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
#: https://docs.aws.amazon.com/sns/latest/dg/sns-message-attributes.html
_NAME = re.compile(r"(?!(?i:aws|amazon)\.)(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)")
_TYPE = re.compile(r"(String|Number|Binary)(\.[^\ud800-\udfff]+)?")


def attributes_of(given: object) -> dict[str, Attribute]:
    """The attributes. Raises ValueError for what is none."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValueError("message attributes that are none")  # noqa: TRY004 - the letter's fault, not a caller's
    return {_name(name): _attribute(value) for name, value in given.items()}


def _name(given: str) -> str:
    if not _NAME.fullmatch(given):
        raise ValueError("a message attribute with a name that none may have")
    return given


def _attribute(given: object) -> Attribute:
    """An empty value is none: AWS refuses it."""
    fields = given if isinstance(given, dict) else {}
    kind, text, binary = (fields.get(one) for one in ("DataType", "StringValue", "BinaryValue"))
    named = _TYPE.fullmatch(kind) if isinstance(kind, str) else None
    if named and named[1] != "Binary" and isinstance(text, str) and text:
        return {"DataType": named[0], "StringValue": text}
    if named and named[1] == "Binary" and isinstance(binary, str) and binary:
        return {"DataType": named[0], "BinaryValue": base64.b64decode(binary, validate=True)}
    raise ValueError("a message attribute that is none")

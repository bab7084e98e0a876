"""Message attributes as one value: which are legal, how large they are, their digest, and how SQS keeps them.

Equal attributes are one object, however many messages carry them: most of a backlog of a million letters comes from one
producer, and computing all this again for each letter would cost the time and the memory.
"""

import hashlib
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property, lru_cache
from typing import Any

from fakes.boto_client import Fault

MessageAttributes = Mapping[str, Mapping[str, Any]]
_Key = tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]

MAX_ATTRIBUTES = 10  # [SQS Developer Guide, quotas-messages]
MAX_NUMBER_DIGITS = 38  # [SQS Developer Guide, sqs-message-metadata]

# XML 1.0 characters; anything else is InvalidMessageContents. [botocore SendMessage]
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = re.compile(r"(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)")
_RESERVED_NAME = re.compile(r"(aws|amazon)\.", re.IGNORECASE)
_DATA_TYPE = re.compile(r"(String|Number|Binary)(\..+)?", re.DOTALL)
_NUMBER = re.compile(r"([+-]?)0*(\d*?)(?:\.(\d*?)0*)?")


@dataclass(frozen=True)
class Attributes:
    """The attributes of a message as they were given. No one else has a reference to `given`."""

    given: MessageAttributes

    def check(self) -> None:
        """Refuse what SQS refuses."""
        if self._fault:
            raise self._fault

    @cached_property
    def kept(self) -> MessageAttributes:
        """The attributes as SQS stores them: a Number loses insignificant zeros.

        Source: SQS Developer Guide, sqs-message-metadata. So a Number need not come back as the same text, while every
        other value and every DataType does.
        """
        return {
            name: {**attribute, "StringValue": _plain_number(attribute["StringValue"])}
            if attribute["DataType"].startswith("Number")
            else attribute
            for name, attribute in self.given.items()
        }

    @cached_property
    def weight(self) -> int:
        """Bytes that they add to a message's size: name, type and value of each."""
        return sum(
            len(name.encode()) + len(attribute["DataType"].encode()) + len(_value(attribute))
            for name, attribute in self.given.items()
        )

    @cached_property
    def given_md5(self) -> str:
        """The digest in SendMessage's answer."""
        return attributes_md5(self.given)

    @cached_property
    def kept_md5(self) -> str:
        """The digest in ReceiveMessage's answer to a request for all attributes."""
        return attributes_md5(self.kept)

    @cached_property
    def _fault(self) -> Fault | None:
        try:
            if len(self.given) > MAX_ATTRIBUTES:
                count = f"Number of message attributes [{len(self.given)}]"
                raise invalid(f"{count} exceeds the allowed maximum [{MAX_ATTRIBUTES}].")
            for name, attribute in self.given.items():
                _check(name, attribute)
        except Fault as fault:
            return fault
        return None


def attributes_of(given: MessageAttributes | None) -> Attributes:
    """The value for attributes as a caller gives them."""
    if not given:
        return NONE
    return _interned(tuple((name, tuple(value.items())) for name, value in given.items()))


@lru_cache(10_000)
def _interned(key: _Key) -> Attributes:
    return Attributes({name: dict(value) for name, value in key})


NONE = Attributes({})


def invalid(reason: str) -> Fault:
    """The fault for most values that are out of range."""
    return Fault("InvalidParameterValue", reason)


def check_text(text: str) -> None:
    """Refuse characters that XML 1.0 does not allow."""
    if _FORBIDDEN.search(text):
        message = "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | ..."
        raise Fault("InvalidMessageContents", message)


def attributes_md5(attributes: MessageAttributes) -> str:
    """The digest that SQS returns for message attributes, over name, type and value in name order.

    Source: SQS Developer Guide, "Calculating the MD5 message digest for message attributes".
    """
    encoded = bytearray()
    for name in sorted(attributes):
        attribute = attributes[name]
        is_binary = attribute["DataType"].startswith("Binary")
        value = attribute["BinaryValue"] if is_binary else attribute["StringValue"].encode()
        for part in (name.encode(), attribute["DataType"].encode()):
            encoded += struct.pack("!I", len(part)) + part
        encoded += struct.pack("!BI", 2 if is_binary else 1, len(value)) + value
    return md5(bytes(encoded))


def md5(data: bytes) -> str:
    """SQS's digest of a body or of attributes, in hex."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _value(attribute: Mapping[str, Any]) -> bytes:
    value: bytes = attribute.get("BinaryValue") or attribute.get("StringValue", "").encode()
    return value


def _check(name: str, attribute: Mapping[str, Any]) -> None:
    if not _NAME.fullmatch(name) or _RESERVED_NAME.match(name):
        raise invalid(f"Message (user) attribute name '{name}' is invalid.")
    data_type = attribute["DataType"]
    matched = _DATA_TYPE.fullmatch(data_type)
    if not matched:
        raise invalid(f"The type of message (user) attribute '{name}' is invalid: '{data_type}'.")
    kind = matched[1]
    value = attribute.get("BinaryValue" if kind == "Binary" else "StringValue")
    if not value:
        lacks = f"must contain a non-empty value of type '{kind}'"
        raise invalid(f"Message (user) attribute '{name}' {lacks}.")
    if kind != "Binary":
        check_text(value)
    if kind == "Number" and not _is_number(value):
        raise invalid(f"Can't cast the value of message (user) attribute '{name}' to a number.")


def _is_number(text: str) -> bool:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    return number.is_finite() and len(number.as_tuple().digits) <= MAX_NUMBER_DIGITS


def _plain_number(text: str) -> str:
    matched = _NUMBER.fullmatch(text)
    if not matched:
        return text  # an exponent: how SQS writes that back is not documented
    sign, whole, fraction = matched[1], matched[2] or "0", matched[3] or ""
    number = f"{whole}.{fraction}" if fraction else whole
    return f"-{number}" if sign == "-" and number != "0" else number

"""What letters carry."""

from typing import Any

from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, RedriveMetadata

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "payload": {"DataType": "String.json", "StringValue": '{"a": 1}'},
    "image": {"DataType": "Binary.gif", "BinaryValue": b"GIF89a\x00\xff"},
    "count": {"DataType": "Number", "StringValue": "12"},
}


def without_metadata(message: dict[str, Any]) -> dict[str, Any]:
    """A message's attributes as its sender wrote them."""
    return {
        name: {kind: value for kind, value in attribute.items() if not kind.endswith("ListValues")}
        for name, attribute in message.get("MessageAttributes", {}).items()
        if name != METADATA_ATTRIBUTE
    }


def metadata_of(message: dict[str, Any]) -> RedriveMetadata:
    return RedriveMetadata.decode(message["MessageAttributes"][METADATA_ATTRIBUTE]["StringValue"])

"""What letters carry."""

from typing import Any

from smart_redriver.engine.messages.letter import TRAIL_ATTRIBUTE, Trail

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "payload": {"DataType": "String.json", "StringValue": '{"a": 1}'},
    "image": {"DataType": "Binary.gif", "BinaryValue": b"GIF89a\x00\xff"},
    "count": {"DataType": "Number", "StringValue": "12"},
}


def without_trail(message: dict[str, Any]) -> dict[str, Any]:
    """A message's attributes as its sender wrote them."""
    return {
        name: {kind: value for kind, value in attribute.items() if not kind.endswith("ListValues")}
        for name, attribute in message.get("MessageAttributes", {}).items()
        if name != TRAIL_ATTRIBUTE
    }


def trail_of(message: dict[str, Any]) -> Trail:
    return Trail.decode(message["MessageAttributes"][TRAIL_ATTRIBUTE]["StringValue"])

"""One table of the fake: its items by key, what readers may see of them, and in which order."""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fakes.dynamodb_tokens import Placeholders, Tokens
from fakes.dynamodb_values import (
    MAX_ITEM_BYTES,
    Item,
    Value,
    copied,
    item_bytes,
    stored,
    validation,
)

Key = str | bytes  # the content of the partition key; its type is the table's
MAX_PAGE_BYTES = 1024 * 1024  # [botocore Scan]
_NO_MATCH = "The provided key element does not match the schema"


@dataclass(frozen=True, slots=True)
class Version:
    """What a write left behind, and what an eventually consistent read may still see instead."""

    item: Item | None
    before: Item | None
    written_at: float


class Table:
    """Items by partition key. A deleted item leaves a version while its absence may be unseen."""

    def __init__(self, key_name: str, key_type: str, ttl_lag_seconds: float) -> None:
        self.key_name = key_name
        self.ttl_name: str | None = None
        self._key_type = key_type
        self._ttl_lag_seconds = ttl_lag_seconds
        self._versions: dict[Key, Version] = {}
        self._order: list[Key] | None = None  # keys in the order of a scan, until one is added

    def key(self, given: Mapping[str, Mapping[str, Any]]) -> Key:
        """The key named by a `Key` parameter, which has nothing else in it."""
        if set(given) != {self.key_name}:
            raise validation(_NO_MATCH)
        return self.key_of(given)

    def key_of(self, item: Mapping[str, Mapping[str, Any]]) -> Key:
        """The key of a whole item."""
        value = stored(item.get(self.key_name, {"NULL": True}))
        if self._key_type not in value:
            raise validation(_NO_MATCH)
        key: Key = value[self._key_type]
        if not key:
            raise validation("One or more parameter values are not valid: empty key")
        return key

    def key_of_write(self, request: Mapping[str, Any]) -> Key:
        """The key that an entry of BatchWriteItem writes to."""
        if "PutRequest" in request:
            return self.key_of(request["PutRequest"]["Item"])
        return self.key(request["DeleteRequest"]["Key"])

    def key_in(self, expression: str, placeholders: Placeholders) -> Key:
        """The key in a KeyConditionExpression `key = :value`."""
        tokens = Tokens(expression, placeholders)
        path = tokens.path()
        tokens.expect("=")
        value = placeholders.value(tokens.take())
        if path != (self.key_name,) or tokens.next:
            raise validation("Query condition missed key schema element")
        return self.key_of({self.key_name: value})

    def read(self, key: Key, now: float, lag: float) -> Item | None:
        """A copy of the item as somebody sees it whose view is `lag` seconds old."""
        version = self._versions.get(key)
        if version is None:
            return None
        item = version.before if now - version.written_at < lag else version.item
        if item is None or self._is_swept(item, now):
            return None
        return copied(item)

    def write(self, item: Item, now: float) -> None:
        """Store an item the caller gives away."""
        if item_bytes(item) > MAX_ITEM_BYTES:
            raise validation("Item size has exceeded the maximum allowed size")
        key = self.key_of(item)
        if key not in self._versions:
            self._order = None
        self._versions[key] = Version(item, self.read(key, now, 0.0), now)

    def remove(self, key: Key, now: float) -> None:
        """Delete an item, if there is one."""
        old = self.read(key, now, 0.0)
        if old is not None:
            self._versions[key] = Version(None, old, now)

    def page(
        self, after: Key | None, limit: int | None, now: float, lag: float
    ) -> tuple[list[Item], dict[str, Value] | None]:
        """Items following a key, up to `limit` or 1 MB, and the last key if there may be more."""
        if self._order is None:
            self._versions = {
                key: version
                for key, version in self._versions.items()
                if version.item is not None or now - version.written_at < lag
            }
            self._order = sorted(self._versions)
        start = 0 if after is None else bisect_right(self._order, after)
        items: list[Item] = []
        size = 0
        for key in self._order[start:]:
            item = self.read(key, now, lag)
            if item is None:
                continue
            items.append(item)
            size += item_bytes(item)
            if len(items) == limit or size > MAX_PAGE_BYTES:
                return items, {self.key_name: {self._key_type: key}}
        return items, None

    def projection(
        self, expression: str | None, placeholders: Placeholders
    ) -> Callable[[Item], Item]:
        """A ProjectionExpression of whole attributes as a function of the item."""
        if expression is None:
            return lambda item: item
        tokens = Tokens(expression, placeholders)
        names = {str(tokens.path()[0])}
        while tokens.takes(","):
            names.add(str(tokens.path()[0]))
        return lambda item: {name: value for name, value in item.items() if name in names}

    def _is_swept(self, item: Item, now: float) -> bool:
        expires = item.get(self.ttl_name, {}).get("N") if self.ttl_name else None
        return expires is not None and float(expires) + self._ttl_lag_seconds <= now

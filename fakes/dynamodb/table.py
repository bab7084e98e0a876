"""One table of the fake: its items by key, what readers may see of them, and in which order."""

import marshal
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fakes.dynamodb.values import (
    MAX_ITEM_BYTES,
    Item,
    Value,
    item_bytes,
    stored,
    validation,
)

Key = str | bytes  # the content of the partition key; its type is the table's
Packed = bytes  # an item that nobody can change, in a tenth of the memory; reading makes a copy
MAX_PAGE_BYTES = 1024 * 1024  # [botocore Scan]
_WITHOUT_REFERENCES = 2  # the marshal version that writes a text as often as it occurs
_NO_MATCH = "The provided key element does not match the schema"


@dataclass(frozen=True, slots=True)
class Version:
    """The item that a write left behind, and the one that an eventually consistent read may still see instead."""

    item: Packed | None
    before: Packed | None
    written_at: float


class Table:
    """Items by partition key. A deleted item leaves a version as long as readers may still see the item."""

    def __init__(self, key_name: str, key_type: str) -> None:
        self.key_name = key_name
        self._key_type = key_type
        self._versions: dict[Key, Version] = {}
        self._order: list[Key] | None = None  # keys in the order of a scan, until one is added

    def key(self, given: Mapping[str, Mapping[str, Any]]) -> Key:
        """The key in a `Key` parameter, which may contain nothing else."""
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

    def read(self, key: Key, now: float, lag: float) -> Item | None:
        """The item in a view that is `lag` seconds old, as a copy for the caller."""
        packed = self._seen(key, now, lag)
        return None if packed is None else marshal.loads(packed)  # noqa: S302 - what was dumped below

    def write(self, item: Item, now: float) -> None:
        """Store an item."""
        packed = marshal.dumps(item, _WITHOUT_REFERENCES)
        # Packed, an item is never smaller than in DynamoDB's count, and it is rarely near the limit.
        if len(packed) > MAX_ITEM_BYTES and item_bytes(item) > MAX_ITEM_BYTES:
            raise validation("Item size has exceeded the maximum allowed size")
        key = self.key_of(item)
        if key not in self._versions:
            self._order = None
        self._versions[key] = Version(packed, self._now_there(key), now)

    def remove(self, key: Key, now: float) -> None:
        """Delete an item, if there is one."""
        old = self._now_there(key)
        if old is not None:
            self._versions[key] = Version(None, old, now)

    def page(
        self, after: Key | None, now: float, lag: float
    ) -> tuple[list[Item], dict[str, Value] | None]:
        """Items following a key, up to 1 MB, and the last key if there may be more."""
        if self._order is None:
            self._versions = {
                key: version
                for key, version in self._versions.items()
                if version.item is not None or now - version.written_at < lag
            }
            self._order = sorted(self._versions)
        start = 0 if after is None else bisect_right(self._order, after)
        seen: list[Packed] = []
        size = 0
        for key in self._order[start:]:
            packed = self._seen(key, now, lag)
            if packed is None:
                continue
            seen.append(packed)
            size += len(packed)
            # Packed, an item is never smaller than in DynamoDB's count, so items are counted only if the size may
            # matter.
            if size > MAX_PAGE_BYTES and (size := sum(map(_counted, seen))) > MAX_PAGE_BYTES:
                return _unpacked(seen), {self.key_name: {self._key_type: key}}
        return _unpacked(seen), None

    def _seen(self, key: Key, now: float, lag: float) -> Packed | None:
        version = self._versions.get(key)
        if version is None:
            return None
        return version.before if now - version.written_at < lag else version.item

    def _now_there(self, key: Key) -> Packed | None:
        version = self._versions.get(key)
        return version.item if version else None


@lru_cache(20_000)
def _counted(packed: Packed) -> int:
    """An item's size as DynamoDB counts it. Cached, because scans of one table meet most items again and again."""
    return item_bytes(marshal.loads(packed))  # noqa: S302 - what `write` dumped


def _unpacked(some: list[Packed]) -> list[Item]:
    return [marshal.loads(packed) for packed in some]  # noqa: S302 - what `write` dumped

"""How values are written in DynamoDB, by their types."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest

from smart_redriver.engine.aws.items import Codec, Record

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)


class Colour(str, Enum):
    RED = "red"


@dataclass(frozen=True, kw_only=True)
class Part:
    at: datetime
    share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Whole:
    name: str
    count: int
    is_open: bool = False
    colour: Colour = Colour.RED
    seen: tuple[datetime, ...] = ()
    parts: tuple[Part, ...] = ()
    best: Part | None = None
    until: datetime | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)


RECORD = Record(Whole, names={"until": "UntilTimestamp"})


def test_every_type_is_written_as_people_read_it() -> None:
    whole = Whole(
        name="a",
        count=3,
        is_open=True,
        seen=(NOON,),
        parts=(Part(at=NOON, share=0.25),),
        best=Part(at=NOON, share=100),
        until=NOON,
    )

    item = RECORD.encode(whole)

    noon = {"S": "2026-01-10T12:00:00Z"}
    assert item == {
        "Name": {"S": "a"},
        "Count": {"N": "3"},
        "IsOpen": {"BOOL": True},
        "Colour": {"S": "red"},
        "Seen": {"L": [noon]},
        "Parts": {"L": [{"M": {"At": noon, "Share": {"N": "0.25"}}}]},
        "Best": {"M": {"At": noon, "Share": {"N": "100"}}},
        "UntilTimestamp": noon,
        "Notes": {"L": []},
    }
    assert RECORD.decode(item) == whole


@pytest.mark.parametrize(("share", "written"), [(0.0, "0"), (1e-9, "0"), (1 / 3, "0.333333")])
def test_a_fraction_has_no_more_digits_than_dynamodb_and_people_bear(
    share: float, written: str
) -> None:
    assert Record(Part).encode(Part(at=NOON, share=share))["Share"] == {"N": written}


def test_what_an_item_lacks_or_has_as_null_takes_the_default() -> None:
    item: dict[str, Any] = {"Name": {"S": "a"}, "Count": {"N": "3"}, "Colour": {"NULL": True}}

    assert RECORD.decode(item) == Whole(name="a", count=3)


def test_a_moment_that_a_person_wrote_without_a_zone_is_utc() -> None:
    """Compared with one that has a zone it ended every pass, and letters stayed until they expired."""
    item = {"Name": {"S": "a"}, "Count": {"N": "3"}, "UntilTimestamp": {"S": "2026-01-10T12:00:00"}}

    assert RECORD.decode(item) == Whole(name="a", count=3, until=NOON)


def test_what_an_item_has_too_much_is_passed_over() -> None:
    item: dict[str, Any] = {"Name": {"S": "a"}, "Count": {"N": "3"}, "Weather": {"S": "fine"}}

    assert RECORD.decode(item) == Whole(name="a", count=3)


@pytest.mark.parametrize("name", ["Name", "Count"])
def test_an_item_without_what_has_no_default_is_refused_by_the_attributes_name(name: str) -> None:
    item = {"Name": {"S": "a"}, "Count": {"N": "3"}}
    del item[name]

    with pytest.raises(KeyError, match=name):
        RECORD.decode(item)


def test_a_field_that_every_version_wrote_is_needed_although_it_has_a_default() -> None:
    record = Record(Part, needed={"share"})

    with pytest.raises(KeyError, match="Share"):
        record.decode({"At": {"S": "2026-01-10T12:00:00Z"}})


def test_what_stands_elsewhere_is_not_written_and_given_on_reading() -> None:
    record = Record(Whole, left_out={"name"})
    item = record.encode(Whole(name="a", count=3))

    assert "Name" not in item
    assert record.decode(item, name="b") == Whole(name="b", count=3)


def test_a_type_may_be_written_in_a_way_of_its_own_wherever_it_occurs() -> None:
    terse = Codec(
        lambda part: {"S": part.at.isoformat()},
        lambda value: Part(at=datetime.fromisoformat(value["S"])),
    )
    whole = Whole(name="a", count=1, parts=(Part(at=NOON),), best=Part(at=NOON))
    record = Record(Whole, codecs={Part: terse})

    item = record.encode(whole)

    assert item["Parts"] == {"L": [{"S": NOON.isoformat()}]}
    assert record.decode(item) == whole


def test_a_field_of_a_type_that_no_item_can_hold_is_found_at_import_and_not_in_a_pass() -> None:
    @dataclass
    class Odd:
        thing: complex

    with pytest.raises(TypeError, match="complex"):
        Record(Odd)

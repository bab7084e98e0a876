"""Causes: errors that an engineer would call by one name have one, and others have another."""

import json
from collections import Counter
from collections.abc import Sequence
from math import comb
from pathlib import Path

import pytest

from smart_redriver.consumer.failure import MAX_CAUSE, Frame, cause_of, first_line_of, normalised

FILE = Path(__file__).parents[2] / "packages" / "conformance" / "errors.json"
ERRORS = json.loads(FILE.read_text(encoding="utf-8"))["errors"]


def named(error: dict) -> str:
    frames = [Frame(**one) for one in error["frames"]]
    said = first_line_of(error["message"], "")
    return cause_of(error["error_class"], said, frames, error["language"])


def rand_index(one: Sequence[str], other: Sequence[str]) -> float:
    """How far two groupings agree, 1 for the same and about 0 for chance.

    L. Hubert and P. Arabie, Comparing partitions, Journal of Classification 2, 1985.
    """
    both = sum(comb(n, 2) for n in Counter(zip(one, other, strict=True)).values())
    first = sum(comb(n, 2) for n in Counter(one).values())
    second = sum(comb(n, 2) for n in Counter(other).values())
    expected = first * second / comb(len(one), 2)
    return (both - expected) / ((first + second) / 2 - expected)


def test_the_index_knows_a_good_grouping_from_a_bad_one() -> None:
    assert rand_index("aabbcc", "xxyyzz") == 1
    assert rand_index("aabbcc", "xyxyxy") < 0.1


def test_errors_are_grouped_as_engineers_group_them() -> None:
    labels = [one["label"] for one in ERRORS]

    assert len(ERRORS) == 300
    assert {one["language"] for one in ERRORS} == {"python", "javascript", "java"}
    assert rand_index(labels, [named(one) for one in ERRORS]) >= 0.95


def test_a_cause_is_short_enough_for_a_circuit() -> None:
    assert max(len(named(one)) for one in ERRORS) <= MAX_CAUSE


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("order 4711 not found", "order * not found"),
        ("order ORD-4711 not found", "order * not found"),
        ("no such field: 'total'", "no such field: *"),
        ("items [1, 2, 3] are missing", "items [*] are missing"),
        ("GET https://a.example/x/1 failed", "GET * failed"),
        ("HTTP 503 from payments", "HTTP 503 from payments"),
        ("mail to ann@example.com bounced", "mail to * bounced"),
        ("can't read /var/task/data/x.csv", "can't read *"),
        ("", ""),
    ],
)
def test_what_differs_from_one_message_to_the_next_is_left_out(message: str, name: str) -> None:
    assert normalised(message) == name


def test_a_cause_names_the_consumers_own_code_and_no_line_of_it() -> None:
    frames = [
        Frame("/opt/python/lib/python3.13/site-packages/requests/models.py", "raise_for_status"),
        Frame("/var/task/billing/charge.py", "Charger.charge"),
    ]

    cause = cause_of("requests.exceptions.HTTPError", "503 Server Error", frames)

    assert cause == "HTTPError in charge.Charger.charge: * Server Error"

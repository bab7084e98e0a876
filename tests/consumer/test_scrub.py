"""What is taken out of a text before it leaves the consumer, and what stays."""

import json
from pathlib import Path
from typing import Any, SupportsIndex

import pytest

from smart_redriver.consumer.failure import failure_of, first_line_of
from smart_redriver.consumer.scrub import without_body, without_secrets

FILE = Path(__file__).parents[2] / "packages" / "conformance" / "secrets.json"
TEXTS: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
#: Keeps scanners from taking the file for a leak.
SEAM = "\N{BROKEN BAR}"
#: Characters of a secret in a row that would be worth having.
PIECE = 8


def leaks(text: str, secret: str) -> bool:
    pieces = [secret[at : at + PIECE] for at in range(max(1, len(secret) - PIECE + 1))]
    return any(piece in text for piece in pieces)


def test_of_all_secrets_in_the_file_none_is_told() -> None:
    told = []
    for one in TEXTS["secrets"]:
        text, secret = (one[name].replace(SEAM, "") for name in ("text", "secret"))
        assert leaks(text, secret)
        if leaks(without_secrets(text), secret):
            told.append(text)

    assert len(TEXTS["secrets"]) >= 200
    assert told == []


def test_of_all_harmless_texts_in_the_file_none_is_changed() -> None:
    changed = [text for text in TEXTS["harmless"] if without_secrets(text) != text]

    assert len(TEXTS["harmless"]) >= 200
    assert changed == []


def test_a_secret_is_gone_from_first_line_cause_and_traceback() -> None:
    key = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
    error = ValueError(f"charge with {key} failed")
    error.__cause__ = KeyError(f"password={key}")

    failure = failure_of(error, "a body")

    assert failure.first_line == "charge with [secret] failed"
    assert key not in failure.traceback + failure.cause


def test_a_line_of_code_is_no_secret_and_a_literal_in_it_is() -> None:
    assert without_secrets("token = read_token(settings)", is_code=True) == (
        "token = read_token(settings)"
    )
    assert (
        without_secrets('login(password="hunter2")', is_code=True) == 'login(password="[secret]")'
    )


@pytest.mark.parametrize("text", [one for one in TEXTS["harmless"] if not set(one) & set("\"'`\\")])
def test_a_harmless_text_in_a_line_of_code_is_not_changed(text: str) -> None:
    line = f'raise Failed("{text}", token)'

    assert without_secrets(line, is_code=True) == line


def test_a_secret_at_the_end_of_the_first_line_is_not_cut_into_one_that_nobody_knows() -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8"
    error = ValueError("x" * 290 + " " + key)

    assert key[:10] not in failure_of(error, "a body").first_line


@pytest.mark.parametrize(
    ("text", "body", "told"),
    [
        ("payment failed", "failed", "payment failed"),
        ("no handler for 'failed'", "failed", "no handler for '[body]'"),
        ("bad order 12345678", "12345678", "bad order [body]"),
        ("invalid literal for int() with base 10: '12a'", '{"n": "12a"}',
         "invalid literal for int() with base 10: '[body]'"),
        ("'total'", '{"total": 5}', "'total'"),
        ("no such name: Ann Miller", '{"name": "Ann Miller"}', "no such name: [body]"),
        ("mail to ann@example.com bounced", '{"to": ["ann@example.com"]}', "mail to [body] bounced"),
        ("order 4711998 unknown", '{"id": 4711998}', "order [body] unknown"),
        ("order 47119981 unknown", '{"id": 4711998}', "order 47119981 unknown"),
        ("no handler for OrderPlaced", '{"type": "OrderPlaced"}', "no handler for OrderPlaced"),
        ("cut: Dear Ann, your order of last week is late", "Hi!\nDear Ann, your order of last week is late. Bye",
         "cut: [body]"),
        ("can't parse 'x1y'", "a x1y b", "can't parse '[body]'"),
        ("can't parse 'x1'", "ax1y", "can't parse 'x1'"),
        ("a body", "", "a body"),
    ],
)  # fmt: skip
def test_parts_of_a_body_are_not_told_and_words_that_it_has_by_chance_are(
    text: str, body: str, told: str
) -> None:
    assert without_body(text, body) == told


class Counted(str):
    """Counts its characters that are looked at, but for those in one walk of a pattern."""

    __slots__ = ("looked_at",)

    def __init__(self, _text: str) -> None:
        self.looked_at = 0

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        part = super().__getitem__(key)
        self.looked_at += len(part)
        return part

    def find(self, *args: Any) -> int:
        self.looked_at += len(self)
        return super().find(*args)

    def index(self, *_args: Any) -> int:
        raise AssertionError

    def __contains__(self, _part: object) -> bool:
        raise AssertionError


def errors_of_items(count: int, body: str = "") -> str:
    """A message such as pydantic's, that quotes a value of each item."""
    lines = (
        f"items.{at}.price\n  not a number [input_value='{at}.5 EUR']\n" for at in range(count)
    )
    return f"{count} errors in 'order {body}'\n" + "".join(lines)


ITEMS = "".join(f'{{"id": {at}, "price": "{at}.5 EUR"}}, ' for at in range(1_000))


@pytest.mark.parametrize("body", [ITEMS, "a" * 20_000, "ab c" * 5_000, "'a' " * 5_000])
@pytest.mark.parametrize(
    "message", [errors_of_items(5_000), "a" * 40_000, "ab" * 20_000, "'aa' " * 8_000, "b" * 40_000]
)
def test_a_body_is_looked_at_a_few_times_however_long_the_message_is(
    message: str, body: str
) -> None:
    """A search for each part of the message took minutes for a body of a megabyte."""
    once, again = Counted(body), Counted(body)

    first_line_of(message, once)
    first_line_of(message * 3, again)

    assert 0 < once.looked_at <= 8 * len(body)
    assert again.looked_at == once.looked_at


MIB = 1_048_576
NUMBERS = "".join(f"{at}." for at in range(8_000))


@pytest.mark.parametrize(
    ("message", "body", "told"),
    [
        ("ab" * (MIB // 2), "a" * MIB, "ab" * 150),
        ("a" * MIB, "b" + "a" * (MIB - 1_000), "[body]"),
        ("a" * MIB, "a" * (MIB - 1_000) + "b", "[body]"),
        ("'aa' " * (MIB // 5), "b" * MIB, "'aa' " * 60),
        ("'aa' " * (MIB // 5), "aa " * (MIB // 3), "'[body]' " * 33 + "'[b"),
        ("bad: " + "x y " * (MIB // 4) + "!", "x y " * (MIB // 4), "bad: [body]!"),
        (errors_of_items(10_000, "7"), ITEMS * 30, "10000 errors in 'order 7'"),
        ("no 'order' 4711", "a b" + " " * MIB + "c d", "no 'order' 4711"),
        (f"cut: {NUMBERS[5:-5]} end", NUMBERS, "cut: [body]"),
        (f"cut: {NUMBERS[:7_980]}# {NUMBERS[9_000:9_500]}", NUMBERS, "cut: [body]"),
    ],
)  # fmt: skip
def test_what_is_told_of_long_messages_and_long_bodies(message: str, body: str, told: str) -> None:
    assert first_line_of(message, body) == told.rstrip()

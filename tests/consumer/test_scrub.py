"""What is taken out of a text before it leaves the consumer, and what stays."""

import json
from pathlib import Path
from typing import Any

import pytest

from smart_redriver.consumer.failure import failure_of
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

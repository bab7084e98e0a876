"""The documented schema: what the kit writes is valid, what is valid is understood,
and the page's examples are both.
"""

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from smart_redriver.consumer import PermanentError
from smart_redriver.consumer.report import reports
from smart_redriver.engine.reports import outcomes as core
from smart_redriver.engine.reports.outcomes import Result, parse_outcomes
from tests.consumer.scene import CONSUMER, QUEUE, Scene, some_metadata

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "consumer.md").read_text()
SCHEMA = json.loads(
    files("smart_redriver.consumer").joinpath("outcomes.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = Draft202012Validator(SCHEMA)
OUTCOME = SCHEMA["$defs"]["outcome"]


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", DOCS, re.DOTALL)
    assert found
    return found[1]


def is_valid(body: str) -> bool:
    return VALIDATOR.is_valid(json.loads(body))


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_the_schema_has_the_fields_and_limits_of_the_reader() -> None:
    limits = {name: rule.get("maxLength") for name, rule in OUTCOME["properties"].items()}

    assert set(limits) == set(core.DeliveryOutcome.__dataclass_fields__) - {"consumer"}
    assert set(SCHEMA["properties"]["consumer"]["properties"]) == set(
        core.Consumer.__dataclass_fields__
    )
    assert limits["error_class"] == core.MAX_ERROR_CLASS
    assert limits["first_line"] == core.MAX_FIRST_LINE
    assert limits["cause"] == core.MAX_CAUSE
    assert OUTCOME["properties"]["retry_after"]["maximum"] == core.MAX_RETRY_AFTER
    assert limits["traceback"] == core.MAX_TRACEBACK
    assert SCHEMA["$defs"]["name"]["maxLength"] == core.MAX_NAME
    assert SCHEMA["properties"]["outcomes"]["maxItems"] == core.MAX_OUTCOMES
    assert SCHEMA["properties"]["version"]["const"] == core.VERSION
    assert OUTCOME["properties"]["result"]["enum"] == [one.value for one in Result]


def test_what_the_kit_reports_is_valid(scene: Scene) -> None:
    errors: list[Exception | None] = [
        None,
        OSError("down"),
        ValueError("größe\x1b[2J\n😀" * 500),
        PermanentError(),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "odd"),
    ]
    with scene.reporter().batch() as batch:
        for error in errors:
            for metadata in (None, some_metadata()):
                message = scene.message("a body", metadata=metadata)
                if error:
                    batch.failed(message, error, QUEUE)
                else:
                    batch.succeeded(message, QUEUE)

    [body] = scene.bodies()
    assert is_valid(body), [error.message for error in VALIDATOR.iter_errors(json.loads(body))]
    assert len(scene.outcomes()) == 9


IDS = st.from_regex(r"[A-Za-z0-9_-]{1,100}", fullmatch=True)
NUMBERS = st.integers(0, 10**12)


@st.composite
def written_outcomes(draw: st.DrawFn) -> dict[str, Any]:
    """Outcomes as anybody could write them by the schema."""
    result = draw(st.sampled_from(["succeeded", "failed", "permanent"]))
    written: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {"queue": IDS, "message_id": IDS},
            optional={
                "original_id": IDS,
                "receive_count": NUMBERS | st.just(2.0),
                "error_class": st.text(max_size=200),
                "first_line": st.text(max_size=300),
                "traceback": st.text(max_size=500),
                "permanent": st.booleans(),
                "interrupted": st.booleans(),
                "retry_after": st.integers(0, 43_200),
                "cause": st.text(max_size=100),
            },
        )
    )
    if draw(st.booleans()):
        written |= {"batch": draw(NUMBERS), "generation": draw(NUMBERS)}
    if result == "permanent":
        written["parked_id"] = draw(IDS)
    return written | {"result": result}


@given(st.lists(written_outcomes(), min_size=1, max_size=3))
def test_what_is_valid_is_understood(written: list[dict[str, Any]]) -> None:
    report = {"version": 1, "outcomes": written}
    if not VALIDATOR.is_valid(report):  # a text of more than one line, where there is one
        assert any("\n" in one.get("first_line", "") + one.get("cause", "") for one in written)

    parsed = parse_outcomes(json.dumps(report))

    assert parsed.faults == {}
    assert [one.message_id for one in parsed.outcomes] == [one["message_id"] for one in written]
    assert [one.result.value for one in parsed.outcomes] == [one["result"] for one in written]


@pytest.mark.parametrize(
    "change",
    [
        {"message_id": "no id"},
        {"result": "lost"},
        {"batch": 1},
        {"generation": 1},
        {"parked_id": "p"},
        {"result": "permanent"},
        {"receive_count": -1},
        {"body": "a body"},
        {"first_line": "one\ntwo"},
    ],
    ids=str,
)
def test_what_is_not_meant_is_not_valid(change: dict[str, Any]) -> None:
    [body] = reports(CONSUMER, [{"queue": QUEUE, "message_id": "m", "result": "failed"}])
    good = json.loads(body)
    assert VALIDATOR.is_valid(good)

    good["outcomes"][0] |= change

    assert not VALIDATOR.is_valid(good)


def test_the_documented_report_is_valid_and_understood() -> None:
    parsed = parse_outcomes(block("json"))

    assert is_valid(block("json"))
    assert parsed.faults == {}
    assert [(one.batch, one.error_class) for one in parsed.outcomes] == [
        (12, "PaymentDeclined"),
        (None, "TypeError"),
    ]


def test_the_page_names_the_fields_of_the_metadata_that_a_report_repeats() -> None:
    metadata = some_metadata()
    written = json.loads(metadata.encode())

    named = re.search(
        r"`(batch)`, `generation` \(its `(\w+)`\) and `original_id` \(`(\w+)`\)", DOCS
    )

    assert named
    assert [written[one] for one in named.groups()] == [
        metadata.batch,
        metadata.generation,
        metadata.original_id,
    ]

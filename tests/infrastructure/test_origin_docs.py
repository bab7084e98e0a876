"""What docs/origins.md and its example show can be deployed, and its table names what is served."""

import re
import tomllib

import pytest

from smart_redriver.engine.config.targets import SERVED, Origin, TargetKind
from stacks.settings import parse_context
from tests.infrastructure.app_process import ROOT

PAGE = (ROOT / "docs" / "origins.md").read_text()
EXAMPLE = (ROOT / "examples" / "origins.toml").read_text()
WORDS = {
    TargetKind.QUEUE: "a queue",
    TargetKind.FUNCTION: "function",
    TargetKind.DELIVERY_STREAM: "delivery stream",
    TargetKind.STATE_MACHINE: "state machine",
    TargetKind.TOPIC: "topic",
    TargetKind.WEB: "HTTP endpoint",
}


def test_the_entry_of_the_page_is_read() -> None:
    [block] = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

    [queue] = parse_context({"queues": tomllib.loads(block)["queues"]}).queues

    assert queue.origin_config.origin is Origin.SNS


def test_the_example_of_a_list_is_read_and_has_an_entry_of_each_origin() -> None:
    queues = parse_context({"queues": tomllib.loads(EXAMPLE)["queues"]}).queues

    assert {one.origin_config.origin for one in queues} == {one for one in Origin if SERVED[one]}
    assert {one.kind for queue in queues for one in queue.origin_config.targets} == set(TargetKind)


@pytest.mark.parametrize("origin", [Origin.SNS, Origin.LAMBDA, Origin.EVENTBRIDGE])
def test_the_table_names_each_target_that_an_origin_serves_and_no_other(origin: Origin) -> None:
    [row] = re.findall(rf"^\| `{origin.value}`[^|]*\|([^|]*)\|", PAGE, re.MULTILINE)

    assert {kind for kind, words in WORDS.items() if words in row} == SERVED[origin]
    assert SERVED[Origin.SCHEDULER] == SERVED[Origin.EVENTBRIDGE]

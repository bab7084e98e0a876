"""A mix is what verdicts show: many messages fail while others succeed, so that a kind of them may be broken."""

from datetime import datetime, timedelta

import pytest

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.evidence import Evidence, Live
from smart_redriver.engine.model.judging import judge
from smart_redriver.engine.model.permit import MIX_LASTS, is_mixed
from smart_redriver.engine.model.verdict import LIVE_PATIENCE
from tests.unit.examples import NOW, a_batch, a_circuit, ago
from tests.unit.judging import SETTINGS, SILENT, WELL, beside, shown

LASTS = MIX_LASTS * timedelta(seconds=SETTINGS.last_chance_seconds)
SENT = a_batch().sent_at
MIXED = shown(succeeded=2, failed=2)
SUSPECTS_ALONE = shown(suspects_failed=4)


def after(evidence: Evidence, mixed_at: datetime | None = None) -> Circuit:
    """The circuit after a verdict on four letters of which this is known."""
    batch = a_batch(suspects=evidence.suspects_failed, last_try_at=NOW - LIVE_PATIENCE)
    circuit = a_circuit(pending=(batch,), mixed_at=mixed_at)
    circuit, (ruling,) = judge(
        circuit, {7: evidence}, SETTINGS, NOW, visibility_timeout=timedelta(seconds=30), roll=0.5
    )
    assert ruling.judgement.verdict is not None
    return circuit


def test_a_verdict_remembers_when_it_showed_a_mix() -> None:
    assert after(MIXED).mixed_at == NOW


def test_a_success_of_all_shows_none_and_leaves_the_one_before_to_run_out() -> None:
    assert after(shown(succeeded=4)).mixed_at is None
    assert after(shown(succeeded=4), ago(minutes=30)).mixed_at == ago(minutes=30)


@pytest.mark.parametrize(
    ("shown_at", "holds_on"),
    [(SENT - LASTS, True), (SENT - LASTS - timedelta(seconds=1), False), (None, False)],
)
def test_on_a_quiet_queue_it_holds_on_while_suspects_alone_are_tried(
    shown_at: datetime | None, holds_on: bool
) -> None:
    assert after(SUSPECTS_ALONE, shown_at).mixed_at == (NOW if holds_on else shown_at)


@pytest.mark.parametrize("live", [SILENT, WELL], ids=["silent", "well"])
def test_beside_live_messages_it_does_not(live: Live) -> None:
    shown_at = ago(minutes=30)

    assert after(beside(live, suspects_failed=4), shown_at).mixed_at == shown_at


def test_it_lasts_for_a_part_of_the_time_to_a_last_chance() -> None:
    circuit = a_circuit(mixed_at=NOW)

    assert is_mixed(circuit, NOW + LASTS, SETTINGS)
    assert not is_mixed(circuit, NOW + LASTS + timedelta(seconds=1), SETTINGS)
    assert not is_mixed(circuit, NOW + LASTS, Settings(last_chance_seconds=60))
    assert not is_mixed(a_circuit(), NOW, SETTINGS)

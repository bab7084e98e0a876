"""The account of the DLQ's depth, and what the circuit remembers of its batches."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.circuit import COUNTS_SETTLE, JUDGED_KEPT, Depth, Verdict
from tests.unit.examples import NOW, a_batch, a_circuit, ago, ahead

FIVE_MINUTES = timedelta(minutes=5)


def a_depth(letters: int = 100, **changes: float) -> Depth:
    """What was measured five minutes ago."""
    return Depth(letters=letters, at=ago(minutes=5), **changes)  # type: ignore[arg-type]


def test_growth_beyond_the_usual_inflow_is_unexplained_while_letters_are_out() -> None:
    depth = a_depth(100).measured(110, NOW, letters_are_out=True)

    assert (depth.letters, depth.at) == (110, NOW)
    assert depth.unexplained == 10


def test_the_usual_inflow_explains_its_share_of_the_growth() -> None:
    usual = 6 / FIVE_MINUTES.total_seconds()

    depth = a_depth(100, usual_inflow=usual).measured(110, NOW, letters_are_out=True)

    assert depth.unexplained == pytest.approx(4)
    assert depth.usual_inflow == usual


def test_what_passes_took_out_is_not_mistaken_for_calm() -> None:
    depth = a_depth(100).less(30, ago(minutes=4)).measured(100, NOW, letters_are_out=True)

    assert depth.unexplained == 30
    assert (depth.removed, depth.removed_at) == (0, None)


def test_what_several_passes_took_out_adds_up() -> None:
    depth = a_depth(100).less(30, ago(minutes=4)).less(20, ago(minutes=3))

    assert depth.measured(50, NOW, letters_are_out=True).unexplained == 0


def test_unexplained_growth_adds_up_over_measurements_and_shrinks_as_others_drain_the_queue() -> (
    None
):
    grown = a_depth(100).measured(110, NOW, letters_are_out=True)

    assert grown.measured(115, ahead(minutes=5), letters_are_out=True).unexplained == 15
    assert grown.measured(104, ahead(minutes=5), letters_are_out=True).unexplained == 4
    assert grown.measured(10, ahead(minutes=5), letters_are_out=True).unexplained == 0


def test_growth_while_nothing_of_ours_is_out_teaches_the_usual_inflow() -> None:
    depth = a_depth(100, unexplained=7).measured(160, NOW, letters_are_out=False)

    assert depth.unexplained == 0
    assert depth.usual_inflow == pytest.approx(60 / 300 / 2)


def test_a_steady_inflow_is_learned_within_a_few_measurements() -> None:
    depth = a_depth(100)
    for number in range(1, 11):
        now = NOW + number * FIVE_MINUTES
        depth = depth.measured(depth.letters + 60, now, letters_are_out=False)

    assert depth.usual_inflow == pytest.approx(0.2, rel=0.01)


def test_a_count_that_still_settles_after_our_deletes_is_left_out() -> None:
    """Deleted letters stay in the count for about a minute: they would pass for growth."""
    depth = a_depth(100).less(30, NOW)

    too_early = NOW + COUNTS_SETTLE - timedelta(seconds=1)
    assert depth.measured(100, too_early, letters_are_out=True) == depth

    settled = depth.measured(70, NOW + COUNTS_SETTLE, letters_are_out=True)
    assert (settled.letters, settled.unexplained) == (70, 0)


@pytest.mark.parametrize("seconds", [0, -60])
def test_a_second_measurement_at_the_same_time_or_an_earlier_one_changes_nothing(
    seconds: int,
) -> None:
    depth = a_depth(100)

    assert depth.measured(500, depth.at + timedelta(seconds=seconds), letters_are_out=True) == depth


def test_taking_nothing_out_does_not_unsettle_the_count() -> None:
    assert a_depth(100).less(0, NOW) == a_depth(100)


@pytest.mark.parametrize(("explained", "left"), [(3, 4), (7, 0), (100, 0)])
def test_returns_that_are_seen_explain_growth_but_never_more_than_there_was(
    explained: int, left: float
) -> None:
    assert a_depth(unexplained=7).explained(explained).unexplained == left


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10_000), st.integers(0, 100), st.integers(-10, 900), st.booleans()
        ),
        max_size=20,
    )
)
def test_no_history_of_counts_makes_inflow_or_growth_negative(
    steps: list[tuple[int, int, int, bool]],
) -> None:
    depth, now = a_depth(), NOW

    for letters, removed, seconds, letters_are_out in steps:
        now += timedelta(seconds=seconds)
        depth = depth.measured(letters, now, letters_are_out=letters_are_out).less(removed, now)

        assert depth.usual_inflow >= 0
        assert depth.unexplained >= 0


def test_letters_of_which_nothing_was_seen_again_are_outstanding() -> None:
    batch = a_batch(size=10, suspects=3, returned=2, suspects_returned=1)

    assert batch.outstanding == 7


def test_a_copy_that_is_seen_twice_never_makes_the_outstanding_negative() -> None:
    assert a_batch(size=1, returned=2).outstanding == 0


def test_a_circuit_finds_its_batches_by_id_and_counts_their_letters() -> None:
    first, second = a_batch(id=1, size=3), a_batch(id=2, size=4)
    circuit = a_circuit(pending=(first, second))

    assert circuit.outstanding == 7
    assert circuit.pending_batch(2) == second
    assert circuit.pending_batch(3) is None
    assert circuit.pending_batch(None) is None
    assert circuit.without_batch(1).pending == (second,)
    assert circuit.with_batch(a_batch(id=1, size=9)).outstanding == 13


def test_a_judged_batch_is_remembered_with_what_it_showed() -> None:
    batch = a_batch(id=1, returned=1)

    circuit = a_circuit(pending=(batch,)).settled(
        batch, Verdict.SUCCESS, is_strike=True, overturned_at=2
    )

    judged = circuit.judged_batch(1)
    assert circuit.pending == ()
    assert judged is not None
    assert (judged.verdict, judged.is_strike) == (Verdict.SUCCESS, True)
    assert (judged.returned, judged.overturned_at) == (1, 2)
    assert circuit.judged_batch(None) is None


def test_only_the_newest_judged_batches_are_remembered() -> None:
    circuit = a_circuit()
    for number in range(JUDGED_KEPT + 5):
        circuit = circuit.settled(a_batch(id=number), Verdict.SUCCESS, is_strike=True)

    assert len(circuit.judged) == JUDGED_KEPT
    assert circuit.judged_batch(4) is None
    assert circuit.judged_batch(5) is not None

"""The turns that threads take in these tests: who waits for what never comes is told so,
however busy the machine is.
"""

import pytest

from tests.engine.turns import Turns


@pytest.mark.parametrize("seed", range(3))
def test_threads_that_wait_for_each_other_are_told_so(seed: int) -> None:
    turns = Turns(seed)
    done = [turns.submit(lambda: turns.give_way(lambda: False)) for _ in range(3)]

    with pytest.raises(RuntimeError, match="waits for somebody else"):
        turns.wait(done, "FIRST_COMPLETED")


def test_the_same_seed_gives_the_same_turns() -> None:
    def order(seed: int) -> list[int]:
        turns, went = Turns(seed), list[int]()
        done = [turns.submit(lambda number=number: went.append(number)) for number in range(6)]
        turns.shutdown()
        assert all(one.done() for one in done)
        return went

    assert order(1) == order(1)
    assert {tuple(order(seed)) for seed in range(8)} > {tuple(order(1))}

"""What a batch has come to, counted round by round."""

from datetime import timedelta

from redrive.passes.rounds import Tally

from redrive.core.triage import Redrive


def redrive(seconds: int, strikes: int = 0) -> Redrive:
    return Redrive(destination="arn", delay=timedelta(seconds=seconds), strikes=strikes)


def test_a_letter_sent_without_delay_is_the_first_to_be_tried() -> None:
    tally = Tally()

    for one in (redrive(0), redrive(45, strikes=2)):
        tally.add(one)

    assert (tally.size, tally.suspects) == (2, 1)
    assert (tally.shortest_delay, tally.longest_delay) == (timedelta(), timedelta(seconds=45))


def test_rounds_add_up_whichever_ends_first() -> None:
    first, second = Tally(), Tally(refused="AccessDenied")
    first.add(redrive(30))
    second.add(redrive(0))

    one, other = Tally(), Tally()
    one.absorb(first)
    one.absorb(second)
    other.absorb(second)
    other.absorb(first)
    one.absorb(Tally())  # a round in which nothing was sent

    assert one == other
    assert (one.size, one.shortest_delay, one.refused) == (2, timedelta(), "AccessDenied")

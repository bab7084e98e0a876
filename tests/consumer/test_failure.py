"""What is told of an error: enough to group and to find it, and no body."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.consumer.errors import retry_after_of
from smart_redriver.consumer.failure import Failure, failure_of
from smart_redriver.engine.reports.outcomes import MAX_FIRST_LINE, MAX_TRACEBACK
from tests.consumer.scene import QUEUE, Scene


class OutOfStock(Exception):  # noqa: N818
    pass


def raised(error: Exception, cause: BaseException | None = None) -> Exception:
    try:
        raise error from cause  # noqa: TRY301 - a traceback is wanted
    except Exception as caught:
        return caught


def told(error: Exception, body: str = "a body") -> Failure:
    return failure_of(error, body)


def test_an_error_is_named_with_its_module_unless_it_is_pythons_own() -> None:
    assert told(KeyError("x")).error_class == "KeyError"
    assert told(OutOfStock()).error_class == "tests.consumer.test_failure.OutOfStock"


def test_a_message_is_told_by_its_first_line() -> None:
    assert told(ValueError("\n one \n two")).first_line == "one"
    assert told(ValueError()).first_line == ""
    assert len(told(ValueError("x" * 10_000)).first_line) == MAX_FIRST_LINE


def test_a_traceback_ends_with_the_error_and_begins_with_what_caused_it() -> None:
    cause = raised(OSError("connection refused"))
    text = told(raised(OutOfStock("none left\nsecond line"), cause)).traceback

    first, second = text.split("\n\n")
    assert first.endswith("OSError: connection refused")
    assert second.endswith("OutOfStock: none left")
    assert "in raised" in first
    assert "in raised" in second


def test_what_was_going_on_is_told_unless_it_was_suppressed() -> None:
    error = raised(OutOfStock())
    error.__context__, error.__suppress_context__ = raised(OSError("connection refused")), False

    assert "connection refused" in told(error).traceback
    error.__suppress_context__ = True
    assert "connection refused" not in told(error).traceback


def test_a_long_traceback_is_its_last_four_kilobytes() -> None:
    def dig(depth: int) -> None:
        if depth == 0:
            raise OutOfStock("größe " * 50)
        dig(depth - 1)

    with pytest.raises(OutOfStock) as caught:
        dig(200)
    chained = raised(ValueError("end"), raised(OutOfStock("ü" * 300), caught.value))

    text = told(chained).traceback
    assert len(text.encode()) <= MAX_TRACEBACK
    assert text.endswith("ValueError: end")


def test_a_group_is_told_by_the_first_error_in_it_and_its_traceback_has_both() -> None:
    first = raised(OutOfStock("none left"))
    inner = ExceptionGroup("inner", [first, ValueError("late")])

    failure = told(raised(ExceptionGroup("unhandled errors in a TaskGroup", [inner])))

    assert failure.error_class.endswith("OutOfStock")
    assert failure.first_line == "none left"
    assert failure.cause == "OutOfStock in test_failure.raised: none left"
    places = failure.traceback.split("\n\n")
    assert places[0].endswith("OutOfStock: none left")
    assert places[-1].endswith("unhandled errors in a TaskGroup (1 sub-exception)")


def test_an_error_raised_while_its_own_group_was_handled_is_told() -> None:
    one = OutOfStock("none left")
    one.__context__ = ExceptionGroup("both", [one, ValueError("late")])

    assert told(one.__context__).first_line == "none left"
    assert retry_after_of(one.__context__, datetime.now(UTC)) is None


def test_an_error_that_is_in_many_groups_is_asked_once_when_to_try_again() -> None:
    class Asked(Exception):  # noqa: N818
        times = 0

        @property
        def retry_after(self) -> None:
            self.times += 1

    asked = Asked()
    error: Exception = asked
    for _ in range(4):
        error = ExceptionGroup("many", [error] * 60)

    assert retry_after_of(error, datetime.now(UTC)) is None
    assert asked.times == 1


def test_an_error_that_causes_itself_is_told() -> None:
    one, other = OutOfStock("one"), OutOfStock("other")
    one.__cause__, other.__cause__ = other, one

    assert told(one).traceback.endswith("OutOfStock: one")


@pytest.mark.parametrize("fault", [RuntimeError, SystemExit])
def test_an_error_that_can_not_be_printed_is_told_by_its_class(
    fault: type[BaseException],
) -> None:
    class Shy(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise fault

    failure = told(Shy())

    assert failure.error_class.endswith("Shy")
    assert failure.first_line == ""


class Unreadable(Exception):  # noqa: N818
    """Raises wherever it is read."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class Placeless(Exception):  # noqa: N818
    __module__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("error", [Unreadable, Placeless])
def test_an_error_that_can_not_be_read_is_reported_by_its_class(error: type[Exception]) -> None:
    scene = Scene()

    with suppress(error), scene.reporter().message(scene.message(), QUEUE):
        raise error()

    [outcome] = scene.outcomes()
    assert (outcome.result.value, outcome.first_line) == ("failed", None)
    assert str(outcome.error_class).endswith(error.__name__)


def test_a_body_that_is_longer_than_the_message_is_not_spelt_out_to_look_for_it() -> None:
    """It may be a megabyte, of each of many messages."""

    class Body(str):
        __slots__ = ()

        def __repr__(self) -> str:
            raise AssertionError

    assert told(ValueError("no stock"), Body("a longer body")).first_line == "no stock"
    assert told(ValueError("no such body"), "such body").first_line == "no [body]"


BODIES = st.text(min_size=8, max_size=60)


@given(BODIES, st.sampled_from(["{body}", "bad order {body}!", "bad order {body!r}", "a\n{body}"]))
def test_no_body_is_told_however_an_error_quotes_it(body: str, message: str) -> None:
    # In a traceback are lines of this file; what they have in common with a body is not from it.
    marked = f"<{body}>"
    error = raised(ValueError(message.format(body=marked)), raised(KeyError(marked)))

    failure = told(error, marked)

    for text in (failure.first_line, failure.traceback):
        assert marked not in text
        assert repr(marked)[1:-1] not in text
        text.encode()

"""One turn: every background loop of AWS, run once and to its end, in a fixed order.

MiniStack runs each loop in its own thread, every 1 to 60 real seconds. Under a clock that jumps, that is slow and
leaves open which loop saw the new time first. Here one turn fires schedules, starts due retries, moves messages, feeds
event source mappings until they find nothing more, samples metrics and evaluates alarms. A ticker takes a turn every
few real milliseconds, so that the emulator also works when no one drives it. `Stepper` takes a turn after each jump of
the clock, and returns when everything that the jump started has ended or sleeps.
"""

import logging
import threading
import time
from typing import Any

from ministack.services import eventbridge, lambda_svc, scheduler

from emulator.clock import Clock

from . import alarms, lambda_events, metrics, sqs_moves
from .flights import flights
from .patching import wrap
from .sleepers import sleepers

logger = logging.getLogger("overlay.turns")

#: Queues are sampled at most this often in virtual time, because a turn may come every few milliseconds.
_SAMPLE_SECONDS = 5
#: A chain longer than this (alarm, topic, function, alarm...) never comes to rest by itself.
_MAX_ROUNDS = 1000


class Turn:
    """Runs all loops once. Not reentrant: one turn at a time."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._next_sample = 0.0

    def take(self) -> bool:
        """Start everything that is due. True if an event source mapping got work."""
        with self._one_at_a_time:
            now = time.time()
            scheduler._tick_schedules()
            eventbridge._tick_scheduled_rules()
            lambda_events.start_due(now)
            sqs_moves.move_messages(now)
            return bool(lambda_svc._poll_sqs())

    def observe(self) -> None:
        """Record metrics and let alarms act on them."""
        with self._one_at_a_time:
            now = time.time()
            if now >= self._next_sample:
                self._next_sample = now + _SAMPLE_SECONDS
                metrics.sample_queues(now)
            alarms.evaluate_alarms(now)


class Stepper:
    """Moves the clock when nothing is awake, and waits until nothing is awake again.

    It never moves the clock past the time at which a function wakes. A function that sleeps six times for five seconds
    is awake six times in half a minute, and its effects happen at their time.
    """

    def __init__(self, clock: Clock, turn: Turn) -> None:
        self._clock = clock
        self._turn = turn
        self._one_at_a_time = threading.Lock()

    def step_to(self, moment: float, patience_seconds: float) -> None:
        """Jump to `moment` (if it is still ahead) and settle. Raises TimeoutError."""
        deadline = time.monotonic() + patience_seconds
        with self._one_at_a_time:
            self._settle(deadline)
            while (now := self._clock.now()) < moment:
                wake_ups = sleepers.wake_ups(now)
                if flights.under_way().total() <= len(wake_ups):  # else one has just woken
                    self._clock.advance(min([moment, *wake_ups]) - now)
                self._settle(deadline)

    def _settle(self, deadline: float) -> None:
        for _ in range(_MAX_ROUNDS):
            while self._turn.take():
                # More may wait behind a full set of concurrent batches.
                flights.wait_for_rest_of_one(deadline)
            flights.wait_until_all_rest(deadline)
            self._turn.observe()
            if not self._turn.take() and not flights.awake():
                return
        raise TimeoutError(f"not at rest after {_MAX_ROUNDS} rounds: {dict(flights.under_way())}")


def start_ticker(turn: Turn, interval_seconds: float) -> None:
    """Take turns in real time, for a clock that no one moves."""

    def tick() -> None:
        while True:
            time.sleep(interval_seconds)
            try:
                turn.take()
                turn.observe()
            except Exception:  # like the loops that it replaces, it must not end because of a fault
                logger.exception("a turn failed")

    threading.Thread(target=tick, daemon=True, name="overlay-ticker").start()


def install() -> None:
    _poll_under_a_lock()
    _count_batches_as_flights()
    _keep_schedules_in_step()


def _poll_under_a_lock() -> None:
    """Lock each poll. MiniStack's own poll thread goes on, and two polls at once would exceed the concurrency."""
    lock = threading.Lock()

    @wrap(lambda_svc, "_poll_sqs")
    def poll(poll_all: Any) -> Any:
        with lock:
            return poll_all()

    #: A mapping whose function failed pauses for this long, in virtual time. Its failed messages
    #: are hidden anyway, so the pause would only make the outcome of a step depend on timing.
    lambda_svc._ESM_BACKOFF_SECONDS = 0.0


def _count_batches_as_flights() -> None:
    def dispatch(mapping_id: str, run: Any, *args: Any) -> None:
        """Dispatch as MiniStack does, but close the flight only after the mapping's own count is back down."""
        with lambda_svc._esm_inflight_lock:
            inflight = lambda_svc._esm_inflight
            inflight[mapping_id] = inflight.get(mapping_id, 0) + 1
        flights.open("event source mapping")

        def run_batch() -> None:
            with flights.carry("event source mapping"):
                try:
                    run(*args)
                finally:
                    with lambda_svc._esm_inflight_lock:
                        inflight[mapping_id] -= 1
                        if not inflight[mapping_id]:
                            del inflight[mapping_id]
            lambda_svc._esm_wake.set()

        lambda_svc.spawn_background(run_batch, thread_name="ministack-esm")

    lambda_svc._dispatch_esm_batch = dispatch


def _keep_schedules_in_step() -> None:
    last_fired = scheduler._schedule_last_fired

    @wrap(scheduler, "_tick_schedules")
    def tick(fire: Any) -> None:
        """Tick. A rate counts from creation, because counting from the last firing drifts with every delay."""
        before = dict(last_fired)
        fire()
        for key, fired in list(last_fired.items()):
            schedule = scheduler._schedules._data.get(key)
            if schedule is None or before.get(key) == fired:
                continue
            interval = eventbridge._parse_rate_seconds(schedule["ScheduleExpression"])
            if interval:
                anchor = before.get(key) or schedule["CreationDate"]
                last_fired[key] = anchor + (fired - anchor) // interval * interval

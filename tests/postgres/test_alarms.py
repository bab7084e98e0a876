"""The alarms of a worker queue, evaluated on what real passes tell of letters that they leave alone."""

from typing import Any

import pytest

from bench.alarm_states import Alarms
from bench.metric_record import MetricRecord, emitted_by
from bench.synthesized import of_cloudwatch
from emulator.alarm_evaluation import ALARM
from smart_redriver.engine.config.settings import Mode
from tests.infrastructure.test_postgres import synthesized
from tests.postgres.bench import Bench

MINUTE = 60


@pytest.fixture(scope="module")
def resources():
    return of_cloudwatch(synthesized().to_json())


def minutes_in_alarm(bench: Bench, resources, minutes: int, **settings) -> dict[str, set[int]]:
    """By alarm, when it was in alarm; with as many passes, a minute apart."""
    record, started = MetricRecord(), bench.clock.now()
    for _ in range(minutes):
        report = bench.run_pass(**settings)
        for told in emitted_by(report):
            record.put(told.metric, bench.clock.now().timestamp(), *told.values)
        bench.clock.advance(MINUTE)
    alarms = Alarms(resources, record)
    found: dict[str, Any] = {}
    for now in alarms.watch(started.timestamp(), bench.clock.now().timestamp()):
        for name, state in alarms.states.items():
            if state == ALARM:
                minute = int(now - started.timestamp()) // MINUTE
                found.setdefault(name.removeprefix("Redriver")[:11], set()).add(minute)
    return found


def bring_back(bench: Bench) -> None:
    """A letter that was sent is there again, as after a restore."""
    bench.die("a")
    bench.run_pass()
    bench.owner.execute("truncate jobs, jobs_redriven")
    bench.owner.execute("insert into jobs_dlq (id, payload, attempts) values (1, '\"a\"', 3)")
    bench.clock.advance(MINUTE)


def test_a_letter_that_each_pass_leaves_alone_is_told_within_an_hour_and_until_it_is_gone(
    bench, resources
):
    bring_back(bench)

    stays = minutes_in_alarm(bench, resources, 75)
    bench.owner.execute("delete from jobs_dlq")
    gone = minutes_in_alarm(bench, resources, 75)

    assert stays.keys() == {"LettersStay"}
    assert 55 <= min(stays["LettersStay"]) <= 65
    assert max(stays["LettersStay"]) == 75
    assert gone == {}


def test_one_that_is_in_somebody_s_hands_for_half_an_hour_is_not_told(bench, resources):
    bench.die("a")
    with bench.server.connect(bench.name, autocommit=False) as other:
        other.execute("select 1 from jobs_dlq for update")
        locked = minutes_in_alarm(bench, resources, 30)
    free = minutes_in_alarm(bench, resources, 45)

    assert (locked, free) == ({}, {})
    assert bench.payloads("jobs") == ["a"]


def test_letters_that_wait_are_not_letters_that_stay(bench, resources):
    bench.die(*range(5))

    assert minutes_in_alarm(bench, resources, 75, mode=Mode.PAUSED) == {}


REFUSES_ALL = "alter table jobs add check (payload is null) not valid"


def test_a_circuit_that_does_not_close_is_told_while_letters_wait_and_not_after(bench, resources):
    bench.owner.execute(REFUSES_ALL)
    bench.die(*range(5))

    waits = minutes_in_alarm(bench, resources, 90)
    bench.owner.execute("delete from jobs_dlq")
    gone = minutes_in_alarm(bench, resources, 90)

    assert 30 <= min(waits["CircuitOpen"]) <= 45
    assert max(waits["CircuitOpen"]) == 90
    assert "CircuitOpen" not in gone

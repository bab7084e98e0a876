"""Scenarios of the design on a real Postgres: real transactions, virtual time."""

import json
from dataclasses import replace
from functools import partial

import pytest

from bench import play
from simulator.limits import breaches_of_run
from simulator.postgres_world import PostgresWorld
from simulator.scenarios import named


@pytest.mark.enumeration
@pytest.mark.parametrize(
    "name",
    [
        "1",
        "2",
        "3",
        "4",
        "5",
        "5:live",
        "6",
        "7",
        "8",
        "9",
        "11",
        "12",
        "13:60",
        "14",
        "14:900:50",
        "13:10",
        "16",
        "16:5400x5:outage",
        "18",
        "20",
        "22:copy",
        "23",
        "24:20:0.2",
        "25:live",
    ],
)
def test_a_scenario_keeps_its_limits_on_postgres(own, name):
    scenario = replace(named(name), make_world=partial(PostgresWorld, server=own))

    played = scenario.played(0)
    try:
        assert list(breaches_of_run(scenario.limits, played.measures)) == []
        assert (played.measures.lost, played.measures.repeated) == (0, 0)
        assert played.measures.parked_wrongly == 0
    finally:
        played.world.close()


def test_letters_of_a_broken_downstream_wait_together_and_the_others_flow(own):
    """As with a consumer that reports: row 13's limits with the kit."""
    scenario = replace(named("13"), make_world=partial(PostgresWorld, server=own))

    played = scenario.played(0)
    played.world.close()

    assert list(breaches_of_run(scenario.limits, played.measures)) == []
    assert (played.measures.lost, played.measures.repeated) == (0, 0)
    assert played.measures.parked_wrongly == 0
    assert played.measures.wasted <= 150
    assert played.measures.drained_after_minutes <= 30  # type: ignore[operator]


def test_the_command_plays_on_postgres(capsys):
    argv = ["--letters", "30", "--poison", "1", "--origin", "postgres", "--seeds", "2", "--json"]

    assert play.main(argv) == 0

    figures = json.loads(capsys.readouterr().out)
    assert figures["mean"]["lost"] == figures["mean"]["repeated"] == 0
    assert figures["mean"]["deliveries"] > 30


def test_the_command_plays_producers_on_postgres(capsys):
    """Beside a second world without a re-driver, on the same server: what it costs producers' messages."""
    argv = ["--letters", "10", "--live-per-minute", "60", "--origin", "postgres", "--json"]

    assert play.main(argv) == 0

    figures = json.loads(capsys.readouterr().out)
    assert (figures["lost"], figures["live_died"]) == (0, 0)


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["--scenario", "17"], "two queues that share a DLQ"),
        (["--scenario", "21"], "letters that expire"),
        (["--scenario", "21:4d:open"], "letters that expire"),
        (["--scenario", "15"], "counts that are wrong"),
        (["--scenario", "3:reports"], "the database tells itself"),
        (["--reports"], "the database tells itself"),
        (["--fifo"], "--fifo is of queues in SQS"),
        (["--count-lag", "30"], "--count-lag is of queues in SQS"),
        (["--policy", "native-move"], "knows queues of SQS alone"),
    ],
)
def test_what_a_table_has_not_is_refused_with_a_sentence(capsys, argv, why):
    with pytest.raises(SystemExit) as ended:
        play.main([*argv, "--origin", "postgres"])

    assert ended.value.code == 2
    assert why in capsys.readouterr().err

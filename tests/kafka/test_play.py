"""Scenarios of the design on a log: partitions, positions and a retry topic, in virtual time.
`make bench ARGS=kafka-scenarios` plays all that a log can have.
"""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from bench import play
from simulator.consumers import Beyond, Consumer
from simulator.kafka_world import KafkaWorld
from simulator.limits import Limits, breaches_of_run
from simulator.scenarios import named
from simulator.sources import LiveTraffic
from smart_redriver.engine.config.settings import Settings


@pytest.mark.enumeration
@pytest.mark.parametrize(
    "name",
    [
        "1",
        "2",
        "4",
        "5:live",
        "6",
        "7",
        "8",
        "9:7-13",
        "13:60",
        "20:few",
        "24:11:3:closed",
        "28:0",
        "28:1",
        "28:10",
        "29:soon",
    ],
)
def test_a_scenario_keeps_its_limits_on_a_log(name):
    scenario = replace(named(name), make_world=KafkaWorld)

    measures = scenario.played(0).measures

    assert list(breaches_of_run(scenario.limits, measures)) == []
    assert (measures.lost, measures.repeated, measures.stripped) == (0, 0, 0)
    assert measures.parked_wrongly == 0


#: Consumers that fall over for ten minutes at more than so many a second, live messages a minute, and initial windows.
WEAK = {
    "none live": (3, 0, 5),
    "few live": (3, 20, 5),
    "a wide first window": (8, 20, 20),
}


@pytest.mark.parametrize("weak", WEAK)
def test_a_consumer_that_a_handful_of_letters_fells_gets_them_one_by_one(weak):
    """At a handful after each pause, the first fell 149 times, and the others did not end."""
    bears, live, window = WEAK[weak]
    row = replace(
        named("29:soon"),
        poison=0,
        consumer=lambda _: Consumer(capacity_per_second=bears, beyond=Beyond.FALL),
        traffic=LiveTraffic(per_minute=live) if live else None,
        settings=Settings(initial_window=window),
        until=timedelta(hours=3),
        make_world=KafkaWorld,
    )

    measures = row.played(0).measures

    assert list(breaches_of_run(Limits(good_drained=60, falls=3), measures)) == []
    assert (measures.lost, measures.repeated, measures.parked_wrongly) == (0, 0, 0)


def test_the_command_plays_on_a_log(capsys):
    argv = ["--letters", "30", "--poison", "1", "--origin", "kafka", "--seeds", "1", "--json"]

    assert play.main(argv) == 0

    figures = json.loads(capsys.readouterr().out)
    assert figures["lost"] == figures["repeated"] == 0
    assert figures["deliveries"] > 30


def test_the_command_plays_a_consumer_with_a_capacity_on_a_log(capsys):
    row = replace(named("28:10"), make_world=KafkaWorld)

    assert play.main(["--scenario", "28:10", "--origin", "kafka", "--json"]) == 0

    figures = json.loads(capsys.readouterr().out)
    drained = row.played(0).measures.good_drained_after_minutes
    assert drained is not None
    assert figures["good_drained_after_minutes"] == drained


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["--scenario", "21"], "letters that expire"),
        (["--scenario", "3:reports"], "the group tells itself"),
        (["--fifo"], "a topic has none of it"),
        (["--policy", "native-move"], "knows queues of SQS alone"),
    ],
)
def test_what_a_topic_has_not_is_refused_with_a_sentence(capsys, argv, why):
    with pytest.raises(SystemExit) as ended:
        play.main([*argv, "--origin", "kafka"])

    assert ended.value.code == 2
    assert why in capsys.readouterr().err

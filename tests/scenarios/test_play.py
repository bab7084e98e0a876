"""`python -m bench.play`: a fixed interface, through which others compare."""

from __future__ import annotations

import json
from datetime import timedelta
from enum import Enum
from typing import Any

import pytest

from bench import play
from bench.play_options import parse
from simulator.consumers import Beyond, Reports, Validity
from simulator.scenarios import BY_NAME, MATRIX, ROWS, named
from simulator.world import hours
from smart_redriver.engine.config.settings import Settings

#: What the design's section 7 names.
FIELDS = [
    "lost",
    "repeated",
    "wasted",
    "parked_rightly",
    "parked_wrongly",
    "at_large",
    "drained_after_minutes",
    "redriven_in_outage",
    "opened",
    "final_state",
    "live_died",
    "live_died_after_recovery",
    "live_wait_p99_seconds",
]


def played(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    """The JSON that these options print."""
    assert play.main([*argv, "--json"]) == 0
    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    return figures


def test_one_json_object_has_every_field_of_the_interface(capsys) -> None:
    figures = played(capsys, "--scenario", "4", "--seed", "7")

    assert set(FIELDS) <= figures.keys()
    assert (figures["scenario"], figures["seed"], figures["policy"]) == ("4", 7, "ours")
    assert (figures["lost"], figures["repeated"], figures["opened"]) == (0, 0, True)
    assert figures["wasted"] == 3 * figures["redriven_in_outage"]


def test_the_same_seed_plays_the_same(capsys) -> None:
    argv = ("--letters", "40", "--poison", "2", "--receive-failures", "0.3", "--seed", "5")

    assert played(capsys, *argv) == played(capsys, *argv)


def test_several_seeds_are_told_each_and_in_the_mean(capsys) -> None:
    figures = played(capsys, "--letters", "40", "--poison", "2", "--seed", "3", "--seeds", "2")

    assert [run["seed"] for run in figures["runs"]] == figures["seeds"] == [3, 4]
    assert figures["mean"]["parked_rightly"] == 2


def test_figures_that_a_rival_has_no_meaning_for_are_null(capsys) -> None:
    figures = played(capsys, "--scenario", "1", "--policy", "native-move")

    assert [name for name in FIELDS if figures[name] is None] == [
        "redriven_in_outage",
        "opened",
        "final_state",
    ]


@pytest.mark.parametrize(
    "policy", ["no-breaker", "published-pattern", "event-source", "native-move"]
)
def test_every_rival_plays(capsys, policy: str) -> None:
    figures = played(capsys, "--letters", "10", "--policy", policy)

    assert (figures["policy"], figures["lost"], figures["at_large"]) == (policy, 0, 0)


def test_a_rival_is_compared_in_the_same_world(capsys) -> None:
    world = ("--letters", "20", "--down-hours", "1", "--seed", "5")

    compared = played(capsys, *world, "--max-attempts", "3", "--compare", "native-move")

    alone = [
        played(capsys, *world, *more)
        for more in (("--max-attempts", "3"), ("--policy", "native-move"))
    ]
    assert list(compared["compared"]) == ["ours", "native-move"]
    for figures, run in zip(compared["compared"].values(), alone, strict=True):
        assert figures == {name: run[name] for name in figures}
    assert compared["compared"]["ours"]["wasted"] < compared["compared"]["native-move"]["wasted"]


def test_of_several_seeds_the_means_are_compared(capsys) -> None:
    assert play.main(["--letters", "5", "--seeds", "2", "--compare", "no-breaker"]) == 0

    header = capsys.readouterr().out.splitlines()[2]
    assert [one for one in header.replace("┃", " ").split() if one] == [
        "figure",
        "ours",
        "no-breaker",
    ]


def test_what_is_compared_is_ours(capsys) -> None:
    with pytest.raises(SystemExit) as refused:
        parse(["--policy", "no-breaker", "--compare", "native-move"])

    assert refused.value.code == 2
    assert "leave out --policy no-breaker" in capsys.readouterr().err


def test_without_json_a_person_reads_a_table(capsys) -> None:
    assert play.main(["--letters", "5"]) == 0

    shown = capsys.readouterr().out
    assert "parked wrongly" in shown
    assert "CLOSED" in shown


def test_the_list_names_every_scenario(capsys) -> None:
    assert play.main(["--list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [one.name for one in (*ROWS, *MATRIX)]


def test_the_list_is_one_json_object_for_a_program(capsys) -> None:
    assert play.main(["--list", "--json"]) == 0

    titles = json.loads(capsys.readouterr().out)
    assert titles == {one.name: one.title for one in (*ROWS, *MATRIX)}


@pytest.mark.parametrize("row", [*map(str, range(1, 26)), "M"])
def test_every_row_of_the_design_has_a_default(row: str) -> None:
    assert named(row).name.partition(":")[0] == row


def test_the_matrix_is_whole() -> None:
    """Seven rows, three schedules, five patiences."""
    assert len(MATRIX) == len({one.name for one in MATRIX}) == 7 * 3 * 5
    assert len(BY_NAME) == len(ROWS) + len(MATRIX)


@pytest.mark.parametrize("setting", Settings.names())
def test_every_setting_is_an_option_by_its_name(setting: str) -> None:
    usual = getattr(Settings(), setting)
    text = str(usual.value) if isinstance(usual, Enum) else str(usual)
    value = "paused" if setting == "mode" else "true" if usual is False else text
    value = "" if usual == () else value

    asked = parse([f"--{setting.replace('_', '-')}", value])

    assert getattr(asked.scenario.settings, setting) == type(usual)(value if value != "true" else 1)


def test_a_consumer_that_marks_poison_as_permanent_parks_it_at_once(capsys) -> None:
    figures = played(capsys, "--scenario", "2", "--permanent")

    assert (figures["parked_rightly"], figures["parked_wrongly"], figures["at_large"]) == (10, 0, 0)
    assert figures["deliveries"] == 200


def test_to_mark_poison_as_permanent_is_to_report() -> None:
    def reports(*options: str) -> Reports | None:
        return parse(["--scenario", "3", *options]).scenario.consumer(0).reports

    assert reports() is None
    assert reports("--reports") == Reports()
    assert reports("--permanent") == reports("--reports", "--permanent") == Reports(permanent=True)


def test_options_change_the_scenario(capsys) -> None:
    options = (
        "--scenario 3 --letters 50 --poison 5 --down-hours 4 --live-per-minute 6 --partial 0.3 --consumer-backoff 300 "
        "--consumer-delay 20 --count-lag 30 --count-noise 5 --visibility-timeout 60 --max-receive-count 4 "
        "--schedule-minutes 1"
    )

    scenario = parse(options.split()).scenario

    assert (scenario.letters, scenario.poison) == (50, 5)
    assert scenario.outage is not None
    assert (scenario.outage.lasts, scenario.outage.share) == (hours(4), 0.3)
    assert (scenario.calm_at, scenario.until) == (hours(4), named("3").until + hours(2))
    assert scenario.traffic is not None
    assert scenario.traffic.per_minute == 6
    consumer = scenario.consumer(0)
    assert (consumer.backoff_seconds, consumer.processing_seconds) == (300, 20)
    conditions = scenario.conditions
    assert (conditions.count_lag_seconds, conditions.count_noise) == (30, 5)
    assert (conditions.visibility_timeout, conditions.max_receive_count) == (60, 4)
    assert scenario.settings == Settings(
        schedule_minutes=1, max_receive_count=4, source_visibility_timeout_seconds=60
    )


def test_what_a_consumer_bears_and_for_how_long_messages_are_good_are_options() -> None:
    told = "--capacity 20 --beyond fall --broken-kind 0.33 --broken-hours 9 --valid-hours 1"
    scenario = parse(told.split()).scenario
    consumer = scenario.consumer(0)

    assert (consumer.capacity_per_second, consumer.beyond) == (20, Beyond.FALL)
    assert consumer.validity == Validity(lasts=hours(1))
    assert consumer.downstream is not None
    assert (consumer.downstream.share, consumer.downstream.live_share) == (0.33, 0.33)
    assert [consumer.downstream.health(hours(at)) for at in (8.9, 9)] == [False, True]
    assert (scenario.calm_at, scenario.step) == (hours(9), timedelta(seconds=1))


def test_what_redriving_costs_producers_is_told(capsys) -> None:
    asked = "--letters 300 --capacity 10 --beyond fail --live-per-minute 300 --watch-hours 1"
    figures = played(capsys, *asked.split(), "--policy", "native-move")

    assert figures["live_died"] == figures["live_died_after_recovery"] > 0
    assert figures["live_wait_p99_seconds"] >= 30


def test_of_fifo_queues_it_says_what_became_of_the_order(capsys) -> None:
    figures = played(capsys, "--fifo", "--groups", "4", "--letters", "12", "--down-hours", "0.2")

    assert (figures["lost"], figures["repeated"], figures["at_large"]) == (0, 0, 0)
    assert figures["overtakings"] == figures["tried_past"] == figures["repeated_within_window"] == 0
    assert figures["drained_after_minutes"] > 12


def test_a_scenario_without_options_is_the_designs_own() -> None:
    assert parse(["--scenario", "14"]).scenario is named("14")


@pytest.mark.parametrize(
    ("argv", "because"),
    [
        ("--scenario 99", "no scenario is named 99"),
        ("--scenario=", "no scenario is named"),
        ("--scenario 1 --letters ٣", "'٣' is not a whole number"),
        (f"--seed {'9' * 5000}", "is not a whole number from 0"),
        ("--nonsense", "unrecognized arguments: --nonsense"),
        ("--scenario 1 --letters many", "'many' is not a whole number"),
        ("--letters -1", "expected one argument|not a whole number"),
        ("--letters 5 --poison 6", "6 poison pills can't be among 5 letters"),
        ("--scenario 1 --partial 0.3", "--partial needs an outage"),
        ("--partial 1.5", "'1.5' is not a number from 0 to 1"),
        ("--live-per-minute nan", "'nan' is not a number"),
        ("--scenario 9 --down-hours 2", "--down-hours can't be added"),
        ("--scenario 3 --flapping 10/10", "can't be down for good as well"),
        ("--flapping 10", "'10' is not minutes up and minutes down, as in 10/10"),
        ("--consumer-delay 30", "needs a visibility timeout above that"),
        ("--schedule-minutes 0", "schedule_minutes: saw '0'"),
        ("--mode dry_run", "--mode dry_run: nothing goes back in it"),
        ("--max-attempts x --canary-size y", "canary_size: saw 'y'"),
        ("--policy somebody", "invalid choice: 'somebody'"),
        ("--policy native-move --max-attempts 3", "--max-attempts is a setting of ours"),
        ("--seeds 0", "not a whole number from 1"),
        ("--reports --policy native-move", "--reports: a consumer reports to ours; native-move"),
        ("--permanent --policy no-breaker", "--permanent: a consumer reports to ours; no-breaker"),
        ("--groups 4", "--groups are of FIFO queues: add --fifo"),
        ("--fifo --policy published-pattern", "sends without a message group"),
        ("--scenario 36:fifo --policy no-breaker", "sends without a message group"),
        ("--scenario 36:fifo --compare event-source", "sends without a message group"),
        ("--origin sns --policy no-breaker", "sends letters to a queue alone"),
        ("--origin lambda --reports", "no consumer of a queue is there"),
        ("--origin sns --fifo", "no order within message groups"),
        ("--origin sns --scenario 17", "no second source queue"),
        ("--origin rabbit", "invalid choice"),
        ("--beyond fail", "--beyond says what happens beyond what the consumer bears"),
        ("--capacity 5 --beyond explode", "invalid choice: 'explode'"),
        ("--capacity 0", "'0' is not a number from 0.1"),
        ("--capacity 5 --live-per-minute 300", "nothing is left for letters"),
        ("--capacity 5 --origin sns", "no consumer with a capacity"),
        ("--broken-kind 0.3", "--broken-kind says how many messages fail"),
        ("--broken-hours 3", "--broken-kind says how many messages fail"),
        ("--scenario 13 --broken-kind 0.3 --broken-hours 9", "tell one of the two"),
        ("--valid-hours 1 --origin postgres", "messages that are valid for a while"),
        ("--scen 1", "unrecognized arguments"),
    ],
)
def test_what_can_not_be_is_refused_with_a_sentence(capsys, argv: str, because: str) -> None:
    with pytest.raises(SystemExit) as refusal:
        play.main(argv.split())

    told = capsys.readouterr()
    assert refusal.value.code == 2
    assert any(reason in told.err for reason in because.split("|"))
    assert told.err.count("\n") == 1
    assert told.out == ""

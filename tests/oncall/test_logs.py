"""`redrive logs`, and `redrive show --logs`: what the function logged, and what a consumer logged about a letter."""

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest

from smart_redriver.oncall.deployment.logs import MOST_PAGES
from smart_redriver.oncall.terminal.terminal import Terminal
from tests.oncall.desk import Desk
from tests.oncall.fakes import LOG_GROUP
from tests.oncall.reported import BILLING, failed


def event(name: str, **fields: Any) -> str:
    return json.dumps({"level": "INFO", "service": "x", "message": name, **fields})


# The function's own log.


def test_each_event_is_a_line_with_its_fields_and_nothing_that_is_in_all(desk: Desk) -> None:
    desk.logs.write(LOG_GROUP, event("letter.parked", original_id="a", reason="EXPIRING", held={}))
    desk.logs.write(LOG_GROUP, "Traceback (most recent call last):\n  File x\nValueError: \x1b[31m")

    ran = desk("logs")

    assert "2026-01-01T00:00:00Z  letter.parked  original_id=a reason=EXPIRING\n" in ran.out
    assert "2026-01-01T00:00:00Z    File x\n2026-01-01T00:00:00Z  ValueError" in ran.out
    assert "\x1b" not in ran.out
    assert f"aws logs filter-log-events --log-group-name {LOG_GROUP} --start-time " in ran.out


def test_events_of_one_name_and_the_newest_of_many(desk: Desk) -> None:
    for number in range(5):
        desk.logs.write(LOG_GROUP, event("letter.parked", original_id=f"letter-{number}"))
        desk.logs.write(LOG_GROUP, event("another", original_id="x", why="after letter.parked"))

    ran = desk("logs", "--event", "letter.parked", "--limit", "2")

    assert [line for line in ran.out.splitlines() if "original_id" in line] == [
        "2026-01-01T00:00:00Z  letter.parked  original_id=letter-3",
        "2026-01-01T00:00:00Z  letter.parked  original_id=letter-4",
    ]
    assert "There is more" in ran.err


def test_what_is_older_is_left_out_and_nothing_is_said_to_be_nothing(desk: Desk) -> None:
    desk.logs.write(LOG_GROUP, event("letter.parked", original_id="a"))
    desk.world.clock.advance(3600)

    ran = desk("logs", "--since", "30m")

    assert "It logged nothing since 2026-01-01T00:30:00Z." in ran.out
    assert desk("logs", "--since", "2h", "--json").json["lines"][0]["event"]["original_id"] == "a"


def test_a_log_that_is_searched_page_by_page_is_searched_to_its_end_or_said_not_to_be(
    desk: Desk,
) -> None:
    desk.logs.write(LOG_GROUP, event("letter.parked", original_id="a"))
    desk.logs.pages = MOST_PAGES
    found = desk("logs", "--json").json
    desk.logs.pages = MOST_PAGES + 1
    given_up = desk("logs", "--json").json

    assert (len(found["lines"]), found["left_off"]) == (1, False)
    assert (len(given_up["lines"]), given_up["left_off"]) == (0, True)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ('a" }', "'a\" }' is not the name of an event"),
        ("", "--event '' is empty"),
        ("letter parked", "'letter parked' is not the name of an event"),
    ],
)
def test_what_is_no_events_name_is_misuse(desk: Desk, name: str, said: str) -> None:
    ran = desk("logs", "--event", name)

    assert ran.code == 2
    assert said in ran.err


NOISE = (
    json.dumps({"_aws": {"CloudWatchMetrics": []}, "LettersParked": 1}),
    json.dumps({"time": "2026", "type": "platform.report", "record": {"status": "success"}}),
    "START RequestId: c6af9ac6 Version: $LATEST",
    "END RequestId: c6af9ac6",
    "REPORT RequestId: c6af9ac6\tDuration: 3.2 ms",
    "INIT_START Runtime Version: python:3.14",
)


def test_metrics_and_lambdas_own_lines_are_left_out_unless_asked_for(desk: Desk) -> None:
    for text in (*NOISE, event("letter.parked", original_id="a"), "[1]", "END of a traceback"):
        desk.logs.write(LOG_GROUP, text)

    told = desk("logs", "--json", "--limit", "3").json
    everything = desk("logs", "--json", "--all").json

    assert [one["text"] for one in told["lines"]][1:] == ["[1]", "END of a traceback"]
    assert (told["lines"][0]["event"]["original_id"], told["left_off"]) == ("a", False)
    assert len(everything["lines"]) == 3 + len(NOISE)


def test_a_log_of_nothing_but_noise_says_so(desk: Desk) -> None:
    desk.logs.write(LOG_GROUP, NOISE[0])

    assert "It logged nothing but metrics and Lambda's own lines (--all) since" in desk("logs").out


# What a consumer logged about a letter.


def test_show_asks_the_consumers_log_for_lines_with_one_of_the_letters_ids(desk: Desk) -> None:
    (message_id,) = failed(desk, "a body")
    assert BILLING.log_group is not None
    assert BILLING.log_stream is not None
    for text, stream in (
        (f"charging {message_id}\n  \x1b[31mno funds", BILLING.log_stream),
        ("another letter", BILLING.log_stream),
        (f"{message_id} elsewhere", "another-stream"),
    ):
        desk.logs.write(BILLING.log_group, text, stream=stream)

    ran = desk("show", message_id, "--logs")
    told = desk("show", message_id, "--logs", "--json").json["log"]

    assert (
        f"  What its consumer logged:\n    2026-01-01T00:02:04Z  charging {message_id}\n" in ran.out
    )
    assert "another letter" not in ran.out
    assert "elsewhere" not in ran.out
    assert "\x1b" not in ran.out
    (line,) = told["lines"]
    assert line["text"].startswith(f"charging {message_id}")
    assert f"    {told['command']}\n" in ran.out
    words = shlex.split(told["command"])
    assert words[words.index("--log-stream-names") + 1] == BILLING.log_stream
    assert f'?"{message_id}"' in words[-1]


def test_on_a_screen_lines_of_a_consumers_log_are_cut_unless_all_of_them_is_wanted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six lines of JSON filled several screens."""
    (message_id,) = failed(desk, "a body")
    line = f"{message_id} {'x' * 5000}"
    for number in range(30):
        desk.logs.write(str(BILLING.log_group), f"{number} {line}", stream=str(BILLING.log_stream))
    monkeypatch.setattr(Terminal, "rows", 10)

    cut, whole = (desk("show", message_id, "--logs", *more).out for more in ((), ("--whole",)))

    assert "... 20 lines before: --whole\n" in cut
    assert cut.count("more characters: --whole") == 10
    assert f" 19 {message_id}" not in cut
    assert f" 29 {message_id} x" in cut
    assert whole.count(line) == 30


def test_without_logs_the_consumers_log_is_not_read(desk: Desk) -> None:
    (message_id,) = failed(desk, "a body")

    told = desk("show", message_id, "--json").json

    assert "log" not in told
    assert ("logs:FilterLogEvents", "log") not in desk.asked


def test_where_no_report_names_a_log_a_person_may(desk: Desk) -> None:
    (message_id,) = desk.dead_letters("a body")
    desk.logs.write("/ecs/orders", f"gave up on {message_id}")
    desk.world.clock.advance(3600)

    unknown = desk("show", message_id, "--logs")
    ran = desk("show", message_id, "--log-group", "/ecs/orders")

    assert unknown.code == 0
    assert "--log-group NAME searches that log for it" in unknown.err
    assert f"2026-01-01T00:02:04Z  gave up on {message_id}\n" in ran.out


def test_a_log_that_can_not_be_read_keeps_nobody_from_the_letter(desk: Desk) -> None:
    (message_id,) = failed(desk, "a body")

    ran = desk("show", message_id, "--logs")

    assert ran.code == 0
    assert "could not be read (ResourceNotFoundException). The same by hand:" in ran.err
    assert "aws logs filter-log-events --log-group-name /aws/lambda/billing" in ran.out
    assert "a body" in ran.out


def test_an_id_that_is_no_id_is_no_part_of_a_query(desk: Desk) -> None:
    (message_id,) = failed(desk, "a", consumer=replace(BILLING, request_id='x" ?"y'))

    told = desk("show", message_id, "--logs", "--json").json["log"]

    assert shlex.split(told["command"])[-1] == f'?"{message_id}"'


def test_a_log_group_without_a_name_is_misuse(desk: Desk) -> None:
    (message_id,) = desk.dead_letters("a body")

    ran = desk("show", message_id, "--log-group", " ")

    assert ran.code == 2
    assert "--log-group ' ' is empty: leave it out, or give a text." in ran.err
    assert desk.calls == []


def test_a_limit_beyond_all_numbers_of_the_machine_is_none(desk: Desk) -> None:
    assert desk("logs", "--limit", str(10**23)).code == 0

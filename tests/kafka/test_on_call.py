"""The command over topics: every verb on a log in memory, with the state in a file."""

import json
import re
from collections import Counter
from datetime import timedelta
from io import StringIO

import pytest

from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.model.circuit import Lease
from smart_redriver.engine.passes.circuit_keeper import is_next_turn_asked_for
from smart_redriver.kafka.engine.records import NewRecord
from smart_redriver.kafka.process import Configuration
from smart_redriver.oncall.terminal.terminal import Terminal
from tests.kafka.bench import Bench
from tests.kafka.desk import FILE, KafkaDesk


@pytest.fixture
def desk(tmp_path):
    return KafkaDesk(Bench(), tmp_path)


@pytest.fixture
def bench(desk):
    return desk.bench


def test_status_tells_the_circuit_and_the_depths(desk, bench):
    bench.die("a", "b")

    told = _status(desk)

    assert told["depths"] == {"source": 0, "dead_letters": 2, "parked": 0}
    assert told["circuit"]["state"] == "CLOSED"
    assert told["origin"] == "kafka"
    assert not told["unknown"]


def test_status_tells_that_no_process_is_at_work_and_that_it_has_no_alarms(desk, bench):
    """`Alarms: none` was read as all being well, and `Next look: within 5 min` as somebody looking."""
    before = desk("status").out
    bench.memory().save_pass(bench.run_pass().to_json(), bench.clock.now())
    at_work = desk("status").out
    bench.clock.advance(timedelta(hours=1).total_seconds())
    later = desk("status").out

    silent = "Process:     none is at work: `redrive doctor` says more"
    for told in (before, later):
        assert silent in told
        assert "Now:         No pass runs by itself: no process is at work." in told
        assert "Next:        nothing: no process is at work" in told
        assert "Next look" not in told
        assert "Alarms:      a process has none" in told
    assert silent not in at_work
    assert "Next look:   within 5 min" in at_work


def test_each_command_says_that_no_process_is_at_work_and_none_that_a_schedule_is_on(desk, bench):
    """The headline said that the next pass looks at the letters, and `--json` told of a schedule."""
    bench.die("a")
    [letter] = desk("letters", "--json").json["letters"]
    told = _status(desk)
    at_a_glance = desk("status", "--overview", "--json").json["homes"][0]["queues"][0]
    shown = desk("show", letter["message_id"])
    screen = desk("status", "--overview").out
    bench.memory().save_pass(bench.run_pass().to_json(), bench.clock.now())
    at_work = _status(desk)

    assert (told["passes"], told["schedule"], told["look_again_seconds"]) == (
        "no process",
        None,
        None,
    )
    for one in (told, at_a_glance):
        text = "No pass runs by itself: no process is at work. 1 letter waits."
        assert one["headline"]["text"] == text
    assert not at_a_glance["quiet"]
    assert "no pass runs" in screen
    assert "Waits for:   passes, of which none runs by itself: `redrive doctor`" in shown.out
    assert (at_work["passes"], at_work["schedule"]) == ("run", None)


def test_a_source_topic_that_is_gone_is_told_and_no_rate_of_before(desk, bench):
    """It said "Consumer bears about 8 a minute, drained by 00:03", with a topic that was deleted."""
    bench.die(*(f"m{number}" for number in range(12)))
    for _ in range(3):
        bench.run_pass()
        bench.work()
        bench.clock.advance(30)
    bench.die(*(f"n{number}" for number in range(12)))
    bench.log.delete("orders")

    report = bench.run_pass()
    bench.memory().save_pass(report.to_json(), bench.clock.now())
    ran = desk("status")

    told = "The source queue can't be read: DescribeTopic: UNKNOWN_TOPIC_OR_PART. 12 letters wait."
    assert report.headline == told
    assert f"Now:         {told}" in ran.out
    assert "Next:        nothing: the source queue can't be read" in ran.out
    assert told in desk("replay", "--all", "--from-dlq", "--dry-run").out
    assert told in desk("park", "--all", "--dry-run").out
    assert "queue orders not read" in desk("status", "--overview").out
    assert "its source queue, which can't be read" in desk("letters").out


def test_letters_that_are_out_do_not_count_among_those_that_wait(desk, bench):
    bench.die("a", "b", "c", "d", keys=["x", "x", "y", "z"])

    report = bench.run_pass()
    bench.memory().save_pass(report.to_json(), bench.clock.now())
    ran = desk("status")

    assert report.redriven == 3
    told = "3 letters are out since 00:00, and their outcome is not due yet. 1 letter waits."
    assert report.headline.startswith(told)
    assert f"Now:         {told}" in ran.out
    assert "DLQ:         4 letters" in ran.out


@pytest.mark.parametrize("order", ["key", "none"])
def test_what_waits_behind_letters_of_a_cause_that_is_down_waits_too(tmp_path, order):
    """With "81 of 566 letters wait", the other 485 seemed to be on their way."""
    bench = Bench(order=order)
    desk = KafkaDesk(bench, tmp_path)
    desk.file.write_text(desk.file.read_text().replace("[state]", f'order = "{order}"\n\n[state]'))
    keys = [f"key {number}" for number in range(6)]
    bench.die(*[f"bad {number}" for number in range(60)], keys=keys)
    bench.die(*[f"good {number}" for number in range(40)])
    for _ in range(4):
        bench.memory().save_pass(bench.run_pass().to_json(), bench.clock.now())
        bench.work(lambda value: "Down" if value.startswith(b"bad") else None)
        bench.clock.advance(30)
    bench.run_pass()

    told = _status(desk)["headline"]["text"]

    behind = ", and those in order behind (it|them)," if order == "key" else ""
    assert re.search(f" letters{behind} waits? for Down", told), told


def test_letters_are_shown_and_stay_where_they_are(desk, bench):
    bench.die("a", "b", "c")

    listed = desk("letters", "--body", "--json").json
    again = desk("letters", "--json").json

    assert sorted(one["body"] for one in listed["letters"]) == ["a", "b", "c"]
    assert len(again["letters"]) == 3
    assert bench.waiting == Counter([b"a", b"b", b"c"])


def test_show_has_own_headers_and_the_death(desk, bench):
    bench.die("a")
    (letter,) = desk("letters", "--json").json["letters"]

    told = desk("show", letter["message_id"], "--json").json

    assert told["message"]["body"] == "a"
    assert told["message"]["attributes"]["of"]["StringValue"] == "a"
    assert told["message"]["attributes"]["ErrorType"]["StringValue"] == "Boom"


def test_show_has_the_key(desk, bench):
    """Only a digest was shown, by which nobody finds a customer's messages."""
    bench.die("a", keys=["customer 7"])
    (letter,) = desk("letters", "--json").json["letters"]

    told = desk("show", letter["message_id"])

    assert "    Key (String): customer 7\n" in told.out


def test_headers_count_once_towards_the_size_of_a_letter(desk, bench, tmp_path):
    """A letter with large headers was refused once it was edited, for twice their size."""
    record = NewRecord(topic="orders", key=b"k", value=b"v", headers=(("large", b"h" * 600_000),))
    bench.log.write([record])
    bench.work(lambda _: "Boom")
    (letter,) = desk("letters", "--json").json["letters"]

    kept = str(tmp_path / "kept")
    ran = desk("edit", "--all", "--from-dlq", "--with", "echo w", "--export", kept, "--yes")

    assert letter["bytes"] == record.size
    assert ran.code == 0, ran.said
    assert bench.values("orders")[1:] == [b"w"]


def test_letters_shows_the_beginnings_of_large_bodies_and_what_shows_all_of_one(desk, bench):
    """`letters --body` sent twenty megabytes to a terminal."""
    bench.die("a" * 1_000_000, "b")
    [large] = [one for one in desk("letters", "--json").json["letters"] if one["bytes"] > 1_000]

    told = desk("letters", "--body").out
    as_json = desk("letters", "--body", "--json").json

    assert len(told) < 50_000
    assert f"\n... 983,616 more bytes: redrive show {large['original_id']} --whole\n" in told
    assert "\nb\n" in told
    assert {one["body"] for one in as_json["letters"]} == {"a" * 1_000_000, "b"}


def test_show_has_the_beginning_of_large_values_and_headers_and_whole_all_of_them(desk, bench):
    """Two megabytes went to a terminal."""
    bench.produce("a" * 2_000_000, keys=["k"])
    bench.work(lambda _: "B" * 50_000)
    [letter] = desk("letters", "--json").json["letters"]

    told = desk("show", letter["message_id"])
    whole = desk("show", letter["message_id"], "--whole")
    as_json = desk("show", letter["message_id"], "--json").json

    assert len(told.out) < 100_000
    assert "\n... 1,983,616 more bytes: --whole\n" in told.out
    assert "ErrorType (String): B" in told.out
    assert "a" * 2_000_000 in whole.out
    assert as_json["message"]["body"] == "a" * 2_000_000


def test_a_letter_is_done_though_its_topic_still_has_its_record(desk, bench):
    """It was said to be in the DLQ, and to wait for its turn."""
    bench.die("a")
    [first] = desk("letters", "--json").json["letters"]
    bench.run_pass()
    bench.work()
    bench.run_pass()
    positions = bench.log.committed("redrive-orders", "orders.DLT")
    bench.log.commit("redrive-orders", dict.fromkeys(positions, 0))

    shown = desk("show", first["original_id"])

    assert "is done, as its consumer reported" in shown.out
    assert "Waits for" not in shown.out


@pytest.mark.parametrize("order", ["key", "none"])
def test_what_is_done_in_the_retry_topic_counts_no_longer(tmp_path, order):
    """A topic drops no record from its middle: a letter was counted until those before it were done, too."""
    bench = Bench(1, order=order)
    desk = KafkaDesk(bench, tmp_path)
    desk.file.write_text(desk.file.read_text().replace("[state]", f'order = "{order}"\n\n[state]'))
    bench.die(*"abcdef")
    assert desk("pause", "--reason", "down", "--yes").code == 0
    bench.clock.advance(timedelta(hours=13).total_seconds())
    bench.run_pass()
    held = bench.values(bench.place.held)
    listed = {one["body"]: one for one in desk("letters", "--body", "--json").json["letters"]}
    ids = [listed[one]["original_id"] for one in "cd"]
    assert desk("replay", *ids, "--from-dlq", "--yes", "--even-though-paused").code == 0
    bench.work()

    told, [stuck] = _status(desk), desk("causes", "--json").json["queues"]
    listed = desk("letters", "--json").json["letters"]

    assert held == [b"a", b"b", b"c", b"d", b"e", b"f"]
    assert told["depths"]["dead_letters"] == 4
    assert sum(one["letters"] for one in stuck["groups"]) == 4
    assert len(listed) == 4


def test_causes_are_counted_by_what_records_tell(desk, bench):
    bench.die("a", "b")

    ((cause,),) = (one["groups"] for one in desk("causes", "--json").json["queues"])

    assert (cause["cause"], cause["letters"]) == ("Boom", 2)


def test_a_plan_tells_that_a_letter_goes_without_metadata_if_there_is_no_room(tmp_path):
    bench = Bench(max_message_bytes=1_000)
    desk = KafkaDesk(bench, tmp_path)
    desk.file.write_text(
        desk.file.read_text().replace("[state]", "max_message_bytes = 1000\n\n[state]")
    )
    bench.die("x" * 300)

    ran = desk("replay", "--all", "--from-dlq", "--yes", "--even-though-paused")

    *_, sent = bench.log.in_topic("orders")
    assert sent.value == b"x" * 300
    assert "RedriveTrail" not in dict(sent.headers)
    assert "Each keeps its metadata if there is room for it, and starts without" in ran.said


@pytest.mark.parametrize("out_of", ["DLQ", "parking lot"])
def test_a_replay_sends_each_once_with_its_key_and_headers(desk, bench, out_of):
    if out_of == "DLQ":
        bench.die("a", "b", "c")
        ran = desk("replay", "--all", "--from-dlq", "--yes", "--even-though-paused")
    else:
        desk.park("a", "b", "c")
        ran = desk("replay", "--all", "--yes")

    assert ran.code == 0, ran.said
    sent = [one for one in bench.log.in_topic("orders") if "RedriveTrail" in dict(one.headers)]
    assert Counter(one.value for one in sent) == Counter([b"a", b"b", b"c"])
    assert all(one.key == one.value and dict(one.headers)["of"] == one.value for one in sent)
    bench.work()
    assert Counter(bench.done) == Counter([b"a", b"b", b"c"])
    assert _status(desk)["depths"] == {
        "source": 0,
        "dead_letters": 0,
        "parked": 0,
    }


def test_what_was_replayed_is_not_sent_again_by_a_pass_or_a_person(desk, bench):
    bench.die("a", "b")
    bench.run_pass(mode=Mode.PAUSED)
    desk("replay", "--all", "--from-dlq", "--yes")

    bench.live(steps=6)
    desk("replay", "--all", "--from-dlq", "--yes")
    bench.work()

    assert Counter(bench.done) == Counter([b"a", b"b"])


def test_one_letter_in_the_middle_is_taken_and_the_others_stay(desk, bench):
    bench.die("a", "b", "c")
    ids = {one["body"]: one["message_id"] for one in _letters(desk)}

    assert desk("replay", ids["b"], "--from-dlq", "--yes").code == 0

    assert [one["body"] for one in _letters(desk)] == ["a", "c"]
    bench.live(steps=20)
    assert Counter(bench.done) == Counter([b"a", b"b", b"c"])


def test_parked_letters_are_listed_and_come_back(desk, bench):
    desk.park("a", "b")

    told = desk("parked", "--list", "--json").json
    bench.live(steps=4)

    assert len(told["letters"]) == 2
    assert not bench.done
    assert _status(desk)["depths"]["parked"] == 2


def test_a_deleted_letter_comes_back_by_undo_as_it_was(desk, bench, tmp_path):
    desk.park("a")
    file = tmp_path / "deleted.jsonl"

    deleted = desk("delete", "--all", "--export", str(file), "--yes", answer="1")
    gone = _status(desk)["depths"]["parked"]
    undone = desk("undo", str(file), "--export", str(tmp_path / "kept.jsonl"), "--yes")

    assert (deleted.code, gone, undone.code) == (0, 0, 0), deleted.said + undone.said
    assert _status(desk)["depths"]["parked"] == 1
    assert desk("replay", "--all", "--yes").code == 0
    (back,) = [one for one in bench.log.in_topic("orders") if "RedriveTrail" in dict(one.headers)]
    assert (back.key, back.value, dict(back.headers)["of"]) == (b"a", b"a", b"a")


def test_a_deleted_letter_of_the_dlq_topic_is_never_redriven(desk, bench, tmp_path):
    bench.die("a", "b")
    ids = {one["body"]: one["message_id"] for one in _letters(desk)}
    file = tmp_path / "deleted.jsonl"

    ran = desk("delete", ids["a"], "--from-dlq", "--export", str(file), "--yes", answer="1")
    bench.live(steps=8)

    assert ran.code == 0, ran.said
    assert bench.done == [b"b"]


def test_letters_of_a_file_go_to_their_topic(desk, bench, tmp_path):
    desk.park("a", "b")
    file = tmp_path / "kept.jsonl"
    desk("delete", "--all", "--export", str(file), "--yes", answer="2")

    ran = desk("import", str(file), "--to", "source", "--yes")
    bench.work()

    assert ran.code == 0, ran.said
    assert Counter(bench.done) == Counter([b"a", b"b"])


def test_an_export_leaves_them_where_they_are(desk, bench, tmp_path):
    desk.park("a", "b")
    file = tmp_path / "kept.jsonl"

    assert desk("export", str(file)).code == 0

    lines = [json.loads(one) for one in file.read_text().splitlines()]
    assert sorted(one["body"] for one in lines) == ["a", "b"]
    assert all("Record" in one["attributes"] for one in lines)
    assert _status(desk)["depths"]["parked"] == 2


@pytest.mark.parametrize("to", ["parking-lot", "source"])
def test_an_import_says_that_letters_new_to_the_ledger_are_sent_and_a_pass_removes_them_in_the_dlq(
    desk, bench, tmp_path, to
):
    bench.die("a")
    file = tmp_path / "kept.jsonl"
    assert desk("export", str(file), "--from-dlq").code == 0

    ran = desk("import", str(file), "--to", to, "--yes")
    twice = _status(desk)["depths"]
    report = bench.run_pass()
    bench.work()
    bench.clock.advance(60)

    assert "Letters that were never redriven or parked are not in the ledger" in ran.out
    assert (ran.code, twice["dead_letters"]) == (0, 1)
    assert twice["parked" if to == "parking-lot" else "source"] == 1
    assert (report.discarded, report.redriven) == (1, 0)
    assert _status(desk)["depths"]["dead_letters"] == 0
    assert bench.done == ([] if to == "parking-lot" else [b"a"])


def test_a_file_without_keys_is_imported(desk, bench, tmp_path):
    desk.park("a")
    file = tmp_path / "kept.jsonl"
    assert desk("delete", "--all", "--yes", "--export", str(file)).code == 0
    line = json.loads(file.read_text())
    del line["attributes"]["Key"]
    file.write_text(json.dumps(line) + "\n")

    ran = desk("import", str(file), "--to", "source", "--yes")

    assert ran.code == 0, ran.said
    assert bench.values("orders") == [b"a", b"a"]


@pytest.mark.parametrize("from_dlq", [False, True])
def test_an_edited_copy_has_its_key_and_headers_and_undo_reverts_it(
    desk, bench, tmp_path, from_dlq
):
    if from_dlq:
        bench.die('{"n":1}', keys=["k"])
    else:
        desk.park('{"n":1}', keys=["k"])
    where = ["--from-dlq"] if from_dlq else []
    file = tmp_path / "edited.jsonl"

    ran = desk("edit", "--all", *where, "--with", "sed s/1/2/", "--export", str(file), "--yes")
    assert ran.code == 0, ran.said
    (copy,) = [one for one in bench.log.in_topic("orders") if "RedriveTrail" in dict(one.headers)]
    bench.work(lambda _: "Boom")
    bench.run_pass(mode=Mode.PAUSED)
    undone = desk("undo", str(file), "--export", str(tmp_path / "kept.jsonl"), "--yes")

    assert (copy.key, copy.value.strip()) == (b"k", b'{"n":2}')
    assert dict(copy.headers)["of"] == b'{"n":1}'
    assert undone.code == 0, undone.said
    assert desk("replay", "--all", "--yes").code == 0
    assert bench.log.in_topic("orders")[-1].value == b'{"n":1}'


@pytest.mark.parametrize("change", ["s/Boom/Bang/", "s/customer/client/"])
def test_what_is_told_of_key_and_death_can_not_be_edited_away(
    desk, bench, tmp_path, monkeypatch, change
):
    desk.park("a", keys=["customer"])
    (letter,) = desk("parked", "--list", "--json").json["letters"]
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\nsed -i {change} $1\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))

    ran = desk("edit", letter["original_id"], "--export", str(tmp_path / "kept"), "--yes")

    assert ran.code != 0
    assert "no header of the message" in ran.said
    assert _status(desk)["depths"]["parked"] == 1


def test_a_pause_keeps_letters_and_resume_lets_them_go(desk, bench):
    bench.die("a")

    assert desk("pause", "--reason", "migration", "--yes").code == 0
    bench.live(steps=4)
    paused = list(bench.done)
    assert desk("resume", "--yes").code == 0
    bench.live(steps=8)

    assert (paused, bench.done) == ([], [b"a"])


def test_open_and_close_force_the_circuit(desk, bench):
    bench.die("a")

    desk("open", "--reason", "the provider is down", "--yes")
    opened = _status(desk)["circuit"]["state"]
    desk("close", "--reason", "it is back", "--yes")

    assert opened == "OPEN"
    assert _status(desk)["circuit"]["state"] == "CLOSED"


def test_history_tells_who_did_what_and_why(desk, bench):
    bench.die("a")
    desk("pause", "--reason", "migration", "--yes")

    (line, *_) = desk("history", "--json").json["changes"]

    assert (line["what"], line["why"]) == ("pause: begun", "migration") or line[
        "why"
    ] == "migration"


def test_an_audit_accounts_for_every_letter(desk, bench):
    bench.die("a", "b", "c")
    bench.live(steps=8)
    desk.park("d")

    told = desk("audit", "--json").json

    assert told["letters"] == 4
    assert not told["unexplained"]


def test_a_drain_is_an_order_to_the_process(desk, bench):
    bench.die(*(f"m{n}" for n in range(30)))
    bench.run_pass(mode=Mode.PAUSED)

    ran = desk("drain", "--no-follow", "--yes")

    assert ran.code == 0, ran.said
    assert _status(desk)["draining_until"]


def test_a_drain_is_followed_while_the_process_works_it_off(desk, bench):
    bench.die(*(f"m{n}" for n in range(30)))
    bench.run_pass(mode=Mode.PAUSED)

    def process_and_consumer():
        bench.run_pass(initial_window=5)
        bench.work()

    desk.meanwhile = process_and_consumer
    ran = desk("drain", "--yes")

    assert ran.code == 0, ran.said
    assert "The DLQ is empty" in ran.said
    assert len(bench.done) == len(set(bench.done)) == 30


def test_a_drain_takes_no_letter_that_is_out_for_one_that_came(desk, bench):
    """Letters in order keep their places while they are out: it said that as many had come."""
    bench.die(*(f"m{n}" for n in range(30)))
    bench.run_pass(mode=Mode.PAUSED)

    desk.meanwhile = bench.run_pass
    ran = desk("drain", "--yes", "--for", "1m")

    assert bench.values("orders")[30:]
    assert "30 left of 30" in ran.out
    assert "meanwhile" not in ran.out


@pytest.mark.parametrize("arguments", [("run", "--yes"), ("logs",)])
def test_what_a_function_would_do_is_refused_and_says_what_does_it(desk, bench, arguments):
    bench.die("a")
    bench.run_pass(mode=Mode.PAUSED)

    ran = desk(*arguments)

    assert ran.code == 1
    assert "redrive run --forever" in ran.said
    assert not ran.out
    assert not desk("history", "--json").json["changes"]


@pytest.mark.parametrize("headers", [(), (("x-original-topic", b"payments"),)])
def test_a_letter_of_none_of_several_topics_is_left_out_of_a_plan(tmp_path, headers):
    """Of a letter of `payments` it was said that it does not tell its topic."""
    desk = KafkaDesk(Bench(topics=["orders", "bills"]), tmp_path)
    desk.file.write_text(desk.file.read_text().replace('["orders"]', '["orders", "bills"]'))
    whose = NewRecord(topic="orders.DLT", key=b"k", value=b"whose?", headers=headers)
    desk.bench.log.write([whose])
    desk.bench.run_pass()
    assert desk.bench.parked == [b"whose?"]

    ran = desk("replay", "--all", "--dry-run")

    assert ran.code == 1
    assert (
        "No letter can be taken now (1: it names no listed target or topic as its origin)"
        in ran.err
    )


def test_looking_a_short_id_up_says_nothing_of_the_look(desk, bench):
    bench.die("a")
    (letter,) = _letters(desk)

    ran = desk("replay", _without_digest(letter["message_id"]), "--from-dlq", "--dry-run")

    assert ran.said.count("This look read") == 1


def test_a_dry_run_changes_nothing(desk, bench):
    bench.die("a")

    ran = desk("run", "--dry-run", "--json")

    assert ran.json["would"]["redriven"] == 1
    assert bench.waiting == Counter([b"a"])


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--dry-run",), "redrive run --dry-run --stack "),
        (("--reason", "for now"), "takes no --reason"),
    ],
)
def test_passes_for_ever_are_no_dry_run_and_have_no_reason(desk, monkeypatch, option, said):
    monkeypatch.setattr(Configuration, "run", lambda *_: pytest.fail("real passes run"))

    ran = desk("run", "--forever", str(desk.file), "--yes", *option)

    assert ran.code == 2
    assert said in ran.err


@pytest.mark.parametrize(
    "arguments", [("history",), ("parked",), ("pause", "--reason", "it", "--yes")]
)
def test_without_a_state_that_is_told_and_no_other_command_is_named(desk, arguments):
    desk.state.unlink()

    ran = desk(*arguments)

    assert ran.code == 1
    assert (
        f"The state {desk.state} is not there. The process makes it when it first runs" in ran.err
    )
    assert "`redrive" not in ran.err


def test_without_its_folder_neither_process_nor_command_begins_and_both_name_it(desk, tmp_path):
    missing = tmp_path / "not mounted"
    desk.state.unlink()
    desk.state = missing / "state"
    desk.file.write_text(FILE.format(state=desk.state))

    for arguments in (("run", "--forever", str(desk.file), "--yes"), ("history",), ("status",)):
        ran = desk(*arguments)
        assert ran.code == (3 if arguments == ("status",) else 1)
        assert f"The folder {missing} of the state is not there. Make it" in ran.said
        assert "`redrive" not in ran.err
    assert not missing.exists()


@pytest.mark.parametrize("order", ["key", "none"])
def test_a_thousand_parked_letters_go_back_once_each(tmp_path, order):
    desk = KafkaDesk(Bench(order=order, partitions=4), tmp_path)
    bench = desk.bench
    desk.file.write_text(desk.file.read_text().replace("[state]", f'order = "{order}"\n\n[state]'))
    desk.park(*(f"m{n}" for n in range(1_000)))

    ran = desk("replay", "--all", "--yes", "--rate", "0")
    bench.work()

    assert ran.code == 0, ran.said
    assert Counter(bench.done) == Counter(b"m%d" % n for n in range(1_000))
    assert _status(desk)["depths"]["parked"] == 0


def test_topics_that_share_a_dlq_topic_have_a_circuit_each(tmp_path):
    desk = KafkaDesk(Bench(topics=["orders", "bills"]), tmp_path)
    desk.file.write_text(desk.file.read_text().replace('["orders"]', '["orders", "bills"]'))
    desk.bench.die("a", topic="bills")

    opened = desk("open", "--reason", "they are down", "--queue", "bills", "--yes")
    states = {one["queue"]: one["circuit"]["state"] for one in _status(desk)["sources"]}
    ran = desk("replay", "--all", "--from-dlq", "--yes", "--even-though-paused")

    assert (opened.code, ran.code) == (0, 0), opened.said + ran.said
    assert states == {"orders": "CLOSED", "bills": "OPEN"}
    assert "It serves: orders, bills." in desk("status", "--queue", "bill").err
    assert [one.value for one in desk.bench.log.in_topic("bills")] == [b"a", b"a"]
    assert not desk.bench.log.in_topic("orders")


def test_no_more_letters_are_shown_than_were_asked_for(desk, bench):
    """It showed nine letters in order."""
    bench.die(*"abcdefghijkl")

    assert len(desk("letters", "--limit", "5", "--json").json["letters"]) == 5


def test_a_letter_that_no_pass_has_met_waits_for_what_keeps_its_own_topic(tmp_path):
    """With several topics it was said to wait for its turn."""
    bench = Bench(topics=["orders", "refunds"])
    desk = KafkaDesk(bench, tmp_path)
    text = desk.file.read_text().replace('["orders"]', '["orders", "refunds"]')
    desk.file.write_text(text)
    bench.memory().save_pass(bench.run_pass().to_json(), bench.clock.now())
    bench.die("a")
    bench.die("b", topic="refunds")
    assert desk("open", "--queue", "refunds", "--reason", "down", "--yes").code == 0

    listed = desk("letters", "--body", "--json").json["letters"]
    shown = {one["body"]: desk("show", one["message_id"]).out for one in listed}

    waits = {one["body"]: one["waits"]["for"] for one in listed}
    assert waits == {"a": "its turn", "b": "the next canary, or a live message that succeeds"}
    assert "Waits for:   the next canary" in shown["b"]
    assert "Waits for:   its turn" in shown["a"]


def test_what_a_pass_took_meanwhile_is_not_sent_by_a_person(desk, bench):
    bench.die("a", "b")
    listed = _letters(desk)
    bench.live(steps=8)

    ran = desk("replay", listed[0]["message_id"], "--from-dlq", "--yes")

    assert ran.code != 0
    assert Counter(bench.done) == Counter([b"a", b"b"])


def _without_digest(message_id):
    return message_id.rpartition("-")[0]


def _as_a_table_cuts_it(message_id):
    return message_id[:-8] + "…"


@pytest.mark.parametrize("shorten", [_without_digest, _as_a_table_cuts_it])
def test_the_beginning_of_an_id_is_enough(desk, bench, tmp_path, shorten):
    bench.die("a", "b", "c", keys=("one",))
    first, second, third = (shorten(one["message_id"]) for one in _letters(desk))

    shown = desk("show", first, "--json")
    replayed = desk("replay", first, "--from-dlq", "--yes")
    deleted = desk(
        "delete", second, "--from-dlq", "--yes", "--export", str(tmp_path / "gone"), answer="1"
    )
    parked = desk("park", third, "--yes")
    again = desk("show", third, "--json")

    assert [one.code for one in (shown, replayed, deleted, parked, again)] == [0] * 5
    assert shown.json["message"]["body"] == "a"
    assert (bench.values("orders")[3:], bench.parked) == ([b"a"], [b"c"])
    assert again.json["message"]["body"] == "c"
    assert not _letters(desk)


def test_a_topic_may_be_typed_with_its_dots(desk, bench):
    bench.produce("no place", topic=bench.place.dead_letters)
    (letter,) = _letters(desk)
    assert letter["message_id"].startswith("orders_DLT-")
    place = _without_digest(letter["message_id"]).removeprefix("orders_DLT-")

    shown = desk("show", f"{bench.place.dead_letters}-{place}", "--json")

    assert shown.code == 0, shown.err
    assert shown.json["message"]["body"] == "no place"


def test_an_offset_is_not_the_beginning_of_a_longer_one(desk, bench):
    bench.die(*(f"m{n}" for n in range(12)), keys=("one",))
    ids = [one["message_id"] for one in _letters(desk)]
    assert desk("replay", _without_digest(ids[1]), "--from-dlq", "--yes").code == 0

    ran = desk("replay", _without_digest(ids[1]), "--from-dlq", "--yes")

    assert _without_digest(ids[10]) == _without_digest(ids[1]) + "0"
    assert ran.code == 1, ran.said
    assert bench.values("orders")[12:] == [b"m1"]


def test_letters_at_one_offset_of_a_topic_that_was_made_anew_are_told_apart(desk, bench):
    bench.die("a", keys=("one",))
    (old,) = _letters(desk)
    assert desk("park", old["message_id"], "--yes").code == 0
    bench.create_again("orders")
    bench.die("b", keys=("one",))

    ran = desk("show", _without_digest(old["message_id"]))

    assert ran.code == 2
    assert "is the beginning of 2 ids" in ran.err


def test_letters_with_one_content_at_one_offset_of_two_topics_are_told_apart_by_the_later_ones_mark(
    desk, bench
):
    bench.die("a", keys=("one",))
    (old,) = _letters(desk)
    bench.run_pass(mode=Mode.PAUSED)
    assert desk("park", old["message_id"], "--yes").code == 0
    bench.create_again("orders")
    bench.die("a", keys=("one",))
    bench.clock.advance(60)

    (new,) = _letters(desk)
    begins, mark, digest = new["message_id"].rsplit("-", 2)

    assert old["message_id"] == f"{begins}-{digest}"
    assert "is the beginning of 2 ids" in desk("show", begins).err
    assert new["message_id"] in desk("show", f"{begins}-{mark[:4]}").said


def test_what_a_command_took_out_of_a_dlq_topic_that_was_created_again_stays_out(
    desk, bench, tmp_path
):
    """No process was at work to keep the new topic's id, so each command began at the topic's beginning."""
    bench.die("a")
    bench.live()
    bench.create_again("orders.DLT")
    bench.die("b", "c")

    ran = desk("delete", "--all", "--from-dlq", "--yes", "--export", str(tmp_path / "gone"))
    bench.clock.advance(60)

    assert ran.code == 0
    assert not _letters(desk)


def test_letters_of_a_parking_topic_that_was_created_again_are_all_there_and_can_be_replayed(
    desk, bench
):
    """Those at the places of letters that had been taken out before were not shown."""
    bench.run_pass()
    for _ in range(2):
        desk.park("a", "b", keys=("one",))
        assert desk("replay", "--all", "--yes").code == 0
        bench.work()
        bench.create_again("orders.DLT.parked")

    assert Counter(bench.done) == {b"a": 2, b"b": 2}


def test_a_letter_that_is_parked_again_at_its_place_of_before_can_be_replayed(desk, bench):
    """It was taken for a left-over copy and deleted: the new parking topic gave it the id that it had had before."""
    bench.run_pass()
    desk.park("a")
    assert desk("replay", "--all", "--yes").code == 0
    bench.work(lambda _: "Boom")
    bench.create_again("orders.DLT.parked")
    assert desk("park", "--all", "--yes", "--reason", "again").code == 0

    replayed = desk("replay", "--all", "--yes")
    bench.work()

    assert "Replayed 1 letter." in replayed.out
    assert bench.done == [b"a"]


@pytest.mark.parametrize("to", ["parking-lot", "source"])
@pytest.mark.parametrize("lose", ["expire", "create_again"])
def test_letters_that_a_parking_topic_has_lost_are_imported_if_the_person_says_so(
    desk, bench, tmp_path, to, lose
):
    """Those of a topic that was created again came back under ids of before, and a replay deleted them."""
    bench.run_pass()
    desk.park("a", "b")
    file = tmp_path / "kept.jsonl"
    assert desk("export", str(file)).code == 0
    if lose == "create_again":
        bench.create_again("orders.DLT.parked")
    for record in bench.log.in_topic("orders.DLT.parked"):
        bench.log.forget(record.position)
    bench.clock.advance(60)

    refused = desk("import", str(file), "--to", to, "--yes")
    imported = desk("import", str(file), "--even-though-there", "--to", to, "--yes")

    assert "Skipped 2: the ledger shows it as still there" in refused.err
    assert (imported.code, imported.err) == (0, "")
    if to == "parking-lot":
        assert _status(desk)["depths"]["parked"] == 2
        assert "Replayed 2 letters." in desk("replay", "--all", "--yes").out
    bench.live(steps=4)
    assert Counter(bench.done) == {b"a": 1, b"b": 1}


def test_a_letter_that_is_there_nevertheless_is_replaced_by_its_import(desk, bench, tmp_path):
    desk.park("a")
    file = tmp_path / "kept.jsonl"
    assert desk("export", str(file)).code == 0

    assert desk("import", str(file), "--even-though-there", "--yes").code == 0
    replayed = desk("replay", "--all", "--yes")
    bench.work()

    assert "Removed 1 left-over cop" in replayed.said
    assert bench.done == [b"a"]
    assert _status(desk)["depths"]["parked"] == 0


def test_letters_that_their_consumer_may_have_are_never_imported(desk, bench, tmp_path):
    desk.park("a")
    file = tmp_path / "kept.jsonl"
    assert desk("export", str(file)).code == 0
    assert desk("replay", "--all", "--yes").code == 0

    ran = desk("import", str(file), "--even-though-there", "--yes")

    assert "Skipped 1: it was sent back, and its consumer may have it." in ran.err
    assert _status(desk)["depths"]["parked"] == 0


def test_a_person_who_looks_on_sees_only_what_is_in_a_parking_topic_that_was_created_again(
    desk, bench
):
    """A letter that was gone was shown, and taking it out took out the one at its place."""
    desk.park("a", keys=("one",))
    seen = desk.session(Terminal(out=StringIO(), err=StringIO(), answers=StringIO())).letter_store
    assert [one.body for one in seen.parking_lot.receive(9, hidden_for=timedelta())] == ["a"]
    bench.create_again("orders.DLT.parked")
    desk.park("b", keys=("one",))
    bench.clock.advance(60)

    assert [one.body for one in seen.parking_lot.receive(9, hidden_for=timedelta())] == ["b"]


def test_a_command_does_not_take_out_again_what_another_took_while_it_waited(desk, bench):
    """It wrote a second note on each letter, and said that it had removed left-over copies."""
    desk.park("a", "b")
    memory, now = bench.memory(), bench.clock.now
    held = Lease(owner="another", expires_at=now() + timedelta(seconds=100))
    memory.acquire_lease(held, now())

    def another():
        desk.meanwhile = lambda: None
        memory.release_lease(held)
        assert desk("delete", "--all", "--yes", "--export", str(desk.state) + ".gone").code == 0

    desk.meanwhile = another

    ran = desk("replay", "--all", "--yes")

    notes = [one for one in bench.log.in_topic(bench.place.parked) if one.value is None]
    assert len(notes) == 2
    assert "left-over" not in ran.said
    assert "Replayed 0 letters." in ran.said


def test_a_command_that_waits_for_a_process_asks_it_for_the_lease(desk, bench):
    bench.die("a")
    memory, now = bench.memory(), bench.clock.now
    held = Lease(owner="process", expires_at=now() + timedelta(seconds=100))
    memory.acquire_lease(held, now())

    def give_way():
        if is_next_turn_asked_for(memory, "orders", "process", now()):
            memory.release_lease(held)

    desk.meanwhile = give_way
    before = now()

    parked = desk("park", "--all", "--yes", "--reason", "for now")

    assert parked.code == 0
    assert "is at work on this queue; waiting up to five minutes for it to end." in parked.err
    assert now() - before <= timedelta(seconds=5)


def _letters(desk):
    return desk("letters", "--body", "--json").json["letters"]


def _status(desk):
    (queue,) = desk("status", "--json").json["queues"]
    return queue

"""The process beside the broker: what its file says, passes one after another, and how it ends."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fakes.faults import Wire
from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.config.backends import Stopped
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import CallFailed, SettingsError
from smart_redriver.engine.model.circuit import Circuit, Lease, Orders
from smart_redriver.engine.passes.circuit_keeper import ask_for_next_turn
from smart_redriver.kafka.engine.connection import DeadLetterTopic
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.process import Configuration, EndingLog, Process, ToldOnce
from smart_redriver.kafka.sqlite import SqliteTable
from smart_redriver.oncall.cli import app
from smart_redriver.oncall.deployment.deployment_file import read_file
from smart_redriver.oncall.terminal.exits import Misused
from smart_redriver.oncall.verbs.run import run_forever
from tests.kafka.bench import Bench, move_another_over, nameless
from tests.kafka.desk import FILE

KAFKA = {
    "name": "orders",
    "servers": "broker:9092",
    "consumer_group": "shop",
    "topics": ["orders"],
    "dead_letters": "orders.DLT",
}
STATE = {"sqlite": "state"}
ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:AmazonMSK_shop-x"


class Life:
    """A process over a bench's log, in virtual time: while it pauses the consumer works, and then it is stopped."""

    def __init__(self, bench: Bench, file) -> None:
        self.bench = bench
        self.file = file
        self.seconds_left = 0.0
        self.events: list[str] = []
        self.told: list[tuple[str, dict[str, Any]]] = []
        #: What happens while the process pauses.
        self.meanwhile: Callable[[StateStore], object] = lambda _: None

    def note(self, event, /, **fields):
        self.events.append(event)
        self.told.append((event, fields))

    def run(self, seconds, fails=lambda _: None, log=None, state="mine") -> None:
        bench, self.seconds_left = self.bench, seconds
        table = SqliteTable.open(self.file, bench.clock.time, is_made=True)
        store = StateStore(table, "state", "orders")

        def pause(seconds):
            bench.clock.advance(seconds)
            self.seconds_left -= seconds
            bench.work(fails)
            self.meanwhile(store)
            if self.seconds_left <= 0:
                raise Stopped

        Process(
            DeadLetterTopic(log or bench.log, bench.place, bench.clock.now, state=state),
            store,
            Settings(initial_window=20, base_delay_seconds=0),
            journal=self.note,
            clock=bench.clock.now,
            pause=pause,
        ).run()
        table.close()


class Told:
    def __init__(self) -> None:
        self.events: list[str] = []
        self.journal = ToldOnce(lambda event, /, **_: self.events.append(event))

    def held(self, letter="a", reason="BACKOFF", redrives=0, event="letter.held") -> bool:
        """Whether that was told."""
        before = len(self.events)
        self.journal(event, original_id=letter, reason=reason, redrive_count=redrives)
        return len(self.events) > before


def test_that_a_letter_stays_is_told_once_for_each_reason_and_try():
    told = Told()

    assert [told.held(), told.held()] == [True, False]
    assert [told.held("b"), told.held("b"), told.held()] == [True, False, False]
    assert [told.held(reason="GROUP"), told.held()] == [True, True]
    assert [told.held(redrives=1), told.held(redrives=1)] == [True, False]
    assert [told.held(event="letter.stuck"), told.held(event="letter.stuck")] == [True, False]


def test_what_happens_to_a_letter_is_told_each_time_and_so_is_that_it_stays_then():
    told = Told()

    assert [told.held(event="letter.redriven") for _ in range(2)] == [True, True]
    assert [told.held(), told.held(event="letter.redriven"), told.held()] == [True, True, True]


def test_no_more_letters_are_remembered_than_are_in_memory(monkeypatch):
    monkeypatch.setattr("smart_redriver.kafka.process._LETTERS_REMEMBERED", 2)
    told = Told()

    assert [told.held(one) for one in "abcb"] == [True, True, True, False]
    assert told.held("a")


def test_the_passes_of_a_process_say_once_that_a_letter_stays(life):
    life.bench.die(*(f"m{n}" for n in range(40)), keys=["a", "b", "c"])

    life.run(1_800, fails=lambda value: "Refused" if value == b"m0" else None)

    of_each: dict[str, list[tuple[str, str, int]]] = {}
    for event, fields in life.told:
        if event.startswith("letter."):
            told = (event, fields["reason"], fields["redrive_count"])
            of_each.setdefault(fields["original_id"], []).append(told)
    assert life.events.count("letter.held") > 10
    for one in of_each.values():
        assert all(before != after for before, after in pairwise(one))


@pytest.fixture
def life(tmp_path):
    return Life(Bench(), tmp_path / "state.sqlite")


@pytest.mark.parametrize("lose", [Path.unlink, move_another_over], ids=["deleted", "replaced"])
def test_a_process_that_loses_its_state_between_passes_redrives_nothing_and_says_so(life, lose):
    def work(_store):
        life.meanwhile = lambda _: None
        life.bench.die("a", "b")
        lose(life.file)

    life.meanwhile = work

    life.run(600)

    assert "StateReplaced" in [one.get("code") for _, one in life.told]
    assert "FAILED" in [one.get("outcome") for _, one in life.told]
    assert not life.bench.done
    assert life.bench.waiting == Counter([b"a", b"b"])


def test_a_process_that_loses_its_state_within_a_pass_redrives_nothing_after_that(life):
    class Losing:
        def __getattr__(self, name):
            return getattr(life.bench.log, name)

        def write(self, records):
            life.file.unlink(missing_ok=True)
            return life.bench.log.write(records)

    life.bench.die(*(f"m{n}" for n in range(50)))

    life.run(600, log=Losing())

    assert "StateReplaced" in [one.get("code") for _, one in life.told]
    done = life.bench.done
    assert 0 < len(done) == len(set(done)) <= 10
    assert life.bench.produced == set(done) | set(life.bench.waiting)


def test_it_drains_the_dlq_topic_and_goes_on_with_what_comes(life):
    life.bench.die(*(f"m{n}" for n in range(30)))

    life.run(600)
    life.bench.die("late")
    life.run(600)

    assert Counter(life.bench.done) == Counter([b"late", *(b"m%d" % n for n in range(30))])
    assert not life.bench.waiting


def test_a_process_notes_its_start_before_its_first_pass(life):
    seen = []
    noted, began_at = life.note, life.bench.clock.now()

    def look(event, /, **fields):
        noted(event, **fields)
        if event == "topic.found":
            store = StateStore(
                SqliteTable.open(life.file, life.bench.clock.time), "state", "orders"
            )
            seen.append((store.load_start(), store.load_pass()))

    life.note = look
    life.run(5)

    assert seen == [(began_at, None)]


def test_the_first_start_says_how_many_records_it_found_and_that_it_reads_from_the_beginning(life):
    life.bench.die(*(f"m{n}" for n in range(30)))

    life.run(600)
    life.bench.die("a", "b")
    life.run(600)

    first, second = [fields for event, fields in life.told if event == "topic.found"]
    assert life.events.index("topic.found") < life.events.index("letter.redriven")
    assert first["records"] == 30
    assert first["reads_from"].startswith("its beginning")
    assert second == {"records": 2, "reads_from": "the committed position"}


def test_a_process_with_another_state_says_so_before_the_first_letter(life):
    life.bench.die("a", "b")
    life.run(600)
    life.bench.die("c")
    mine = len(life.events)

    life.run(600, state="another")

    def told(events):
        return [n for n, (_, one) in enumerate(events) if one.get("code") == "AnotherState"]

    later = life.told[mine:]
    assert not told(life.told[:mine])
    assert told(later)[0] < [event for event, _ in later].index("letter.redriven")

    mine = len(life.events)
    life.bench.die(*(f"m{n}" for n in range(9)))
    life.run(600, state="another")

    assert not told(life.told[mine:])


def test_what_a_process_found_is_told_once_a_broker_answers(life):
    bench = life.bench
    bench.die("a")
    gone_until = bench.clock.time() + 100

    class Gone:
        def __getattr__(self, name):
            if bench.clock.time() < gone_until:
                raise CallFailed(name, "NoAnswer", "no broker")
            return getattr(bench.log, name)

    life.run(600, log=Gone())

    assert [fields["records"] for event, fields in life.told if event == "topic.found"] == [1]


def test_it_gives_its_lease_back_when_it_is_stopped(life):
    life.bench.die("a", "b")

    life.run(3)

    clock = life.bench.clock
    table = SqliteTable.open(life.file, clock.time)
    store = StateStore(table, "state", "orders")
    assert store.acquire_lease(Lease(owner="next", expires_at=clock.now()), clock.now())
    table.close()
    assert life.events[-1] == "process.stopped"


@pytest.mark.parametrize("order", ["key", "none"])
@pytest.mark.parametrize("headers", [None, nameless], ids=["named", "nameless"])
def test_a_process_that_begins_anew_hears_at_once_of_what_was_out(tmp_path, order, headers):
    """It took minutes, or more redrives: of records without headers it did not know when they had come, and without
    an order no letter led it to what was out.
    """
    bench = Bench(headers_of_death=headers, keeps_headers=False, order=order)
    life = Life(bench, tmp_path / "state")
    bench.die("a", "b", "c")
    life.run(1)
    began = len(life.told)

    life.run(5)

    judged = [fields for event, fields in life.told[began:] if event == "batch.judged"]
    assert [one["reason"] for one in judged] == ["3 of 3 succeeded"]


@pytest.mark.parametrize("order", ["key", "none"])
def test_a_process_that_stood_by_hears_of_what_the_other_had_out(tmp_path, order):
    bench = Bench(order=order)
    other, life = (Life(bench, tmp_path / "state") for _ in range(2))

    def work(_store):
        life.meanwhile = lambda _: None
        bench.die("a", "b", "c")
        other.run(1)

    life.meanwhile = work

    life.run(400)

    assert "letter.redriven" in other.events
    assert "letter.redriven" not in life.events
    judged = [fields for event, fields in life.told if event == "batch.judged"]
    assert [one["reason"] for one in judged] == ["3 of 3 succeeded"]


@pytest.mark.parametrize("order", ["key", "none"])
@pytest.mark.parametrize("lasts", [1, 10], ids=["after the note", "before the note"])
def test_a_process_that_begins_anew_takes_nothing_for_done_that_may_have_come_back(
    tmp_path, order, lasts
):
    bench = Bench(headers_of_death=nameless, keeps_headers=False, order=order)
    life = Life(bench, tmp_path / "state")
    bench.die("bad", "b", "c")
    life.run(lasts, fails=lambda value: "Refused" if value == b"bad" else None)

    life.run(5)

    judged = [fields for event, fields in life.told if event == "batch.judged"]
    assert "3 of 3 succeeded" not in [one["reason"] for one in judged]


class Person:
    """Asks for the lease as a command does, has it for ten seconds, and comes again a minute later."""

    def __init__(self, clock) -> None:
        self._clock = clock
        self._comes_at = clock.now()
        self._lease: Lease | None = None
        self.waited: list[float] = []

    def __call__(self, store: StateStore) -> None:
        now = self._clock.now()
        if self._lease is not None:
            if now >= self._comes_at - timedelta(seconds=60):
                store.release_lease(self._lease)
                self._lease = None
        elif now >= self._comes_at:
            lease = Lease(owner="person", expires_at=now + timedelta(seconds=90))
            if store.acquire_lease(lease, now):
                self.waited.append((now - self._comes_at).total_seconds())
                self._lease, self._comes_at = lease, now + timedelta(seconds=70)
            else:
                ask_for_next_turn(store, "orders", lease.owner, now)


def test_a_person_who_waits_gets_the_lease_after_the_pass_at_work(life):
    """Commands waited for a minute and a half: the process kept its lease for two minutes of passes."""
    life.bench.die(*(f"m{n}" for n in range(300)), keys=["a", "b", "c"])
    life.meanwhile = person = Person(life.bench.clock)

    life.run(1_200)

    assert len(person.waited) > 5
    assert max(person.waited) <= 15
    assert Counter(life.bench.done) == Counter(b"m%d" % n for n in range(300))


def orders(life, given):
    """Give each of these orders at its second."""
    began, waiting = life.bench.clock.now(), dict(given)

    def meanwhile(store):
        passed = (life.bench.clock.now() - began).total_seconds()
        for second in [second for second in waiting if second <= passed]:
            circuit = store.load_circuit() or Circuit(queue="orders", window=20, changed_at=began)
            assert store.save_circuit(replace(circuit, orders=waiting.pop(second)))

    life.meanwhile = meanwhile


def test_letters_go_within_seconds_after_a_person_resumes(life):
    """The process looked again only by its schedule: `redrive drain` expired without a pass."""
    orders(life, {5: Orders(is_paused=True), 100: Orders()})
    life.run(30)
    life.bench.die(*(f"m{n}" for n in range(3)))

    life.run(60)
    assert life.bench.done == []
    life.run(30)

    assert Counter(life.bench.done) == Counter(b"m%d" % n for n in range(3))


def test_letters_go_within_a_minute_after_a_pause_ends(life):
    began = life.bench.clock.now()
    orders(life, {5: Orders(is_paused=True, paused_until=began + timedelta(seconds=60))})
    life.run(30)
    life.bench.die("m")

    life.run(100)

    assert life.bench.done == [b"m"]


@pytest.mark.parametrize(("topics", "reads"), [(["orders"], 9_216), (["orders", "bills"], 18_144)])
def test_a_day_without_letters_costs_as_many_requests_as_the_docs_say(topics, reads):
    bench, wire = Bench(topics=topics), Wire()
    seconds, before = 0, Counter[str]()

    def pause(passed):
        nonlocal seconds, before
        seconds += passed
        bench.clock.advance(passed)
        counted = Counter(call.operation for call in wire.calls)
        if seconds == 3_600:
            before = counted
        if seconds == 2 * 3_600:
            raise Stopped

    Process(
        DeadLetterTopic(bench.log, bench.place, bench.clock.now, state="mine"),
        bench.memory(wire),
        Settings(),
        journal=lambda _event, /, **_: None,
        clock=bench.clock.now,
        pause=pause,
    ).run()

    an_hour = Counter(call.operation for call in wire.calls) - before
    assert {name: 24 * count for name, count in an_hour.items()} == {
        "GetItem": reads,
        "PutItem": 576,
    }


def test_a_broker_that_is_gone_for_minutes_costs_nothing_but_time(life):
    bench = life.bench
    bench.die(*(f"m{n}" for n in range(10)))
    gone_from, gone_until = bench.clock.time() + 2, bench.clock.time() + 400

    class Flaky:
        def __getattr__(self, name):
            if gone_from <= bench.clock.time() < gone_until:
                raise CallFailed(name, "NoAnswer", "no broker")
            return getattr(bench.log, name)

    life.run(1_500, log=Flaky())

    assert Counter(bench.done) == Counter(b"m%d" % n for n in range(10))
    assert not bench.waiting
    assert "call.failed" in life.events


class Silent:
    """A cluster that leaves each question unanswered for twenty seconds."""

    def __init__(self, clock) -> None:
        self._clock = clock
        self.asked = 0

    def __getattr__(self, name):
        def call(*_):
            self.asked += 1
            self._clock.advance(20)
            raise CallFailed(name, "NoAnswer", "no broker")

        return call


@pytest.mark.parametrize("asked_after", [1, 2, 3])
def test_a_process_that_is_asked_to_end_waits_for_one_more_answer_at_most(life, asked_after):
    """It took a minute and a half without a broker, longer than what stops processes waits."""
    silent = Silent(life.bench.clock)

    life.run(0, log=EndingLog(silent, lambda: silent.asked >= asked_after))

    assert silent.asked == asked_after
    assert life.events[-1] == "process.stopped"


def test_a_process_that_is_asked_to_end_ends_its_pass_if_brokers_answer(life):
    life.bench.die("a", "b")

    life.run(0, log=EndingLog(life.bench.log, lambda: True))

    assert life.events.count("letter.redriven") == 2


def test_the_file_says_where_and_how(tmp_path):
    tables = {"kafka": KAFKA, "state": STATE, "settings": {"max_rate": 7}}

    read = Configuration.read(tables)

    assert (read.topics.held, read.topics.parked) == ("orders.DLT.held", "orders.DLT.parked")
    assert read.settings.max_rate == 7
    assert (str(read.file), read.table) == ("state", None)
    assert Configuration.read(tables | {"state": {"dynamodb": "table"}}).table == "table"


@pytest.mark.parametrize(
    ("tables", "named"),
    [
        ({}, {"name", "servers", "consumer_group", "topics", "dead_letters", "state"}),
        ({"kafka": KAFKA, "state": STATE, "kafak": {}}, {"kafak"}),
        ({"kafka": KAFKA | {"topics": ["orders.DLT"]}, "state": STATE}, {"dead_letters"}),
        ({"kafka": KAFKA | {"topics": ["orders", "orders"]}, "state": STATE}, {"topics"}),
        ({"kafka": KAFKA | {"parked": "orders"}, "state": STATE}, {"parked"}),
        ({"kafka": KAFKA | {"held": ".."}, "state": STATE}, {"held"}),
        ({"kafka": KAFKA | {"servers": "broker"}, "state": STATE}, {"servers"}),
        (
            {"kafka": KAFKA | {"consumer_group": "redrive-orders"}, "state": STATE},
            {"consumer_group"},
        ),
        ({"kafka": KAFKA | {"order": "some"}, "state": STATE}, {"order"}),
        ({"kafka": KAFKA | {"client": {"acks": "0"}}, "state": STATE}, {"client"}),
        ({"kafka": KAFKA, "state": {"sqlite": "a", "dynamodb": "b"}}, {"state"}),
        ({"kafka": KAFKA, "state": STATE, "settings": {"max_rat": 1}}, {"max_rat"}),
        ({"kafka": KAFKA, "state": STATE, "settings": {"max_attempts": 0}}, {"max_attempts"}),
        ({"kafka": KAFKA, "state": STATE, "settings": {"downstream": "till"}}, {"downstream"}),
        (
            {"kafka": KAFKA, "state": STATE, "settings": {"max_receive_count": 9}},
            {"max_receive_count"},
        ),
        ({"kafka": KAFKA, "state": STATE, "settings": [{"mode": "dry_run"}]}, {"settings"}),
        ({"kafka": KAFKA, "state": STATE, "settings": "dry_run"}, {"settings"}),
        ({"kafka": KAFKA, "state": "a"}, {"state"}),
    ],
)
def test_all_that_is_wrong_in_the_file_is_told_at_once(tables, named):
    with pytest.raises(SettingsError) as error:
        Configuration.read(tables)

    assert {fault.setting for fault in error.value.faults} == named


@pytest.mark.parametrize("servers", ["[::1]:9092", "[2001:db8::7]:9092,broker-2:9092"])
def test_a_broker_may_be_named_by_its_address(servers):
    assert Configuration.read({"kafka": KAFKA | {"servers": servers}, "state": STATE})


@pytest.mark.parametrize("servers", ["::1:9092", "[::1]", "[broker]:9092", "a:1,", "a:1 ,b:2"])
def test_no_other_text_names_brokers(servers):
    with pytest.raises(SettingsError):
        Configuration.read({"kafka": KAFKA | {"servers": servers}, "state": STATE})


def test_a_setting_that_there_is_not_is_told_with_what_was_given():
    tables = {"kafka": KAFKA, "state": STATE, "settings": {"max_rat": 7}}

    with pytest.raises(SettingsError) as refused:
        Configuration.read(tables)

    assert [(one.setting, one.seen) for one in refused.value.faults] == [("max_rat", 7)]


def test_a_password_is_in_no_fault():
    """It was in one for a table that was called `[client]`, or a password right under `[kafka]`."""
    client = {"sasl.password": "hunter2", "acks": "0"}
    kafka = KAFKA | {"client": client}

    for told in (
        {"kafka": kafka},
        {"kafka": [kafka]},
        {"kafka": KAFKA, "client": client},
        {"kafka": KAFKA | client},
        {"kafka": KAFKA | {"client": [client]}},
    ):
        with pytest.raises(SettingsError) as error:
            Configuration.read({"state": STATE, **told})
        assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "told",
    [
        {"kafka": KAFKA | {"dead_leters": "x"}},
        {"kafka": KAFKA, "setings": {}},
        {"kafka": KAFKA, "settings": []},
    ],
)
def test_a_value_at_a_wrong_place_is_said_to_be_hidden(told):
    """`saw 'str'` was taken for the value."""
    with pytest.raises(SettingsError, match="saw a value that is not shown"):
        Configuration.read({"state": STATE, **told})


@pytest.mark.parametrize(
    ("client", "named"),
    [
        ({"acks": "0", "group.id": "mine"}, ["acks, group.id"]),
        ({"securty.protocol": "SSL", "sasl.passwort": "hunter2"}, None),
        ({"security.protocol": "TLS"}, ["security.protocol"]),
        ({"socket.timeout.ms": 5}, ["socket.timeout.ms"]),
        ({"oauth_cb": "hunter2", "retry.backoff.ms": 3}, ["oauth_cb, retry.backoff.ms"]),
        ({"request.required.acks": 0, "linger.ms": 3}, ["linger.ms, request.required.acks"]),
        ({"default.topic.config": {"acks": 0}}, ["default.topic.config"]),
        ({"receive.message.max.bytes": 1000}, ["receive.message.max.bytes"]),
        ({"max.poll.interval.ms": 5, "client.rack": "a"}, ["max.poll.interval.ms"]),
        ({"max.in.flight.requests.per.connection": 9}, ["max.in.flight.requests.per.connection"]),
        ({"throttle_cb": 3}, ["throttle_cb"]),
        ({"ssl.ca.location": ["ca.pem"]}, ["ssl.ca.location"]),
        ({"sasl": {"password": "hunter2"}}, ["sasl"]),
    ],
)
def test_a_setting_that_librdkafka_refuses_is_named_when_the_file_is_read(client, named):
    with pytest.raises(SettingsError) as refused:
        Configuration.read({"kafka": KAFKA | {"client": client}, "state": STATE})

    assert [one.seen for one in refused.value.faults] == (named or list(client))
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("credentials", [{"secret": ARN}, {"iam_region": "eu-west-1"}])
def test_settings_of_the_file_need_no_credentials_that_come_later(credentials):
    kafka = KAFKA | credentials | {"client": {"debug": "broker"}}

    read = Configuration.read({"kafka": kafka, "state": STATE})

    assert read.topics.client["debug"] == "broker"


@pytest.mark.parametrize("credentials", [{"secret": ARN}, {"iam_region": "eu-west-1"}])
def test_credentials_of_the_file_are_refused_where_others_come_later(credentials):
    """They were read and did not count."""
    client = {"sasl.username": "me", "sasl.password": "hunter2"}

    with pytest.raises(SettingsError) as refused:
        Configuration.read({"kafka": KAFKA | credentials | {"client": client}, "state": STATE})

    assert [one.seen for one in refused.value.faults] == ["sasl.password, sasl.username"]


def test_a_command_says_which_setting_of_which_file_is_wrong(tmp_path):
    file = tmp_path / "orders.toml"
    file.write_text(FILE.format(state="state") + '[kafka.client]\n"securty.protocol" = "SSL"\n')

    for command in (["status", "--stack", str(file)], ["run", "--forever", str(file), "--yes"]):
        ran = CliRunner().invoke(app, command)
        assert ran.exit_code == 2
        assert str(file) in ran.stderr
        assert "securty.protocol" in ran.stderr


def test_what_a_function_lacks_in_its_environment_is_told_at_once():
    with pytest.raises(SettingsError) as error:
        Deployment.from_env({"ORIGIN": "kafka", "QUEUE_NAME": "shop.orders"})

    assert {one.setting for one in error.value.faults} == {"DYNAMODB_TABLE_NAME", "KAFKA"}


@pytest.mark.parametrize(
    "differs",
    [{"secret": "hunter2"}, {"iam_region": "Ireland"}, {"iam_region": "eu-west-1", "secret": ARN}],
)
def test_credentials_are_of_one_kind_and_named_as_aws_does(differs):
    with pytest.raises(SettingsError) as error:
        Configuration.read({"kafka": KAFKA | differs, "state": STATE})

    assert {one.setting for one in error.value.faults} <= differs.keys()


@pytest.mark.parametrize("text", [None, "no = toml = at all", "[rabbit]\nname = 'orders'"])
def test_a_file_that_is_none_is_told_in_a_sentence(tmp_path, text):
    file = tmp_path / "kafka.toml"
    if text is not None:
        file.write_text(text)

    with pytest.raises(Misused):
        run_forever(None, file)  # type: ignore[arg-type]


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path):
    """Some editors on Windows write one."""
    file = tmp_path / "kafka.toml"
    file.write_text(FILE.format(state="state"), encoding="utf-8-sig")

    assert read_file(file)


def test_topics_are_read_again_as_they_were_encoded():
    kafka = KAFKA | {"order": "none", "client": {"security.protocol": "SSL"}, "commits_first": True}
    place = Configuration.read({"kafka": kafka, "state": STATE}).topics

    assert KafkaTopics.read(json.loads(place.encode())) == place


def test_each_topic_has_a_circuit_of_its_own():
    read = Configuration.read({"kafka": KAFKA | {"topics": ["orders", "bills"]}, "state": STATE})

    assert read.deployment.source_names == ("orders", "bills")

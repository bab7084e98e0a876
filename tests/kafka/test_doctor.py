"""The doctor of topics: what it says of a cluster that is well, and of each thing that is wrong with one."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from smart_redriver.engine.errors import CallFailed
from smart_redriver.kafka.doctor import examine
from smart_redriver.kafka.engine.records import Partition
from smart_redriver.oncall.doctor.findings import Level
from tests.kafka.bench import Bench
from tests.kafka.desk import KafkaDesk

KEPT = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": "2000000",
}
SETTINGS = {
    "orders": {"cleanup.policy": "delete", "retention.ms": "604800000"},
    "orders.DLT": {"cleanup.policy": "delete", "retention.ms": "604800000"},
    "orders.DLT.held": KEPT,
    "orders.DLT.parked": KEPT,
}
ALL_RIGHTS = frozenset({"DESCRIBE", "READ", "WRITE"})


class Cluster:
    """What a cluster tells, as a test has it."""

    def __init__(self, rights=ALL_RIGHTS, failed=None, **settings: Mapping[str, str]) -> None:
        self._rights = rights
        self._failed = failed
        self._settings = SETTINGS | {
            name.replace("_", "."): {**SETTINGS[name.replace("_", ".")], **value}
            for name, value in settings.items()
        }
        self.asked = 0

    def settings(self, topic: str) -> Mapping[str, str]:
        self.asked += 1
        if self._failed:
            raise self._failed
        return self._settings[topic]

    def rights_on_topic(self, topic: str) -> frozenset[str] | None:
        return self._rights

    def rights_on_group(self, group: str) -> frozenset[str] | None:
        return self._rights


@pytest.fixture
def bench():
    made = Bench()
    made.die("a", "b")
    return made


@pytest.fixture
def desk(tmp_path, monkeypatch):
    administration = "smart_redriver.kafka.engine.client.KafkaAdministration"
    monkeypatch.setattr(administration, lambda *_: Cluster())
    bench = Bench()
    bench.state = "mine"
    return KafkaDesk(bench, tmp_path)


def found(bench, cluster, level=Level.WRONG):
    told = list(examine(bench.place, bench.log, cluster))
    return [one.what for one in told if one.level is level]


def test_of_a_cluster_that_is_well_nothing_is_wrong(bench):
    assert not found(bench, Cluster())
    assert not found(bench, Cluster(), Level.UNKNOWN)


@pytest.mark.parametrize(
    ("settings", "level", "words"),
    [
        ({"orders_DLT": {"cleanup.policy": "compact"}}, Level.WRONG, "orders.DLT is compacted"),
        ({"orders_DLT_held": {"cleanup.policy": "compact,delete"}}, Level.WRONG, "compacted"),
        ({"orders": {"cleanup.policy": "compact"}}, Level.UNKNOWN, "newest of its key"),
        ({"orders_DLT": {"retention.ms": "3600000"}}, Level.WRONG, "before it is held"),
        ({"orders": {"retention.ms": "3600000"}}, Level.UNKNOWN, "before it is read"),
        ({"orders_DLT": {"retention.bytes": "1000"}}, Level.UNKNOWN, "beyond 1000 bytes"),
        ({"orders_DLT_held": {"retention.ms": "604800000"}}, Level.WRONG, "would be lost"),
        ({"orders_DLT_parked": {"retention.bytes": "1000"}}, Level.WRONG, "would be lost"),
        ({"orders": {"max.message.bytes": "1000"}}, Level.WRONG, "takes 1,000 bytes"),
        ({"orders_DLT_held": {"max.message.bytes": "1048588"}}, Level.WRONG, "has headers"),
    ],
)
def test_each_setting_that_loses_letters_is_told(bench, settings, level, words):
    (told,) = found(bench, Cluster(**settings), level)

    assert words in told


def test_a_right_that_is_missing_is_named(bench):
    told = found(bench, Cluster(rights=frozenset({"DESCRIBE"})))

    assert "The process may not do with topic orders.DLT: Read." in told
    assert "The process may not do with topic orders: Write." in told
    assert "The process may not do with topic orders.DLT.held: Read, Write." in told
    assert "The process may not do with group redrive-orders: Read." in told


def test_what_a_cluster_does_not_tell_is_unknown_and_no_fault(bench):
    cluster = Cluster(rights=None)

    assert not found(bench, cluster)
    assert len(found(bench, cluster, Level.UNKNOWN)) == 6


def test_a_cluster_that_leaves_a_question_unanswered_is_asked_no_further(bench):
    cluster = Cluster(failed=CallFailed("DescribeConfigs", "NoAnswer"))

    assert len(found(bench, cluster, Level.UNKNOWN)) == 1
    assert cluster.asked == 1


def test_a_topic_that_is_not_there_comes_with_how_to_make_it(bench):
    bench.log.delete("orders.DLT.held")

    (wrong,) = [
        one for one in examine(bench.place, bench.log, Cluster()) if one.level is Level.WRONG
    ]

    assert wrong.what == "Topic orders.DLT.held is not there."
    assert "--config retention.ms=-1" in wrong.remedy


def test_of_brokers_that_do_not_answer_that_alone_is_told(bench):
    class Silent:
        def partitions(self, topic):
            raise CallFailed("DescribeTopic", "NoAnswer", "timed out")

    (told,) = examine(bench.place, Silent(), Cluster())  # type: ignore[arg-type]

    assert told.what.startswith("No broker of broker:9092 answers")


def test_records_that_were_forgotten_unread_are_counted(bench):
    bench.log.commit(bench.place.group, {Partition("orders.DLT", 0): 0})
    for record in bench.log.in_topic("orders.DLT"):
        if record.partition == 0:
            bench.log.forget(record.position)

    (told,) = found(bench, Cluster())

    assert told.startswith("1 records of orders.DLT were forgotten")


def test_a_group_that_has_committed_nothing_is_told():
    bench = Bench(consumer_group="nobody")

    (told,) = found(bench, Cluster(), Level.UNKNOWN)

    assert "nobody has committed nothing of orders" in told


def test_a_broker_that_drops_the_notes_of_commits_is_told(bench):
    """As Tansu does: the log never said there that two states were at work."""
    bench.state = "mine"
    bench.live()
    assert not found(bench, Cluster(), Level.UNKNOWN)

    for one, offset in bench.log.committed(bench.place.group, "orders.DLT").items():
        bench.log.commit(bench.place.group, {one: offset})

    (told,) = found(bench, Cluster(), Level.UNKNOWN)
    assert told.startswith("No commit of redrive-orders names its state")


#: Words of deployments on AWS.
OF_AWS = ("AWS", "policy", "Deploy", "deploy", "stack", "Redrive", "table")


@pytest.mark.parametrize(
    ("mishap", "told"),
    [
        (lambda desk: desk.state.unlink(), "state is not there"),
        (lambda desk: desk.bench.dynamodb.close(), "The state can't be read"),
        (lambda desk: desk.bench.log.delete("orders.DLT"), "Topic orders.DLT is not there"),
        (lambda desk: desk.set(mode="dry_run"), "The setting `mode` is dry_run"),
    ],
)
def test_where_nothing_is_on_aws_nothing_of_aws_is_named(desk, mishap, told):
    mishap(desk)

    ran = desk("doctor", "--all")

    assert ran.code == 1
    assert told in ran.out
    assert [one for one in OF_AWS if one in ran.said] == []


def test_a_file_of_a_process_is_no_database_and_its_password_is_not_printed(desk):
    desk.file.write_text(desk.file.read_text() + '[kafka.client]\n"sasl.password" = "hunter2"\n')

    ran = desk("doctor", "--database", str(desk.file))

    assert ran.code == 2
    assert f"`redrive doctor --stack {desk.file}`" in ran.err
    assert "hunter2" not in ran.said


def test_the_command_says_whether_a_process_is_at_work(desk):
    bench = desk.bench
    bench.die("a")

    before = desk("doctor")
    report = bench.run_pass().to_json()
    bench.memory().save_pass(report, bench.clock.now())
    after = desk("doctor")
    bench.clock.advance(timedelta(hours=1).total_seconds())
    later = desk("doctor")

    assert (before.code, after.code, later.code) == (1, 0, 1), after.said
    assert "No process has ended a pass" in before.out
    assert "no process is at work" in later.out


def test_a_process_is_at_work_from_its_start_on_as_its_first_pass_may_take_minutes(desk):
    bench = desk.bench
    bench.die("a")
    bench.memory().save_start(bench.clock.now())
    begun = desk("status").out
    plan = desk("replay", "--all", "--from-dlq", "--dry-run").out
    checked = desk("doctor", "--all").out
    bench.clock.advance(timedelta(hours=1).total_seconds())
    later = desk("status").out

    assert "no process is at work" not in begun + plan
    assert "Next look:   within 5 min" in begun
    assert "No process has ended a pass, but one has started." in checked
    assert "no process is at work" in later

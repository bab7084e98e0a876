"""A worker queue in Postgres, deployed by the real CDK command line: an outage with a bad letter,
and a person after it.

The function runs from its bundle on its schedule, with its role's rights and no others, and reaches the database over
verified TLS with the password that Secrets Manager has. Played once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from smart_redriver.postgres.migration import ROLE
from tests.e2e.checked_aws import checked_aws
from tests.e2e.worker_queue.world import BAD, CHARGES, DBNAME, ORDERS, World
from tests.postgres.certificates import Authority
from tests.postgres.conftest import prepare
from tests.postgres.tls_server import HOST, running_tls

GOOD = Counter(json.dumps({"order": number}) for number in ORDERS)
PARKED = Counter([json.dumps(BAD)])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """After the outage, drained. With IAM enforced."""
    ours = Authority("ours")
    authorities = ours.file(tmp_path_factory.mktemp("authorities"))
    certificate = ours.sign(HOST)
    with running_tls(authorities, certificate) as server, checked_aws(enforce_iam=True) as aws:
        prepare(server)
        with server.connect(DBNAME) as owner:
            world = World(aws, server, owner)
            world.fail()
            world.recover()
            world.drain()
            yield world


def test_during_the_outage_nothing_is_done_lost_or_parked_but_what_no_retry_heals(
    world: World,
) -> None:
    there = dict(world.during_outage)

    assert there.pop("jobs_parked") == PARKED
    assert sum(there.values(), Counter[str]()) == GOOD
    assert "booked" not in there


def test_afterwards_each_order_is_done_once_and_the_bad_one_is_parked(world: World) -> None:
    assert world.after == {"booked": GOOD, "jobs_parked": PARKED}


def test_what_became_of_each_redriven_job_was_heard(world: World) -> None:
    redriven = [one for one in world.log if one.name == "letter.redriven"]
    settled = world.rows("select settled_at is not null from jobs_redriven")
    heard = world.heard()

    assert settled == [(True,)] * len(GOOD)
    # Some were sent back while nobody could do them, and one failed of something else after.
    assert heard["failed"] > 1
    assert heard == {"succeeded": len(GOOD), "failed": heard["failed"]}
    assert len(redriven) == heard.total()
    again = "select count(*) from jobs_redriven where died_of = 'TimeoutError'"
    assert world.rows(again) == [(1,)]


def test_a_librarys_dead_jobs_are_done_in_their_rows_and_each_end_is_heard(world: World) -> None:
    """Beside the team's tables, by a function with the library's profile."""
    done = "select count(*) from river_job where state = 'completed' and attempt = 1"
    heard = "select settled_at is not null, returned_as from river_redriven"

    assert world.rows(done) == [(CHARGES,)]
    assert world.rows(heard) == [(True, None)] * CHARGES


def test_no_pass_is_refused_anything(world: World) -> None:
    """Neither by IAM, which is enforced, nor by the database."""
    passes = [one.fields for one in world.log if one.name == "pass.finished"]

    assert passes
    assert [one["faults"] for one in passes if one["faults"]] == []
    # On a busy machine a tick may meet the pass of the one before.
    assert {one["outcome"] for one in passes} <= {"DONE", "IDLE", "WAITING", "LEASE_HELD"}


def test_the_functions_sessions_are_its_roles_and_encrypted(world: World) -> None:
    sessions = world.rows(
        "select usename, ssl from pg_stat_ssl join pg_stat_activity using (pid)"
        f" where application_name = 'smart-redriver' and usename = '{ROLE}'"
    )

    assert sessions
    assert set(sessions) == {(ROLE, True)}


# -- a person looks -------------------------------------------------------------------------------


def test_status_and_causes_tell_what_is_in_the_tables(world: World) -> None:
    status = world.redrive("status", "--queue", "orders", "--json")
    causes = world.redrive("causes", "--queue", "orders", "--json")

    (queue,) = status.json["queues"]
    (groups,) = (one["groups"] for one in causes.json["queues"])
    assert (queue["queue"], queue["origin"]) == ("orders", "postgres"), status.said
    assert queue["depths"] == {"source": 0, "dead_letters": 0, "parked": 1}
    assert queue["unknown"] == {}
    assert [(one["cause"], one["in_dlq"], one["parked"]) for one in groups] == [
        (world.permanent, 0, 1)
    ]


def test_the_doctor_finds_database_role_and_schedule_well(world: World) -> None:
    """Nobody is paged here."""
    found = world.redrive("doctor", "--json")

    assert {one["queue"] for one in found.json["queues"]} == {"orders", "charges"}
    for told in found.json["queues"]:
        well = [one["what"] for one in told["findings"] if one["level"] == "good"]
        others = [one["what"] for one in told["findings"] if one["level"] != "good"]
        assert "The database: TLS, verified." in well, found.said
        assert len(others) == 2, others
        assert all(one.startswith("Nobody is subscribed to") for one in others)


def test_without_the_file_of_authorities_a_person_is_told_to_name_it(world: World) -> None:
    refused = world.redrive("replay", "--all", "--queue", "orders", "--yes", PGSSLROOTCERT="")

    assert refused.code != 0
    assert "Name your copy of it: PGSSLROOTCERT=" in refused.err


def test_the_parked_letter_is_replayed_once_and_done_after_a_fix(world: World) -> None:
    (letter,) = world.redrive("parked", "--queue", "orders", "--list", "--json").json["letters"]
    world.takes_bad = True

    replay = ("replay", letter["original_id"], "--queue", "orders", "--yes", "--reason", "mended")

    replayed = world.redrive(*replay)
    there = world.places()
    again = world.redrive(*replay)
    world.live()

    assert letter["reason"] == "PERMANENT"
    assert (replayed.code, "Replayed 1 letter." in replayed.out) == (0, True), replayed.said
    assert there == {"booked": GOOD, "jobs": PARKED}
    assert again.code != 0, again.said
    assert world.places() == {"booked": GOOD + PARKED}

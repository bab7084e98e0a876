"""A person on call for a library's table: what they can do there, and what they are told of the rest."""

from collections.abc import Iterator

import pytest

from emulator.postgres import PostgresServer
from tests.postgres.bench import Bench
from tests.postgres.conftest import new_database
from tests.postgres.desk import PostgresDesk
from tests.postgres.libraries import serve
from tests.postgres.test_profiles import LIVES


@pytest.fixture(params=["river", "solid_queue", "good_job"])
def desk(server: PostgresServer, request) -> Iterator[PostgresDesk]:
    """With one dead job of a library."""
    with new_database(server) as name, Bench(server, name) as bench:
        serve(bench, request.param)
        bench.owner.execute(LIVES[request.param][0])
        yield PostgresDesk(bench)


def test_a_letter_is_seen_parked_and_sent_back_in_its_row(desk):
    jobs = desk.bench.place.jobs
    (before,) = desk.bench.rows(f"select id from {jobs}")

    assert ("charge" if jobs == "river_job" else "Declined") in desk("causes").out
    assert desk("show", "dlq-1").code == 0
    assert desk("park", "--all", "--yes").code == 0
    assert desk.bench.rows("select id from jobs_parked") == [(1,)]
    replayed = desk("replay", "--all", "--yes")

    assert replayed.code == 0, replayed.said
    assert desk.bench.rows("select id from jobs_parked") == []
    assert desk.bench.rows(LIVES[desk.bench.place.profile][1]) == [
        LIVES[desk.bench.place.profile][2]
    ]
    assert desk.bench.rows(f"select id from {jobs}") == [before]


def test_an_export_has_the_letter_and_leaves_it(desk, tmp_path):
    file = tmp_path / "kept.jsonl"

    told = desk("export", str(file), "--from-dlq")

    assert told.code == 0, told.said
    assert len(file.read_text().splitlines()) == 1
    assert desk.bench.rows("select count(*) from jobs_redriven") == [(0,)]


@pytest.mark.parametrize(
    "given",
    [
        ("delete", "--all", "--from-dlq", "--yes"),
        ("edit", "--all", "--from-dlq", "--with", "cat", "--yes"),
        ("import", "FILE", "--yes"),
        ("import", "FILE", "--to", "source", "--yes"),
        ("undo", "FILE", "--yes"),
    ],
    ids=lambda given: " ".join(given[:2]),
)
def test_what_is_the_librarys_to_do_is_refused_with_a_sentence(desk, given, tmp_path):
    file = tmp_path / "kept.jsonl"
    file.write_text("")

    told = desk(*(str(file) if one == "FILE" else one for one in given))

    assert told.code == 1
    assert f"The jobs of {desk.bench.place.jobs} are {desk.bench.place.profile}'s" in told.err
    assert "Nothing was changed" in told.err

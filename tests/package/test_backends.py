"""Each kind of queue is one record: what it brings is there, and nobody else names its room."""

from __future__ import annotations

import subprocess
import sys

import pytest

from smart_redriver.engine.config.backends import BACKENDS, IN_SQS
from smart_redriver.engine.config.targets import Origin
from tests.package.imports import ROOT, graph_of, read_modules

PARTS = ("process", "connection", "entry", "letter_store", "checks", "location")
PRODUCT = ("lambdas", "smart_redriver", "stacks")
#: Each backend outside of SQS, by the name of its room, with the files outside of it that name it.
ROOMS = {
    "postgres": {
        "smart_redriver/cdk/__init__.py",
        "smart_redriver/engine/config/backends.py",
        "smart_redriver/engine/config/targets.py",
    },
    "kafka": {
        "smart_redriver/cdk/__init__.py",
        "smart_redriver/engine/config/backends.py",
        "smart_redriver/engine/config/targets.py",
    },
}
#: What each brings not: only topics have a process.
LACKS = {Origin("postgres"): {"process"}}
CONSTRUCTS = {
    "postgres": "smart_redriver.postgres.cdk.redriver",
    "kafka": "smart_redriver.kafka.cdk.redriver",
}


def test_every_origin_has_a_record() -> None:
    assert set(BACKENDS) == set(Origin)
    assert set(Origin) - set(IN_SQS) == {Origin(room) for room in ROOMS}


@pytest.mark.parametrize("origin", Origin)
@pytest.mark.parametrize("part", PARTS)
def test_what_a_record_names_is_there(origin: Origin, part: str) -> None:
    if getattr(BACKENDS[origin], part):
        assert BACKENDS[origin].load(part) is not None
    else:
        assert part in LACKS.get(origin, {"location", "process"})


@pytest.mark.parametrize("room", ROOMS)
def test_a_function_needs_only_the_engine_room_of_its_backend(room: str) -> None:
    backend = BACKENDS[Origin(room)]

    for part in filter(None, (backend.connection, backend.location)):
        assert part.startswith(f"smart_redriver.{room}.engine.")


@pytest.mark.parametrize("room", ROOMS)
def test_a_backend_is_named_in_three_files_outside_of_its_room(room: str) -> None:
    files = {
        path.relative_to(ROOT).as_posix()
        for folder in PRODUCT
        for path in (ROOT / folder).rglob("*.py")
        if not path.is_symlink() and room in path.read_text().lower()
    }

    outside = {one for one in files if not one.startswith(f"smart_redriver/{room}/")}
    assert outside == ROOMS[room]
    assert len(outside) <= 3


@pytest.mark.parametrize("room", ROOMS)
def test_only_the_public_names_of_the_cdk_side_import_a_backend(room: str) -> None:
    inside = f"smart_redriver.{room}."
    product = {
        name: imports
        for name, imports in graph_of(read_modules(), is_whole=True).items()
        if name.startswith("smart_redriver.") and not name.startswith(inside)
    }

    leaning = {
        name for name, imports in product.items() if any(one.startswith(inside) for one in imports)
    }
    assert leaning == {"smart_redriver.cdk"}


@pytest.mark.parametrize("room", ROOMS)
def test_a_backends_construct_can_be_imported_before_anything_else(room: str) -> None:
    """`smart_redriver.cdk` makes it public, and so imports what imports it."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {CONSTRUCTS[room]}"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )

    assert done.returncode == 0, done.stderr

"""Back to the first edition and forward again, by the real CDK command line, with letters everywhere:
no item is deleted for it.

The first edition is what this repository's history has of it. One local AWS,
on which each step goes on from the one before.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from demo.event_log import Event
from demo.orders import Order
from demo.stack import APP_DIR, DeployedStack
from emulator import cdk
from emulator.process import LocalAws
from tests.e2e.checked_aws import checked_aws

#: The first edition.
FIRST_EDITION = "841e543"
CONTEXT = {"with_sample_consumer": "true", "last_chance_seconds": "0"}
_MINUTE = 60.0
#: Virtual minutes in which all is well again.
_PATIENCE = 180


def checked_out(folder: Path) -> Path:
    """The first edition's files, with the tools of this one."""
    git = shutil.which("git")
    found = git and subprocess.run(
        [git, "archive", "--format=zip", FIRST_EDITION],
        cwd=APP_DIR,
        capture_output=True,
        check=False,
    )
    if not found or found.returncode:
        pytest.skip(f"the repository's history, with {FIRST_EDITION} in it, is not here")
    with zipfile.ZipFile(BytesIO(found.stdout)) as archive:
        archive.extractall(folder)
    settings = json.loads((folder / "cdk.json").read_text())
    paths = f"PYTHONPATH={folder}{os.pathsep}{folder / 'lambdas'}"
    settings["app"] = f"env {shlex.quote(paths)} {shlex.quote(sys.executable)} app.py"
    (folder / "cdk.json").write_text(json.dumps(settings))
    return folder


@dataclass
class Voyage:
    """A stack that is deployed over and over, with orders coming in all the time."""

    aws: LocalAws
    outputs: list[dict[str, str]] = field(default_factory=list)
    sent: dict[str, Order] = field(default_factory=dict)
    events: dict[str, list[Event]] = field(default_factory=dict)
    #: The circuit's state after the last pass, and what each edition found it in.
    state: str = ""
    left: dict[str, str] = field(default_factory=dict)
    _number: int = 0

    def deploy(self, edition: str, folder: Path) -> None:
        outdir = self.aws.work_dir / f"{len(self.outputs)}-{edition}"
        self.outputs.append(cdk.deploy(self.aws, folder, CONTEXT, outdir))
        self.stack = DeployedStack(self.aws, self.outputs[-1])
        self.events[edition] = []
        # What was said since, by the edition before or this one: a clock that nobody moves goes on by itself.
        passes = [one for one in self.stack.redriver_log.fresh() if one.name == "pass.finished"]
        self.left[edition] = str(passes[-1].fields["circuit_after"]) if passes else self.state

    def live(self, edition: str, minutes: int, *, poison: int = 0) -> None:
        """Minutes with an order in each, and poison in the first."""
        for minute in range(minutes):
            self.send(1)
            self.send(poison if minute == 0 else 0, is_poison=True)
            self.aws.pass_time(_MINUTE, step=_MINUTE)
            self.events[edition] += self.stack.redriver_log.fresh()
        self.state = str(self.reports(edition)[-1]["circuit_after"])

    def send(self, count: int, *, is_poison: bool = False) -> None:
        orders = [Order(number=self._number + index, is_poison=is_poison) for index in range(count)]
        self._number += count
        if orders:
            self.sent |= self.stack.send(orders)

    def reports(self, edition: str) -> list[Mapping[str, Any]]:
        """What its passes reported, but those that found another at work."""
        return [one.fields for one in self.events[edition] if one.name == "pass.finished"]

    @property
    def poison(self) -> set[str]:
        return {one for one, order in self.sent.items() if order.is_poison}


@pytest.fixture(scope="module")
def voyage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Voyage]:
    """An outage under this edition, the first edition while it lasts and when it is over, and this one again."""
    first = checked_out(tmp_path_factory.mktemp("first"))
    with checked_aws() as aws:
        cdk.prepare(aws)
        voyage = Voyage(aws)
        voyage.deploy("this", APP_DIR)
        voyage.live("this", 15, poison=2)
        voyage.stack.set_dependency(is_down=True)
        voyage.live("this", 30)
        voyage.deploy("first", first)
        voyage.live("first", 10)
        voyage.stack.set_dependency(is_down=False)
        voyage.live("first", 15, poison=1)
        voyage.deploy("again", APP_DIR)
        for _ in range(0, _PATIENCE, 5):
            voyage.live("again", 5)
            depths = voyage.stack.depths()
            if not depths.source + depths.dead_letters:
                break
        yield voyage


def test_every_edition_keeps_queues_and_table(voyage: Voyage) -> None:
    stateful = ("SourceQueueUrl", "DeadLetterQueueUrl", "ParkingLotQueueUrl", "StateTableName")

    assert len(voyage.outputs) == 3
    assert len({tuple(one[name] for name in stateful) for one in voyage.outputs}) == 1


def test_the_first_edition_goes_on_with_what_this_one_wrote(voyage: Voyage) -> None:
    reports = voyage.reports("first")

    assert reports
    assert not [fault for report in reports for fault in report["faults"]]
    assert {report["outcome"] for report in reports} <= {"DONE", "IDLE", "WAITING", "LEASE_HELD"}
    assert voyage.left["first"] != "CLOSED"
    assert reports[0]["circuit_before"] == voyage.left["first"]
    assert any(report["redriven"] for report in reports)


def test_this_edition_goes_on_with_what_the_first_wrote(voyage: Voyage) -> None:
    reports = voyage.reports("again")

    assert not [fault for report in reports for fault in report["faults"]]
    assert voyage.stack.circuit().state == "CLOSED"


def test_no_letter_is_lost_and_none_is_parked_but_poison(voyage: Voyage) -> None:
    depths = voyage.stack.depths()
    parked = set(voyage.stack.parked())

    assert (depths.source, depths.dead_letters) == (0, 0)
    assert len(voyage.poison) == 3
    assert parked == voyage.poison
    assert voyage.stack.processed() == set(voyage.sent) - voyage.poison

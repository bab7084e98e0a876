"""What a shell offers at Tab, and what is said to an option before its verb."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError
from typer._completion_classes import BashComplete

from fakes.faults import Wire, refuse
from simulator.world import SOURCE
from smart_redriver.oncall.cli import Asked
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.terminal import Terminal
from tests.oncall.desk import COMMAND, Desk
from tests.oncall.reported import DECLINED, declined, report


def offered(desk: Desk, wire: Wire, *typed: str, incomplete: str = "") -> list[str]:
    def open_session(asked: Asked) -> Session:
        return desk.session(wire, Terminal(), asked)

    shell = BashComplete(COMMAND, {"obj": open_session}, "redrive", "_REDRIVE_COMPLETE")
    return [one.value for one in shell.get_completions(list(typed), incomplete)]


def test_ids_causes_reasons_and_queues_are_completed(desk: Desk) -> None:
    ids = desk.dead_letters("a", "b")
    report(desk, *(declined(one) for one in ids))
    desk.park()

    assert offered(desk, Wire(), "show") == sorted(ids)
    assert offered(desk, Wire(), "replay", incomplete=ids[0][:7]) == [ids[0]]
    assert offered(desk, Wire(), "replay", "--cause", incomplete=DECLINED[:3]) == [DECLINED]
    assert offered(desk, Wire(), "parked", "--parked-as", incomplete="MA") == ["MAX_ATTEMPTS"]
    assert offered(desk, Wire(), "status", "--queue") == [SOURCE]


def test_where_nothing_can_be_asked_nothing_is_offered(desk: Desk) -> None:
    refused = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "Any")
    wire = Wire(lambda _: refuse(refused))

    assert offered(desk, wire, "show") == []


@pytest.mark.parametrize("option", ["--queue", "--stack", "--json", "--yes"])
def test_an_option_before_its_verb_is_told_where_it_belongs(
    desk: Desk, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = desk(option, "orders", "status")

    assert ran.code == 2
    assert f"{option} comes after the command: `redrive COMMAND {option} ...`." in " ".join(
        capsys.readouterr().err.split()
    )

"""Real poison pills, parked by the deployed stack, and the real command to deal with them. A pill for each test."""

import json
import shlex
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from demo.orders import Order
from emulator.environments import ROOT
from tests.e2e.oncall_command import OnCall

#: Parked, and left alone by every test.
LISTED, SHOWN, EDITED, VALIDATED, REPLAYED, DELETED, REWRITTEN = range(7)
_MINUTES_TO_PROCESS = 3
_MINUTE = 60.0


@pytest.fixture(scope="module")
def pills(on_call: OnCall) -> list[str]:
    """Ids of the pills, parked."""
    return on_call.park_poison(7)


def test_status_tells_of_the_parked_letters_and_the_last_pass(
    on_call: OnCall, pills: list[str]
) -> None:
    ran = on_call("status", "--json")

    (told,) = ran.json["queues"]
    assert ran.code == 0, ran.err
    assert told["queue"] == on_call.stack.queue_name
    assert told["depths"]["parked"] == on_call.stack.depths().parked
    assert told["circuit"]["state"] == on_call.stack.circuit().state
    assert told["last_pass"]["outcome"] in ("DONE", "IDLE", "WAITING")
    assert told["unknown"] == {}


def test_the_dashboards_widget_says_so_too(on_call: OnCall, pills: list[str]) -> None:
    stack = on_call.stack
    cloudwatch = stack.aws.client("cloudwatch")
    [dashboard] = cloudwatch.list_dashboards()["DashboardEntries"]
    body = cloudwatch.get_dashboard(DashboardName=dashboard["DashboardName"])["DashboardBody"]
    [widget] = [one for one in json.loads(body)["widgets"] if one["type"] == "custom"]
    asked = {"widgetContext": {"dashboardName": dashboard["DashboardName"], "theme": "dark"}}

    def answer(event: dict[str, Any]) -> str:
        """As CloudWatch asks the function that the dashboard names."""
        done = stack.functions.invoke(
            FunctionName=widget["properties"]["endpoint"], Payload=json.dumps(event)
        )
        told = json.loads(done["Payload"].read())
        assert "FunctionError" not in done, told
        return told

    page = answer(asked)
    parked = stack.depths().parked
    assert answer({"describe": True}).startswith("### Smart re-driver")
    assert "<th>Circuit</th>" in page
    assert f"<th>Parking lot</th><td>{parked} message" in page
    assert "Not read" not in page
    assert f"<td>{parked}</td><td>" in page


def test_parked_lists_the_pills_with_their_reason(on_call: OnCall, pills: list[str]) -> None:
    told = on_call("parked", "--list", "--json").json

    listed = {one["original_id"]: one for one in told["letters"]}
    assert pills[LISTED] in listed
    assert set(listed) <= set(pills)
    assert listed[pills[LISTED]]["reason"] == "MAX_ATTEMPTS"
    assert listed[pills[LISTED]]["strikes"] >= 1


def test_show_tells_the_journey_and_the_content(on_call: OnCall, pills: list[str]) -> None:
    told = on_call("show", pills[SHOWN], "--json").json

    order = Order(number=SHOWN + 1, is_poison=True)
    history = " ".join(told["ledger"]["history"])
    assert told["where"] == "in the parking lot"
    assert told["message"]["body"] == order.body
    assert told["message"]["attributes"]["Signature"] == {
        "DataType": "Binary",
        "BinaryBase64": "AP8C",
    }
    assert "redriven in batch" in history
    assert "parked MAX_ATTEMPTS" in history


def test_an_edited_pill_is_processed_and_the_original_is_kept(
    on_call: OnCall, pills: list[str], tmp_path: Path
) -> None:
    editor = {"EDITOR": 'sed -i \'s/"poison": true/"poison": false/\''}
    kept = tmp_path / "edited.jsonl"
    why = ("--reason", "mended by hand", "--export", str(kept))

    ran = on_call("edit", pills[EDITED], "--yes", *why, **editor)
    on_call.stack.aws.pass_time(60.0 * _MINUTES_TO_PROCESS)

    assert ran.code == 0, ran.err
    assert '+{"order": 3, "item": "crème brûlée", "poison": false}' in ran.out
    assert json.loads(kept.read_text())["body"] == Order(number=EDITED + 1, is_poison=True).body
    assert pills[EDITED] in on_call.stack.processed()
    assert pills[EDITED] not in parked(on_call)


def test_a_pill_that_a_command_mended_is_processed_once_nobody_pauses_it(
    on_call: OnCall, pills: list[str], tmp_path: Path
) -> None:
    kept = str(tmp_path / "edited.jsonl")
    mend = ("edit", "--where", f"order == `{REWRITTEN + 1}`", "--export", kept, "--yes", "--with")
    command = 'sed \'s/"poison": true/"poison": false/\''

    on_call("pause", "--reason", "migration", "--yes")
    refused = on_call(*mend, command)
    on_call("resume", "--yes")
    done = on_call(*mend, command)
    on_call.stack.aws.pass_time(60.0 * _MINUTES_TO_PROCESS)

    assert (refused.code, done.code) == (1, 0), done.err
    assert "add --even-though-paused" in refused.err
    assert pills[REWRITTEN] in on_call.stack.processed()


def test_people_are_shown_names_without_hashes(on_call: OnCall, pills: list[str]) -> None:
    spared, full = on_call("status"), on_call("status", "--full-names")

    assert spared.out.startswith("Source, ")
    assert "PoisonParked: Letters that keep failing wait in the parking lot" in spared.out
    assert on_call.stack.queue_name not in spared.out
    assert on_call.stack.queue_name in full.out


def test_a_pill_that_the_validation_refuses_stays(on_call: OnCall, pills: list[str]) -> None:
    ran = on_call("replay", pills[VALIDATED], "--yes", "--validate", "grep -v poison")

    assert ran.code == 1
    assert "Skipped 1: not valid" in ran.err
    assert pills[VALIDATED] in parked(on_call)


def test_a_replayed_pill_starts_afresh(on_call: OnCall, pills: list[str]) -> None:
    ran = on_call("replay", pills[REPLAYED], "--yes", "--reason", "try again")

    assert ran.code == 0, ran.err
    entry = on_call.stack.state_item(f"MESSAGE#{pills[REPLAYED]}")
    assert entry is not None
    assert (entry["Status"], entry["Strikes"]) == ("REPLAYED", 0)
    assert pills[REPLAYED] not in parked(on_call)


def test_a_deleted_pill_is_in_the_file_and_nowhere_else(
    on_call: OnCall, pills: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "deleted.jsonl"

    ran = on_call("delete", pills[DELETED], "--yes", "--export", str(file))

    assert ran.code == 0, ran.err
    (line,) = file.read_text().splitlines()
    assert json.loads(line)["body"] == Order(number=DELETED + 1, is_poison=True).body
    assert pills[DELETED] not in parked(on_call)


def test_a_pause_by_command_holds_the_deployed_function(on_call: OnCall) -> None:
    try:
        paused = on_call("pause", "--reason", "migration", "--yes")
        report = on_call("run", "--yes", "--json").json
    finally:
        resumed = on_call("resume", "--yes")

    assert (paused.code, resumed.code) == (0, 0)
    assert report["outcome"] == "PAUSED"
    assert report["reason"].endswith(': "migration"')


def test_history_has_every_change(on_call: OnCall) -> None:
    on_call("pause", "--reason", "for the record", "--yes")
    on_call("resume", "--yes")

    changes = on_call("history", "--json").json["changes"]

    whys = [one["why"] for one in changes if one["what"].startswith("pause")]
    assert "for the record" in whys
    assert all(one["who"].startswith("arn:aws:") for one in changes)


def test_the_doctor_finds_nothing_wrong_but_that_nobody_is_subscribed(on_call: OnCall) -> None:
    (told,) = on_call("doctor", "--json").json["queues"]

    wrong = [one for one in told["findings"] if one["level"] != "good"]
    assert len(told["findings"]) > 15
    assert all("Nobody is subscribed" in one["what"] for one in wrong), wrong


def parked(on_call: OnCall) -> set[str]:
    told = on_call("parked", "--list", "--json").json
    return {one["original_id"] for one in told["letters"]}


def test_in_a_shell_that_sourced_the_file_the_command_has_the_stacks_time(on_call: OnCall) -> None:
    """Sourced twice, as people do: nothing is added twice, by the command or by what lets time pass."""
    aws = on_call.stack.aws
    sourced = f". {shlex.quote(str(aws.write_shell_file()))} && "
    before, offset = on_call.stack.now(), aws.clock.offset

    told = in_a_shell(sourced + sourced + "redrive status --json")
    work_dir = shlex.quote(str(aws.work_dir))
    in_a_shell(sourced + f"python -m emulator --work-dir {work_dir} advance {_MINUTE}")

    (status,) = json.loads(told)["queues"]
    assert before.replace(microsecond=0) <= datetime.fromisoformat(status["at"])
    assert datetime.fromisoformat(status["at"]) <= on_call.stack.now()
    assert 0 <= aws.clock.offset - offset <= _MINUTE


def in_a_shell(command: str) -> str:
    finished = subprocess.run(
        ["sh", "-c", command],
        cwd=ROOT,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    return finished.stdout.decode()


def test_logs_tell_what_the_function_and_the_consumer_logged(
    on_call: OnCall, pills: list[str]
) -> None:
    parked = on_call("logs", "--since", "1d", "--event", "letter.parked", "--json").json
    shown = on_call("show", pills[SHOWN], "--logs", "--json").json
    ids = [pills[SHOWN], shown["ledger"]["current_id"], shown["failure"]["consumer"]["request_id"]]
    lines = [one["text"] for one in shown["log"]["lines"]]

    told = {one["event"]["original_id"] for one in parked["lines"]}
    assert pills[SHOWN] in told
    assert any(pills[SHOWN] in line for line in lines)
    assert all(any(one in line for one in ids) for line in lines)

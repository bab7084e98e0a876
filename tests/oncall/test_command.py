"""The command line itself: what is accepted, how it ends, help, completion, and what it says when AWS refuses."""

from __future__ import annotations

import errno
import io
import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version
from pathlib import Path
from threading import Thread

import pytest
import typer.main

from fakes.faults import Wire, nth, on, refuse
from simulator.world import DLQ, PARKING_LOT
from smart_redriver.engine.errors import CallFailed, Fault, SettingsError
from smart_redriver.oncall.cli import Asked, app, open_session
from smart_redriver.oncall.deployment.aws import Aws, Caller, connect_as
from smart_redriver.oncall.terminal.exits import Refused, explain
from smart_redriver.oncall.terminal.terminal import Terminal
from smart_redriver.oncall.verbs.declarations import VERBS
from tests.faults.errors import refusal
from tests.oncall.desk import Desk
from tests.oncall.fakes import lose
from tests.oncall.reported import declined, report

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
CHANGING = {
    "replay", "edit", "undo", "park", "delete", "import", "pause", "resume", "open", "close", "drain", "run",
}  # fmt: skip
PROMISED = CHANGING | {
    "status", "watch", "causes", "letters", "parked", "show", "export", "history", "doctor",
    "console", "logs", "audit",
}  # fmt: skip


def test_the_commands_are_exactly_the_promised_ones() -> None:
    assert set(COMMANDS) == PROMISED


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_every_command_has_help_with_an_example(desk: Desk, name: str, capsys) -> None:
    assert desk(name, "--help").code == 0

    shown = capsys.readouterr().out
    assert f"For example:\n    redrive {name}" in shown
    assert COMMANDS[name].help


#: Names in these are not the command's own: of attributes, of what became of letters, of services, of facts in records.
OPEN = {"attributes", "fates", "deleted", "links", "unknown"}


def names(told: object) -> set[str]:
    if isinstance(told, list):
        return {name for one in told for name in names(one)}
    if isinstance(told, dict):
        inner = (
            names(value)
            for name, value in told.items()
            if name not in OPEN and not (name == "groups" and isinstance(value, dict))
        )
        return set(told).union(*inner)
    return set()


@pytest.mark.parametrize(
    "line",
    [
        "status", "status --overview", "causes", "letters --body", "letters --held", "parked --list", "show PARKED",
        "show DEAD", "history", "audit", "doctor", "replay --all --dry-run", "park --all --dry-run",
        "pause --reason x --yes",
    ],
)  # fmt: skip
def test_the_help_names_each_field_of_the_answer(desk: Desk, line: str) -> None:
    (parked,) = desk.dead_letters('{"order": 1}')
    desk.park()
    (dead,) = desk.dead_letters('{"order": 2}')
    report(desk, declined(dead))
    desk("pause", "--reason", "migration", "--yes")
    desk("resume", "--yes")
    words = line.replace("PARKED", parked).replace("DEAD", dead).split()
    (verb,) = (one for one in VERBS if one.name == words[0])

    told = desk(*words, "--json").json

    unsaid = names(told) - set(re.findall(r"\w+", verb.answer))
    assert unsaid == set(), told


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_every_command_takes_the_options_that_say_whose_queue(name: str) -> None:
    options = {one for parameter in COMMANDS[name].params for one in parameter.opts}

    shared = {"--stack", "--queue", "--profile", "--region", "--endpoint-url", "--json"}
    assert shared <= options
    assert ("--yes" in options) == (name in CHANGING)


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-command",),
        ("status", "--no-such-option"),
        ("show",),
        ("letters", "--limit", "0"),
        ("letters", "--limit", "many"),
        ("letters", "--since", "yesterday"),
        ("letters", "--where", "a["),
        ("import", "file", "--to", "nowhere"),
        ("history", "--days", "0"),
        ("edit", "id", "--validate", "'unclosed"),
        *((verb, "a1b2c3", "--all") for verb in ("replay", "edit", "park", "delete")),
        ("edit", "a1b2c3", "--contains", "x"),
        ("edit", "a1b2c3", "--with", "sed", "--all"),
        ("replay", "a1b2c3", "--where", "a["),
        ("replay", "a1b2c3", "--rate", "0.0001"),
        ("replay", "a1b2c3", "--validate", "no-such-command"),
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2_before_anything_is_asked_of_aws(
    desk: Desk, arguments: tuple[str, ...]
) -> None:
    assert desk(*arguments).code == 2
    assert desk.calls == []


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("show", ""), "ID ''"),
        (("show", " "), "ID ' '"),
        (("replay", "", "5a8b1f0e", "--yes"), "ID ''"),
        (("delete", "", "--yes"), "ID ''"),
        (("replay", "--all", "--validate", "", "--yes"), "--validate ''"),
        (("edit", "--all", "--with", "cat", "--validate", "", "--yes"), "--validate ''"),
        (("import", "no.jsonl", "--from-queue", "", "--yes"), "--from-queue ''"),
        (("status", "--home", ""), "--home ''"),
        (("pause", "--reason", "why", "--yes", "--queue", ""), "--queue ''"),
        (("status", "--stack", ""), "--stack ''"),
        (("status", "--profile", ""), "--profile ''"),
        (("status", "--region", ""), "--region ''"),
        (("status", "--endpoint-url", ""), "--endpoint-url ''"),
    ],
)
def test_an_unset_shell_variable_is_no_option_that_was_left_out(
    desk: Desk, arguments: tuple[str, ...], name: str
) -> None:
    """`--validate "$CHECK"` sent letters without a check, and `--profile "$PROFILE"` asked another account."""
    desk.park("a")

    ran = desk(*arguments)

    assert ran.code == 2
    assert f"{name} is empty: leave it out, or give a text." in ran.err
    assert (desk.calls, desk.bodies(PARKING_LOT)) == ([], ["a"])


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("AccessDenied", "Looking needs the managed policy RedriveViewer"),
        ("ThrottlingException", "AWS is throttling GetQueueAttributes"),
        (
            "QueueDoesNotExist",
            "The queue orders-dlq does not exist. Make it again under the same name",
        ),
        ("ExpiredToken", "These credentials have expired"),
        ("InternalFailure", "GetQueueAttributes failed: InternalFailure: as scripted"),
    ],
)
def test_a_refusal_becomes_a_sentence_that_says_what_to_do(
    desk: Desk, code: str, said: str
) -> None:
    refused = on("GetQueueAttributes", refuse(refusal("GetQueueAttributes", code)))

    ran = desk("letters", script=refused)

    assert ran.code == 1
    assert said in ran.err
    assert "Traceback" not in ran.said


@pytest.mark.parametrize("letters", [(), ("--from-dlq",)])
@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("source", "queue orders"),
        ("table", "state table redriver-state"),
        ("function", "function redriver-function"),
    ],
)
def test_a_replay_names_what_was_deleted_and_says_that_it_changed_nothing(
    desk: Desk, letters: tuple[str, ...], place: str, name: str
) -> None:
    desk.park("a")
    desk.dead_letters("b")

    ran = desk("replay", "--all", "--yes", *letters, script=lose(place))

    assert ran.code == 1
    assert f"Nothing was changed. The {name} does not exist. Make it again under" in ran.err
    assert (desk.bodies(PARKING_LOT), desk.bodies(DLQ)) == (["a"], ["b"])
    assert desk.history() == []


def test_a_change_that_had_begun_is_not_said_to_have_changed_nothing(desk: Desk) -> None:
    desk.park("a")

    gone = refuse(refusal("ReceiveMessage", "QueueDoesNotExist"))
    ran = desk("delete", "--all", "--yes", script=nth("ReceiveMessage", 2, gone))

    assert "The queue orders-parking-lot does not exist. Make it again" in ran.err
    assert "Nothing was changed" not in ran.err
    assert desk.history()[0] == "delete all: begun"


def test_settings_that_a_person_broke_by_hand_become_a_sentence(desk: Desk) -> None:
    fault = SettingsError([Fault(setting="MAX_RATE", seen="fast", accepted="a number")])

    sentence, code = explain(fault)

    assert code == 1
    assert "MAX_RATE: saw 'fast', accepted is a number" in sentence


def test_a_bug_becomes_a_sentence_with_its_place(desk: Desk) -> None:
    desk.clients["cloudformation"] = object()

    ran = desk("status")

    assert ran.code == 1
    assert ran.err.startswith("This is a bug: AttributeError: ")
    assert re.search(r"\(\w+\.py:\d+\)", ran.err)


def test_a_stack_that_is_not_there_is_told(desk: Desk) -> None:
    ran = desk("status", "--stack", "Other")

    assert ran.code == 1
    assert (
        "There is no stack 'Other' in this Region of account 123456789012. Name yours with --stack"
        in ran.err
    )


def test_a_stack_that_is_no_redriver_is_told(desk: Desk) -> None:
    desk.clients["cloudformation"].stacks["Other"] = {"Url": "https://example.com"}

    assert "it is not a smart re-driver" in desk("status", "--stack", "Other").err


def test_nobody_at_the_keyboard_is_no_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))

    with pytest.raises(Refused, match="There is no terminal to answer on: add --yes"):
        Terminal(err=io.StringIO()).confirm("Send them back?")


def test_an_aws_that_can_not_be_reached_is_told() -> None:
    finished = redrive("replay", "--all", "--endpoint-url", "http://127.0.0.1:9")

    assert finished.returncode == 1
    assert "AWS could not be reached" in finished.stderr


def test_a_region_that_is_none_is_told() -> None:
    finished = redrive("status", "--region", "eu west")

    assert finished.returncode == 2
    assert finished.stderr.strip() == (
        "'eu west' is not a Region. Name one with --region, for example eu-west-1."
    )


@pytest.mark.parametrize("closed", ["0", "1", "2"])
def test_whoever_starts_it_with_a_stream_closed_is_told_what_failed(closed: str) -> None:
    command = f"{sys.executable} -m smart_redriver.oncall pause --for 1h --reason t {closed}>&-"

    finished = in_a_process("sh", "-c", command, AWS_ENDPOINT_URL="http://127.0.0.1:9")

    assert finished.returncode == 1
    assert "bug" not in finished.stderr
    assert "AWS could not be reached" in finished.stderr or closed == "2"


def test_its_version_is_told() -> None:
    assert redrive("--version").stdout.strip() == version("smart-redriver")


@pytest.mark.parametrize(
    "endpoint",
    [
        "localhost:4566",
        "http://",
        "http://[",
        "file:///tmp",
        "me:secret@host",
        "http://me:s/ecret@host",
    ],
)
@pytest.mark.parametrize("where", ["--endpoint-url", "AWS_ENDPOINT_URL"])
def test_an_endpoint_that_is_none_is_told(endpoint: str, where: str) -> None:
    option = ("--endpoint-url", endpoint) if where == "--endpoint-url" else ()

    finished = redrive("status", *option, **({} if option else {where: endpoint}))

    assert finished.returncode == 2
    assert "Check --endpoint-url and AWS_ENDPOINT_URL." in finished.stderr
    assert "bug" not in finished.stderr
    assert "ecret" not in finished.stderr


def test_a_proxy_that_is_not_there_is_told_without_its_password() -> None:
    finished = redrive("status", HTTPS_PROXY="http:/me:secret@127.0.0.1:1")

    assert finished.returncode == 1
    assert "The proxy could not be reached." in finished.stderr
    assert "secret" not in finished.stderr


@pytest.mark.parametrize(
    "proxy", ["http://me:sec/ret@127.0.0.1:1", "http://me:sec#ret@127.0.0.1:1", "me:sec/ret@host:1"]
)
def test_a_password_that_ends_the_proxys_host_is_told_how_to_write_and_not_shown(
    proxy: str,
) -> None:
    finished = redrive("status", HTTPS_PROXY=proxy)

    assert finished.returncode == 2
    assert "The proxy is not a URL. Check HTTPS_PROXY and HTTP_PROXY" in finished.stderr
    assert "/ is %2F, # is %23" in finished.stderr
    assert "sec" not in finished.stderr


@pytest.mark.parametrize("body", [b"<html><p>hello</html>", b"<html></html>", b"{}", b""])
def test_an_endpoint_that_is_not_aws_is_told(body: bytes) -> None:
    class Stranger(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        finished = redrive("status", "--endpoint-url", f"http://127.0.0.1:{server.server_port}")
        server.shutdown()

    assert finished.returncode == 1
    assert "The endpoint is not AWS. Check --endpoint-url" in finished.stderr
    assert "bug" not in finished.stderr


class Unread(io.StringIO):
    """A pipe whose reader goes away: at once, or when all was said."""

    def __init__(self, *, at_the_end: bool) -> None:
        super().__init__()
        self._lets_write = at_the_end

    def write(self, text: str) -> int:
        return super().write(text) if self._lets_write else self._breaks()

    def flush(self) -> None:
        self._breaks()

    def _breaks(self) -> int:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


@pytest.mark.parametrize(
    ("command", "at_the_end", "code", "left"),
    [
        (["parked"], False, 0, 2),
        (["parked"], True, 0, 2),
        (["replay", "--all", "--yes"], False, 1, 2),
        (["replay", "--all", "--yes"], True, 0, 0),
        (["replay", "--all", "--yes", "--validate", "grep good"], True, 3, 1),
    ],
)
def test_a_reader_who_went_away_makes_no_command_say_that_it_has_done_what_it_has_not(
    desk: Desk, command: list[str], at_the_end: bool, code: int, left: int
) -> None:
    desk.park("good", "bad")
    terminal = Terminal(out=Unread(at_the_end=at_the_end), err=io.StringIO(), assume_yes=True)

    with pytest.raises(SystemExit) as ended:
        app(command, prog_name="redrive", obj=lambda _: desk.session(Wire(), terminal))

    assert ended.value.code == code
    assert len(desk.messages(PARKING_LOT)) == left


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EMFILE])
def test_a_machine_that_refuses_is_no_bug(number: int) -> None:
    sentence, code = explain(OSError(number, os.strerror(number), "edits.jsonl"))

    assert code == 1
    assert sentence.startswith(f"This machine refused: {os.strerror(number)} (edits.jsonl).")


def test_a_full_disk_under_the_output_is_told_once(desk: Desk) -> None:
    class FullDisk(io.StringIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    terminal = Terminal(out=FullDisk(), err=io.StringIO())

    with pytest.raises(SystemExit) as ended:
        app(["status"], prog_name="redrive", obj=lambda asked: desk.session(Wire(), terminal))

    assert ended.value.code == 1
    assert terminal.err.getvalue().startswith("This machine refused: No space left on device.")  # type: ignore[attr-defined]


def redrive(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, without any AWS."""
    return in_a_process(sys.executable, "-m", "smart_redriver.oncall", *arguments, **environment)


def in_a_process(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}:{ROOT / 'lambdas'}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "eu-west-1",
        "AWS_MAX_ATTEMPTS": "1",
    }
    return subprocess.run(
        command,
        env=variables | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"AWS_REGION": ""}, "No region is set. Name one with --region"),
        ({"AWS_PROFILE": "nobody"}, "That profile does not exist"),
    ],
)
def test_what_is_wrong_with_the_callers_environment_is_told(
    environment: dict[str, str], said: str
) -> None:
    aws = Aws(connect_as(Caller()))
    assert aws.calls == {}

    finished = redrive("status", **environment)

    assert finished.returncode == 1
    assert said in finished.stderr
    assert "Traceback" not in finished.stderr


def test_the_options_reach_the_session() -> None:
    session = open_session(Asked(stack="Mine", queue="mails", json=True, yes=True))

    assert (session.stack, session.queue) == ("Mine", "mails")
    assert session.terminal.is_json
    assert session.terminal.assume_yes


def test_the_shell_completes_commands_and_options() -> None:
    commands = redrive(_REDRIVE_COMPLETE="complete_bash", COMP_WORDS="redrive re", COMP_CWORD="1")
    options = redrive(
        _REDRIVE_COMPLETE="complete_bash", COMP_WORDS="redrive replay --val", COMP_CWORD="2"
    )

    assert commands.stdout.split() == ["replay", "resume"]
    assert options.stdout.split() == ["--validate"]


def test_help_imports_neither_botocore_nor_rich() -> None:
    program = (
        "import sys\n"
        "from smart_redriver.oncall.cli import app\n"
        "try:\n    app(['--help'], prog_name='redrive')\n"
        "except SystemExit:\n    pass\n"
        "print([name for name in ('botocore', 'boto3', 'rich', 'jmespath') if name in sys.modules])"
    )

    finished = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'lambdas'}", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )

    assert finished.stdout.splitlines()[-1] == "[]"


def test_a_call_that_failed_names_itself() -> None:
    sentence, _ = explain(CallFailed("GetItem", "SomethingNew", "details"))

    assert sentence.startswith("GetItem failed: SomethingNew: details. Run `redrive doctor`")

"""Start, drive and stop one local AWS: `with LocalAws() as aws: ...`.

Each has its own work directory with the clock, the log and all temporary files, so that several can run side by side
and nothing is left behind.
"""

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import boto3

from . import driving, environments
from .clock import Clock
from .driving import CLOCK_FILE, CONTROL_FILE, LocalAwsError
from .environments import ASLEEP_FOLDER, BYTECODE_FOLDER, REGION, ROOT, SHELL_FILE

#: The pace of a clock that is driven, and of one that a person watches.
SLOW, REAL = 0.1, 1.0

_START_SECONDS = 180
_STOP_SECONDS = 10
_POLL_SECONDS = 0.02
_LOG_LINES_SHOWN = 30


def free_port() -> int:
    """A loopback port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class LocalAws:
    """MiniStack with the overlay, in its own process, on loopback."""

    def __init__(
        self,
        *,
        work_dir: Path | None = None,
        port: int | None = None,
        lambda_endpoint_url: str | None = None,
        enforce_iam: bool = False,
        tick_seconds: float = 0.05,
        pace: float = SLOW,
        python: Path = ROOT / ".venv-emulator" / "bin" / "python",
    ) -> None:
        """Describe it; `start()` or `with` starts it.

        `lambda_endpoint_url` is the AWS endpoint that functions see, so that a fault-injecting proxy can stand between
        them and the emulator. `enforce_iam` checks every call against the caller's policies, and uses TLS.
        `tick_seconds` is how often, in real time, the background loops run when no one drives the clock. `pace` is how
        many virtual seconds then go by in each real second. It is slow, because otherwise leases and schedules would
        pass in the minute that a busy machine takes for something.
        """
        self._owns_work_dir = work_dir is None
        self.work_dir = work_dir or Path(tempfile.mkdtemp(prefix="local-aws-"))
        self.port = port or free_port()
        self.enforce_iam = enforce_iam
        self._lambda_endpoint_url = lambda_endpoint_url
        self._tick_seconds = tick_seconds
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None
        self.work_dir.mkdir(parents=True, exist_ok=True)
        self.clock = Clock(self.work_dir / CLOCK_FILE, pace=pace)

    # -- life -----------------------------------------------------------------------------------

    def start(self, *, ends_with_this_process: bool = True) -> Self:
        """Start and wait until it answers.

        `ends_with_this_process` ties its life to ours, even if we are killed.
        """
        if not self._python.exists():
            raise LocalAwsError(f"no emulator environment: {self._python} does not exist")
        for folder in (ASLEEP_FOLDER, BYTECODE_FOLDER):
            (self.work_dir / folder).mkdir(parents=True, exist_ok=True)
        (self.work_dir / CONTROL_FILE).unlink(missing_ok=True)
        variables = self._process_environment()
        if ends_with_this_process:
            variables["LOCAL_AWS_ENDS_WITH_STDIN"] = "1"
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._python), "-m", "emulator.overlay"],
                cwd=ROOT,
                env=variables,
                stdin=subprocess.PIPE if ends_with_this_process else subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us: we stop it in our own time
            )
        try:
            self._wait_until_healthy()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Ask it to end, kill it after a bounded wait, and remove its files."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.stdin:
                self._process.stdin.close()
            self._process = None
        self.clock.close()
        if self._owns_work_dir:
            shutil.rmtree(self.work_dir, ignore_errors=True)
        else:
            shutil.rmtree(self.work_dir / "tmp", ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # -- use ------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        if self._process is None:
            raise LocalAwsError("not started")
        return self._process.pid

    @property
    def endpoint_url(self) -> str:
        """The value for AWS_ENDPOINT_URL; S3 needs the name `localhost` for its virtual hosts."""
        return f"{'https' if self.enforce_iam else 'http'}://localhost:{self.port}"

    @property
    def log_file(self) -> Path:
        return self.work_dir / "ministack.log"

    def environment(self) -> dict[str, str]:
        """Variables for the CDK command line, and for any other process that calls AWS."""
        return environments.for_callers(self.endpoint_url, self._certificate)

    def write_shell_file(self) -> Path:
        """A file for people to source in a shell; see `environments.for_a_shell`."""
        path = self.work_dir / SHELL_FILE
        path.write_text(
            environments.for_a_shell(self.endpoint_url, self._certificate, self.work_dir)
        )
        return path

    def client(self, service: str) -> Any:
        """A boto3 client for it, whatever this process's environment says."""
        return boto3.client(
            service,  # type: ignore[call-overload]  # any service, by name
            endpoint_url=self.endpoint_url,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            verify=self._certificate and str(self._certificate),
        )

    def pass_time(self, seconds: float, step: float = 30.0, patience: float = 300.0) -> None:
        """Let virtual time pass, in steps, as if it had passed by itself.

        When the clock jumps, nothing is running. Before the next step, everything that the new time starts (schedules,
        polls, functions, moves to dead-letter queues, alarms) has ended. `step` limits how late anything happens: no
        event is seen earlier than it is due, nor more than a step later. A sleeping function delays no one: time passes
        up to its wake-up, and goes on when it sleeps again. `patience` is real seconds for one step.
        """
        driving.pass_time(self.work_dir, seconds, step=step, patience=patience)

    def settle(self, patience: float = 300.0) -> None:
        """Let everything that is due now happen, without moving the clock."""
        driving.settle(self.work_dir, patience=patience)

    # -- parts ----------------------------------------------------------------------------------

    @property
    def _certificate(self) -> Path | None:
        """The certificate that callers must trust; None without TLS."""
        return environments.certificate(self.work_dir) if self.enforce_iam else None

    def _process_environment(self) -> dict[str, str]:
        variables = environments.for_ministack(self.work_dir, self.port)
        variables["LOCAL_AWS_TICK_SECONDS"] = str(self._tick_seconds)
        if self.enforce_iam:
            variables |= {"AUTH": "true", "USE_SSL": "1"}
        if self._lambda_endpoint_url:
            variables["AWS_ENDPOINT_URL"] = self._lambda_endpoint_url
        return variables

    def _wait_until_healthy(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise LocalAwsError(f"it ended at once:\n{self._log_tail()}")
            if (self.work_dir / CONTROL_FILE).exists() and self._is_listening():
                return
            time.sleep(_POLL_SECONDS)
        raise LocalAwsError(f"not healthy after {_START_SECONDS} s:\n{self._log_tail()}")

    def _is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _log_tail(self) -> str:
        lines = self.log_file.read_text(errors="replace").splitlines()
        return "\n".join(lines[-_LOG_LINES_SHOWN:])

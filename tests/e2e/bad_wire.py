"""A wire between the deployed functions and the emulator on which calls fail at random: microburst, seeded."""

import json
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from emulator.environments import ROOT
from emulator.process import free_port

#: What microburst's control API takes; see its documentation.
Rule = dict[str, Any]

_START_SECONDS = 180
_POLL_SECONDS = 0.02
#: It lists the last hundred faults unless asked for more.
_ALL_FAULTS = 100_000

#: It draws from Python's global generator and has no option for a seed.
_MAIN = "import random, sys; random.seed(int(sys.argv.pop(1))); from microburst.cli import main; sys.exit(main())"

#: Loopback calls must not go through a proxy that the environment names.
_LOOPBACK = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class BadWire:
    """The proxy in a process of its own. A good wire until it is given rules."""

    def __init__(self, work_dir: Path, *, seed: int) -> None:
        self._seed = seed
        self._log_file = work_dir / "microburst.log"
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint_url(self) -> str:
        """What functions must take for AWS."""
        return f"http://127.0.0.1:{self._port}"

    def lead_to(self, endpoint_url: str) -> None:
        """Start, in front of the AWS at `endpoint_url`."""
        python = ROOT / ".venv-emulator" / "bin" / "python"
        ends = ["--port", str(self._port), "--upstream", endpoint_url]
        with self._log_file.open("wb") as log:
            self._process = subprocess.Popen(
                [python, "-c", _MAIN, str(self._seed), *ends], stdout=log, stderr=log
            )
        self._wait_until_healthy()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            # It has nothing to save, and would wait for connections that functions keep open.
            self._process.kill()
            self._process.wait()

    def fail_by(self, rules: Sequence[Rule]) -> None:
        """From now on, the first rule that matches a call and wins its draw befalls it. None: all goes well."""
        self._ask("POST", "rules", list(rules))

    def faults(self) -> Counter[tuple[str, str, str]]:
        """What befell calls so far, by service, operation and kind of fault."""
        fired = self._ask("GET", f"fired?limit={_ALL_FAULTS}")
        return Counter((one["service"], one["operation"], one["action"]) for one in fired)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        call = urllib.request.Request(
            f"{self.endpoint_url}/_microburst/{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
        )
        with _LOOPBACK.open(call, timeout=_START_SECONDS) as answer:
            return json.loads(answer.read())

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self._ask("GET", "health")
            except OSError:
                if time.monotonic() > deadline:
                    raise RuntimeError(self._log_file.read_text()) from None
                time.sleep(_POLL_SECONDS)
            else:
                return

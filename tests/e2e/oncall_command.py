"""The `redrive` command in a process of its own, at a deployed stack, on the stack's virtual clock."""

import subprocess
import sys

from demo.orders import Order
from demo.stack import DeployedStack
from emulator.driving import CLOCK_FILE
from emulator.environments import ROOT
from tests.oncall.ran import Ran

_MINUTE = 60.0
#: Virtual minutes within which a poison pill has been parked.
_PATIENCE = 120


class OnCall:
    """A person with the command and the credentials of the local AWS."""

    def __init__(self, stack: DeployedStack) -> None:
        self.stack = stack

    def environment(self) -> dict[str, str]:
        """The variables of a process of theirs."""
        folders = (ROOT / "emulator" / "site", ROOT, ROOT / "lambdas")
        return self.stack.aws.environment() | {
            "PYTHONPATH": ":".join(map(str, folders)),
            "LOCAL_AWS_CLOCK": str(self.stack.aws.work_dir / CLOCK_FILE),
        }

    def __call__(self, *arguments: str, **environment: str) -> Ran:
        """Type `redrive` with these arguments."""
        finished = subprocess.run(
            [sys.executable, "-m", "smart_redriver.oncall", *arguments],
            env=self.environment() | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(code=finished.returncode, out=finished.stdout, err=finished.stderr)

    def park_poison(self, count: int) -> list[str]:
        """Let the deployed consumer fail on poison pills and succeed on others until passes have parked the pills.

        Their ids, in the order of their numbers.
        """
        pills = [Order(number=number, is_poison=True) for number in range(1, count + 1)]
        sent = self.stack.send(pills)
        for minute in range(_PATIENCE):
            self.stack.send([Order(number=1000 + minute)])
            self.stack.aws.pass_time(_MINUTE)
            if self.stack.depths().parked == count:
                return sorted(sent, key=lambda message_id: sent[message_id].number)
        raise AssertionError(f"not parked within {_PATIENCE} minutes: {self.stack.depths()}")

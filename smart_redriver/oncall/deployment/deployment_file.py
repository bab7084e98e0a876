"""A deployment that a file describes, in which a process runs the passes beside its queue: `--stack orders.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from smart_redriver.engine.config.backends import BACKENDS, ProcessFile
from smart_redriver.engine.errors import CallFailed, SettingsError
from smart_redriver.oncall.deployment.aws import Connect
from smart_redriver.oncall.terminal.exits import Misused, Refused

#: No stack has a dot in its name.
_ENDS = ".toml"

#: The services that a state table in DynamoDB needs: DynamoDB, and the one that says who the caller is.
_OF_THE_STATE = ("dynamodb", "sts")


def is_file(stack: str) -> bool:
    """Whether the name is a file's, and not a stack's."""
    return stack.endswith(_ENDS)


def read_file(file: Path) -> ProcessFile:
    """Read the file that configures a process's passes. Raises Misused."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise Misused(f"{file} can't be read: {error.strerror}.") from error
    except ValueError as error:
        raise Misused(f"{file} is no TOML: {error}.") from error
    kinds = {origin.value: one for origin, one in BACKENDS.items() if one.process}
    found = next((kind for name, kind in kinds.items() if name in tables), None)
    if found is None:
        raise Misused(f"{file} has none of the tables {', '.join(f'[{one}]' for one in kinds)}.")
    try:
        read: ProcessFile = found.load("process").read(tables)
    except SettingsError as unfit:
        raise Misused(f"{file}: {unfit}.") from unfit
    return read


@dataclass(frozen=True, slots=True)
class FileConnect:
    """Connects as a file says: in AWS, only to its state table and to what that needs."""

    file: Path
    connect: Connect

    def __call__(self, service: str) -> Any:
        """See `Connect`. Raises Misused."""
        process = read_file(self.file)
        if service in process.deployment.location.services:
            return self.connect(service)
        if service not in _OF_THE_STATE:
            return _not_on_aws("no stack is deployed: a process runs the passes")
        try:
            state = process.open_state()
        except CallFailed as failed:
            return _Absent(partial(_no_state, self.file, failed))
        if state is None:
            return self.connect(service)
        return state if service == "dynamodb" else _not_on_aws("the state is a file")

    def credentials(self) -> Any:
        """The caller's credentials; None if there are none."""
        look = getattr(self.connect, "credentials", None)
        return look() if look else None

    def again(self) -> FileConnect:
        """The same, but looks for credentials again."""
        renewed: Callable[[], Connect] | None = getattr(self.connect, "again", None)
        return FileConnect(self.file, renewed()) if renewed else self


@dataclass(frozen=True, slots=True)
class _Absent:
    """A client of an absent service: every call fails with `fault`, and says why."""

    fault: Callable[[str], Exception]

    def __getattr__(self, method: str) -> Callable[..., Any]:
        operation = "".join(word.capitalize() for word in method.split("_"))

        def call(**_: Any) -> Any:
            raise self.fault(operation)

        return call


def _not_on_aws(why: str) -> _Absent:
    return _Absent(lambda operation: CallFailed(operation, "NotOnAws", why))


def _no_state(file: Path, failed: CallFailed, _operation: str) -> Refused:
    return Refused(f"{failed.detail} {file} names it under [state].")

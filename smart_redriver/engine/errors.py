"""Every error the re-driver raises on purpose, under one root.

A lost race is no error: it is ``None`` or ``False`` in the answer of the call that lost it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from smart_redriver.engine.fault_codes import CONTENT_FAULTS, TRANSIENT_FAULTS


class RedriverError(Exception):
    """Root of the re-driver's own errors: catch this to catch them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing wrong with the configuration.

    ``seen`` is the value as it was given, or None where one is needed and none was given.
    """

    setting: str
    seen: object
    accepted: str

    def __str__(self) -> str:
        seen = "not given" if self.seen is None else f"saw {self.seen!r}"
        return f"{self.setting}: {seen}, accepted is {self.accepted}"


class SettingsError(RedriverError):
    """Raised at synth or cold start when the configuration is wrong.

    Carries all ``faults`` at once, so that a person mends the configuration in one go.
    """

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        lines = [f"{len(self.faults)} fault(s) in the settings:", *map(str, self.faults)]
        super().__init__("\n  ".join(lines))


class CallFailed(RedriverError):  # noqa: N818 - reads as what happened, and is caught by that name
    """Raised when an AWS call gave no answer, or a denial, and the pass needs the answer.

    `call` is the operation ("ReceiveMessage"), `code` AWS's error code or botocore's exception name.
    """

    def __init__(self, call: str, code: str, detail: str = "") -> None:
        self.call = call
        self.code = code
        self.detail = detail
        super().__init__(f"{call}: {code}: {detail}")


class DatabaseLost(CallFailed):
    """Raised when the connection to a database broke, or there was none; what was asked may have been done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFault:
    """One entry of a batch call that AWS did not accept, or whose whole call failed.

    It is one of three things: of the content, transient, or a refusal. `is_of_target`: what a letter was to be given to
    takes none now, and not only a queue before it. Then that is no moment's trouble, but how the target is.
    """

    call: str
    key: str
    code: str
    detail: str = ""
    is_of_target: bool = False

    @classmethod
    def of(cls, failed: CallFailed, key: str, *, is_of_target: bool = False) -> Self:
        """What a call that failed as a whole means for one of its entries."""
        return cls(
            call=failed.call,
            key=key,
            code=failed.code,
            detail=failed.detail,
            is_of_target=is_of_target,
        )

    @property
    def is_of_content(self) -> bool:
        """Whether the message itself is at fault, so that no later attempt can succeed."""
        return self.code in CONTENT_FAULTS

    @property
    def is_transient(self) -> bool:
        """Whether it passes by itself, so that it speaks neither against the letter nor against its destination."""
        return self.code in TRANSIENT_FAULTS and not self.is_of_target

    @property
    def is_refusal(self) -> bool:
        """Whether the queue refuses what it is asked: access, its key, or it is gone. Unknown codes count as one."""
        return not self.is_of_content and not self.is_transient

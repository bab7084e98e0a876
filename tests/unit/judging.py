"""A batch and what is known of it, ready to be judged: what a test does not say is ordinary."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Batch, Verdict
from smart_redriver.engine.model.evidence import Evidence, Live
from smart_redriver.engine.model.verdict import (
    LIVE_PATIENCE,
    MANY_LIVE_SUCCESSES,
    Judgement,
    weigh,
)
from tests.unit.examples import NOW, a_batch, ahead

SETTINGS = Settings()
SECOND = timedelta(seconds=1)
WAITS = None
SUCCESS, FAILURE, NO_EVIDENCE = Verdict.SUCCESS, Verdict.FAILURE, Verdict.NO_EVIDENCE

NOT_DUE = a_batch(due_at=ahead(seconds=1))
#: Its letters were tried so long ago that nobody waits for live messages any more.
LONG_TRIED = a_batch(last_try_at=NOW - LIVE_PATIENCE)

#: Producers whose messages all succeed, or all fail; some that have not been heard yet.
WELL = Live(met=60, succeeded=60, finished=60, per_minute=6, is_expected=True)
SOME_WELL = Live(
    met=MANY_LIVE_SUCCESSES - 1,
    succeeded=MANY_LIVE_SUCCESSES - 1,
    finished=MANY_LIVE_SUCCESSES - 1,
    per_minute=6,
    is_expected=True,
)
UNWELL = Live(met=60, succeeded=0, finished=60, is_expected=True)
SILENT = Live(is_expected=True)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A batch and the evidence on it; what is not said is ordinary: four letters, due now,
    of which nothing is known.
    """

    evidence: Evidence = Evidence(has_metrics=True, were_tried=True)
    batch: Batch = field(default_factory=a_batch)
    settings: Settings = SETTINGS
    now: datetime = NOW
    is_canary: bool = False

    def judge(self) -> Judgement:
        return weigh(
            self.batch,
            self.evidence,
            self.settings,
            self.now,
            is_canary=self.is_canary,
            was_up=not self.is_canary,
        )


def shown(succeeded: int = 0, failed: int = 0, suspects_failed: int = 0) -> Evidence:
    """What the metrics show of a batch on a quiet queue, where every one of its letters was tried."""
    return Evidence(
        succeeded=succeeded,
        failed=failed,
        suspects_failed=suspects_failed,
        met=4,
        deleted=succeeded,
        were_tried=True,
        has_metrics=True,
    )


def beside(live: Live, failed: int = 0, suspects_failed: int = 0, ours: int = 4) -> Evidence:
    """A batch of which only returns are known, beside live messages."""
    return Evidence(
        failed=failed,
        suspects_failed=suspects_failed,
        live=live,
        met=live.met + ours,
        deleted=live.succeeded,
        were_tried=True,
        has_metrics=True,
    )


def of_suspects(count: int, *, size: int = 4) -> Batch:
    return a_batch(size=size, suspects=count)


def dying(**changes: int) -> Batch:
    """A batch whose pass died while it sent."""
    return a_batch(is_complete=False, **changes)

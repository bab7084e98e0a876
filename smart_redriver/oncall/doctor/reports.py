"""Whether consumers can report what became of letters, and whether anybody hears them. None has to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from redrive.errors import CallFailed
from smart_redriver.oncall.doctor.findings import Finding, check, good, wrong
from smart_redriver.oncall.doctor.queues import attributes_of
from smart_redriver.oncall.stack.metrics import age_of_oldest
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.words import ago, span

#: As long as the alarm `ReportsUnread` waits by default, or for two looks at an idle queue.
LONGEST_UNREAD = timedelta(hours=1)
_VARIABLE = "OUTCOME_QUEUE_URL"
_GONE = ("QueueDoesNotExist", "NonExistentQueue", "AWS.SimpleQueueService.NonExistentQueue")


def check_reports(session: Session) -> Iterator[Finding]:
    """Look at the outcome queue, its reader, and who ever reported. Raises CallFailed and Refused."""
    url = session.place.deployment.outcome_queue_url
    if not url:
        yield good("Consumers have nowhere to report to: the stack has no outcome queue yet.")
        return
    name = url.rpartition("/")[2]
    try:
        attributes_of(session, url)
    except CallFailed as failed:
        if failed.code not in _GONE:
            raise
        yield wrong(f"The outcome queue {name} is gone.", "Deploy the stack anew.")
        return
    yield good(f"Consumers may report to {name}.")
    told = session.environment.get(_VARIABLE)
    yield check(
        told == url,
        "The function reads it.",
        f"The function does not read it: its variable {_VARIABLE} is {told or 'not set'}.",
        "Deploy the stack anew.",
    )
    oldest = age_of_oldest(session.aws, url, session.clock())
    yield judge_unread(oldest, session.settings.schedule_minutes)
    if session.place.deployment.targets:
        return  # what a target was given carries nothing that its consumer could report on
    for source in session.place.sources:
        circuit = session.store.of(source).load_circuit()
        yield judge_heard(source, circuit.heard_at if circuit else None, session.clock())


def judge_unread(oldest: timedelta | None, schedule_minutes: int) -> Finding:
    """How long the oldest report waits to be read; None where there is none."""
    waits = oldest or timedelta()
    return check(
        waits <= max(LONGEST_UNREAD, 2 * timedelta(minutes=schedule_minutes)),
        "No report waits long to be read.",
        f"The oldest report has been waiting for {span(waits)} to be read.",
        "Passes read reports: see what is said of the last pass, and of what the function may do.",
    )


def judge_heard(source: str, heard_at: datetime | None, now: datetime) -> Finding:
    """Whether the consumer of a source queue has ever reported of a redriven letter; it need not."""
    if heard_at is None:
        return good(
            f"No consumer of {source} has reported on a redriven letter yet; "
            "docs/consumer.md says what that would take."
        )
    return good(
        f"The consumer of {source} last reported on a redriven letter {ago(heard_at, now)}."
    )

"""Checks that the re-driver can work: schedule, last pass, state table, pauses, and how consumers' reports arrive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.headline import pause_in_words
from smart_redriver.engine.model.breaker import refusal_of
from smart_redriver.engine.model.circuit import Orders
from smart_redriver.oncall.deployment.metrics import age_of_oldest
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.doctor.findings import Finding, check, good, wrong
from smart_redriver.oncall.doctor.queues import attributes_of
from smart_redriver.oncall.status.passes import ENABLED, EndedPass, last_pass, schedule_state
from smart_redriver.oncall.terminal.words import ago, span


def check_state(session: Session) -> Iterator[Finding]:
    """Look at the table, the circuits in it, and the settings. Raises CallFailed and Refused."""
    table = session.place.deployment.table_name
    described = session.aws.dynamodb.describe_time_to_live(TableName=table)
    status = described["TimeToLiveDescription"].get("TimeToLiveStatus")
    enable = f"Enable time to live of {table} on the attribute TTL"
    yield check(
        status in ("ENABLED", "ENABLING"),
        "The state table forgets what is old.",
        "The state table never forgets: time to live is off.",
        f"{enable}." if session.place.process else f"{enable}, or deploy the stack anew.",
    )
    yield check_mode(session)
    yield from check_circuits(session)


def check_mode(session: Session) -> Finding:
    """Look at the setting that stops all redrives. Raises CallFailed and Refused."""
    mode = session.settings.mode
    remedy = "Deploy with -c mode=automatic when you are ready."
    if session.place.process:
        remedy = f'Set mode = "automatic" in {session.place.stack} when you are ready, and start the process anew.'
    return check(
        mode is Mode.AUTOMATIC,
        "The setting `mode` is automatic.",
        f"The setting `mode` is {mode.value}: nothing is redriven.",
        remedy,
    )


def check_circuits(session: Session) -> Iterator[Finding]:
    """Look at the circuits, and at people's orders. Raises CallFailed and Refused."""
    circuits = {name: session.store.of(name).load_circuit() for name in session.place.sources}
    for name, circuit in circuits.items():
        yield good(f"The circuit of {name} can be read.")
        if circuit and (code := refusal_of(circuit)):
            yield wrong(
                f"{name} refused letters {ago(circuit.changed_at, session.clock())}: {code}.",
                "Mend what the code names; `redrive logs --event pass.finished` has the calls under `faults`. "
                "Its next letter, as a canary, shows whether it is mended, and closes the circuit; "
                f'if none is left or to skip the wait: `redrive close --queue {name} --reason "..."`.',
            )
    if first := circuits[session.place.queue]:  # it keeps the pause for all that share the DLQ
        yield judge_pause(first.orders, session.clock())


def judge_pause(orders: Orders, now: datetime) -> Finding:
    """Whether there is a pause without an end: people forget such a pause."""
    if orders.pauses(now) and orders.paused_until is None:
        return wrong(f"Paused {pause_in_words(orders, now)}.", "`redrive resume` ends it.")
    return good("It is not paused without an end.")


#: How many missed passes are a fault. The alarm on silence uses the same number.
_MISSED = 3


def check_passes(session: Session) -> Iterator[Finding]:
    """Look at the schedule and the log. Raises CallFailed and Refused."""
    yield _judge_schedule(schedule_state(session))
    last = last_pass(session)
    yield judge_last_pass(last, session.settings.schedule_minutes, session.clock())
    if last is not None:
        yield from judge_report(last.report)


def judge_last_pass(last: EndedPass | None, schedule_minutes: int, now: datetime) -> Finding:
    """Whether the last pass was within three times the interval of an idle queue."""
    remedy = "`redrive run` runs one now and shows why it fails; `redrive logs` shows what the function logged."
    if last is None:
        return wrong("No pass has ended within the last day.", remedy)
    is_recent = now - last.at <= _MISSED * timedelta(minutes=schedule_minutes)
    sentence = f"The last pass was {ago(last.at, now)}"
    return check(
        is_recent, f"{sentence}.", f"{sentence}; one is due every {schedule_minutes} min.", remedy
    )


def judge_report(report: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the calls that AWS refused in the last pass. Sooner or later, a pass makes every call that it needs."""
    faults = report.get("faults") or {}
    if not faults:
        yield good("AWS refused the last pass nothing.")
    for fault, count in sorted(faults.items()):
        call, _, code = fault.partition(":")
        yield wrong(
            f"AWS refused the last pass {call} {count} times: {code}.",
            _remedy(call, code),
        )


def _remedy(call: str, code: str) -> str:
    if "Kms" in code or "KMS" in code:
        return (
            "The function may not use the queue's key: name the key's ARN in the list of queues, and see "
            "docs/deploy.md for the key's policy."
        )
    if "AccessDenied" in code:
        return (
            f"The function may not call {call}: deploy the stack anew, and see docs/deploy.md for queues of other "
            "owners."
        )
    return "If it lasts, look at `redrive logs`; a single one is made up for by the next pass."


def _judge_schedule(state: str | None) -> Finding:
    return check(
        state == ENABLED,
        "The schedule is on.",
        "The schedule is off." if state else "There is no schedule for the function.",
        "Enable it in EventBridge Scheduler." if state else "Deploy the stack anew.",
    )


#: The default wait of the alarm `ReportsUnread`. If two looks at an idle queue take longer, that applies instead.
LONGEST_UNREAD = timedelta(hours=1)
_VARIABLE = "OUTCOME_QUEUE_URL"


def check_reports(session: Session) -> Iterator[Finding]:
    """Look at the outcome queue, its reader, and which consumers ever reported. Raises CallFailed and Refused."""
    url = session.place.deployment.outcome_queue_url
    if not url:
        yield good("Consumers have nowhere to report to: the stack has no outcome queue yet.")
        return
    name = url.rpartition("/")[2]
    attributes_of(session, url)
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
        return  # a target's consumer gets nothing that it could report on
    for source in session.place.sources:
        circuit = session.store.of(source).load_circuit()
        yield judge_heard(source, circuit.heard_at if circuit else None, session.clock())


def judge_unread(oldest: timedelta | None, schedule_minutes: int) -> Finding:
    """Whether reports are read in time. `oldest` is the age of the oldest unread one; None if there is none."""
    waits = oldest or timedelta()
    return check(
        waits <= max(LONGEST_UNREAD, 2 * timedelta(minutes=schedule_minutes)),
        "No report waits long to be read.",
        f"The oldest report has been waiting for {span(waits)} to be read.",
        "Passes read reports: see what is said of the last pass, and of what the function may do.",
    )


def judge_heard(source: str, heard_at: datetime | None, now: datetime) -> Finding:
    """Whether the consumer of a source queue has ever reported on a redriven letter. It does not have to."""
    if heard_at is None:
        return good(
            f"No consumer of {source} has reported on a redriven letter yet; "
            "docs/consumer.md says what that would take."
        )
    return good(
        f"The consumer of {source} last reported on a redriven letter {ago(heard_at, now)}."
    )

"""Gathers what `redrive status` shows, all at once, with links to the AWS console.

A value that can't be read is reported as unknown; that is not fatal.

The dashboard's widget shows only the part from queues and table, because its function may read nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import quote

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.headline import Passes, seen_of
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model import breaker
from smart_redriver.engine.model.circuit import Circuit, Orders
from smart_redriver.oncall.audit.trail import Change, changes_of, trail_of
from smart_redriver.oncall.deployment.aws import Answer, Asking
from smart_redriver.oncall.deployment.places import Place
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.status.alarms import ringing_alarms
from smart_redriver.oncall.status.outlook import looks_every, next_step
from smart_redriver.oncall.status.passes import (
    ENABLED,
    fault_of,
    last_pass,
    passes_of_process,
    schedule_state,
    source_facts,
    unread_by,
)
from smart_redriver.oncall.status.snapshot import Snapshot, SourceNow

_QUEUE_URL = re.compile(r"https://sqs\.(?P<region>[a-z0-9-]+)\.(?P<domain>amazonaws\.com(\.cn)?)/")


def console_links(place: Place) -> dict[str, str]:
    """The console's addresses by what they show; none for queues that are not on AWS."""
    found = _QUEUE_URL.match(place.deployment.dlq_url)
    if found is None:
        return {}
    region, home = found["region"], _home(found["region"], found["domain"])

    def page(service: str, fragment: str) -> str:
        return f"https://{home}/{service}/home?region={region}#{fragment}"

    def queue(url: str) -> str:
        return page("sqs/v3", f"/queues/{quote(url, safe='')}")

    links = {
        "DLQ": queue(place.deployment.dlq_url),
        "parking lot": queue(place.deployment.parking_lot_url),
        "alarms": page(
            "cloudwatch", f"alarmsV2:?search={quote(place.alarms_known_as[0], safe='')}"
        ),
        "stack": page("cloudformation", f"/stacks?filteringText={quote(place.stack, safe='')}"),
    }
    if place.function:
        links["function and log"] = page("lambda", f"/functions/{place.function}?tab=monitoring")
    return links


def log_link(place: Place, group: str, stream: str) -> str | None:
    """Return the AWS console's address of a log stream; None for a deployment that is not on AWS."""
    found = _QUEUE_URL.match(place.deployment.dlq_url)
    if found is None:
        return None
    region, home = found["region"], _home(found["region"], found["domain"])

    def part(
        name: str,
    ) -> str:  # quoted twice, with $ for %: the console reads it from the fragment
        return quote(quote(name, safe=""), safe="").replace("%", "$")

    address = f"https://{home}/cloudwatch/home?region={region}#logsV2:log-groups/log-group"
    return f"{address}/{part(group)}/log-events/{part(stream)}"


def _home(region: str, domain: str) -> str:
    if domain.endswith(".cn"):
        return f"{region}.console.amazonaws.cn"
    if region.startswith("us-gov-"):
        return "console.amazonaws-us-gov.com"
    return f"{region}.console.aws.amazon.com"


#: Snapshots to take in parallel. Each asks a dozen things at a time, through clients with 32 connections.
AT_ONCE = 4
#: How many days back to look for the last change, in one call.
_DAYS_SEARCHED = 7
#: Why a glance does not know the values that it does not ask for.
NOT_ASKED = "not asked"
_OFF = {
    Passes.NOT_SCHEDULED: "nothing: the schedule is off; `redrive run` makes a pass",
    Passes.NO_FUNCTION: "nothing: the function does not exist",
    Passes.NO_PROCESS: "nothing: no process is at work",
}
_UNREAD = "nothing: the source queue can't be read"
_FAILS = "nothing: the last pass failed"


def take_snapshots(sessions: Sequence[Session]) -> list[Snapshot]:
    """Take one snapshot of each session, some in parallel. Raises CallFailed and Refused."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(take_snapshot, sessions))


def take_snapshot(session: Session) -> Snapshot:
    """Ask for everything at once. Raises CallFailed and Refused only if the stack itself can't be read."""
    _ = session.letter_store, session.store
    # One client after another: botocore builds them slowly, and not at the same time.
    for service in ("sqs", "dynamodb", "cloudwatch", "logs", "lambda", "scheduler"):
        session.aws.client(service)
    now = session.clock()
    answers = _ask(_of_queues_and_table(session, now) | _of_all_else(session, now))
    return _snapshot(session, answers, now)


def glance(session: Session, settings: Settings) -> Snapshot:
    """A snapshot for a caller that may read only queues and table. The rest is `unknown`, as NOT_ASKED."""
    now = session.clock()
    answers = _ask(_of_queues_and_table(session, now))
    answers |= {what: Answer(fault=NOT_ASKED) for what in _of_all_else(session, now)}
    return _snapshot(session, answers | {"settings": Answer(settings)}, now)


def _snapshot(session: Session, answers: dict[str, Answer[Any]], now: datetime) -> Snapshot:
    settings, dlq = answers["settings"].value, answers["DLQ"].value
    passes = _passes(session, settings, answers, now)
    sources = _sources(session, settings, answers, now, passes or Passes.RUN)
    return Snapshot(
        at=now,
        name=session.place.name,
        sources=sources,
        origin=session.place.origin,
        looks_every=None if passes in _OFF else _looks_every(settings, sources, dlq, now),
        dlq=dlq,
        parking_lot=answers["parking lot"].value,
        oldest=answers["oldest letter"].value,
        last_pass=answers["last pass"].value,
        last_change=answers["last change"].value,
        mode=settings.mode if settings else None,
        is_of_process=session.place.process is not None,
        passes=passes,
        schedule=answers["schedule"].value if "schedule" in answers else None,
        alarms=(answers["alarms"].value if "alarms" in answers else None) or [],
        links=console_links(session.place),
        unknown={what: answer.fault for what, answer in answers.items() if answer.fault},
    )


def _passes(
    session: Session, settings: Settings | None, answers: Mapping[str, Answer[Any]], now: datetime
) -> Passes | None:
    """Whether passes run by themselves; None if that is not known."""
    if session.place.process is not None:
        last, started = answers["last pass"], answers["process"]
        if last.fault or started.fault or settings is None:
            return None
        return passes_of_process(last.value, started.value, settings, now)
    schedule = answers["schedule"]
    if schedule.absent:
        return Passes.NO_FUNCTION
    if schedule.fault:
        return None
    return Passes.RUN if schedule.value == ENABLED else Passes.NOT_SCHEDULED


def _looks_every(
    settings: Settings | None,
    sources: Sequence[SourceNow],
    dlq: QueueFacts | None,
    now: datetime,
) -> timedelta | None:
    """The time between two passes that look; None if settings or circuits could not be read."""
    circuits = [one.circuit for one in sources if one.circuit]
    return looks_every(settings, circuits, dlq, now) if settings and circuits else None


def _ask(questions: dict[str, Callable[[], Any]]) -> dict[str, Answer[Any]]:
    """Ask all questions. Returns each answer, or why there is none, by its question."""
    with Asking() as ask:
        asked = {what: ask(question) for what, question in questions.items()}
        return {what: wait() for what, wait in asked.items()}


def _of_queues_and_table(session: Session, now: datetime) -> dict[str, Callable[[], Any]]:
    questions: dict[str, Callable[[], Any]] = {
        "DLQ": partial(_depth, session, dlq=True),
        "parking lot": partial(_depth, session, dlq=False),
        "last change": lambda: _last_change(session, now),
    }
    for name in session.place.sources:
        questions[_circuit_of(name)] = session.store.of(name).load_circuit
    if not session.place.deployment.targets:
        for number, name in enumerate(session.place.sources):
            questions[_queue_of(name)] = partial(source_facts, session, number)
    return questions


def _depth(session: Session, *, dlq: bool) -> QueueFacts:
    return (session.dead_letters if dlq else session.parking_lot).facts()


def _of_all_else(session: Session, now: datetime) -> dict[str, Callable[[], Any]]:
    of_any: dict[str, Callable[[], Any]] = {
        "settings": lambda: session.settings,
        "oldest letter": lambda: session.letter_store.age_of_oldest(now),
        "last pass": lambda: last_pass(session),
    }
    if session.place.process is not None:
        # It has no schedule and no alarms.
        return of_any | {"process": lambda: session.store.load_start()}  # noqa: PLW0108 - no store may be there
    return of_any | {
        "alarms": lambda: ringing_alarms(session),
        "schedule": lambda: schedule_state(session),
    }


def _last_change(session: Session, now: datetime) -> Change | None:
    changes = changes_of(trail_of(session).read(now.date(), _DAYS_SEARCHED))
    return changes[-1] if changes else None


def _circuit_of(name: str) -> str:
    return f"circuit of {name}"


def _queue_of(name: str) -> str:
    return f"queue {name}"


def _draining_until(
    circuit: Circuit | None, orders: Orders, dlq: QueueFacts | None, now: datetime
) -> datetime | None:
    """Return the end of a drain; None also during a pause or over an empty DLQ, when it has nothing to do."""
    if circuit is None or orders.pauses(now) or (dlq is not None and not dlq.depth > 0):
        return None
    return circuit.orders.drain_until if circuit.orders.drains(now) else None


def _sources(
    session: Session,
    settings: Settings | None,
    answers: dict[str, Answer[Any]],
    now: datetime,
    passes: Passes,
) -> tuple[SourceNow, ...]:
    circuits = {
        name: _circuit(name, settings, answers[_circuit_of(name)], now)
        for name in session.place.sources
    }
    first = circuits[session.place.queue]
    orders = first.orders if first else Orders()
    failed_pass = fault_of(answers["last pass"].value)
    dlq: QueueFacts | None = answers["DLQ"].value
    lot: QueueFacts | None = answers["parking lot"].value
    found = []
    for name, circuit in circuits.items():
        facts: Answer[QueueFacts] = answers.get(_queue_of(name), Answer())
        unread = unread_by(facts)
        hears_live = session.place.hears_live(name)
        step, at = "", None
        if settings and circuit:
            step, at = _nothing_by(passes, unread, failed_pass) or next_step(
                settings, circuit, orders, dlq, now, hears_live=hears_live
            )
        seen = seen_of(
            circuit,
            settings,
            now,
            dlq=dlq,
            lot=lot,
            orders=orders,
            passes=passes,
            unread=unread,
            failed_pass=failed_pass,
            hears_live=hears_live,
        )
        found.append(
            SourceNow(
                name=name,
                target=session.place.target(name),
                facts=facts.value,
                circuit=circuit,
                seen=seen if circuit or passes in _OFF or failed_pass else None,
                next_step=step,
                next_at=at,
                draining_until=_draining_until(circuit, orders, dlq, now),
            )
        )
    return tuple(found)


def _nothing_by(passes: Passes, unread: str, failed_pass: str) -> tuple[str, None] | None:
    """Why no pass takes the next step; None if one does."""
    why = _OFF.get(passes) or (unread and _UNREAD) or (failed_pass and _FAILS)
    return (why, None) if why else None


def _circuit(
    name: str, settings: Settings | None, answer: Answer[Circuit | None], now: datetime
) -> Circuit | None:
    """The circuit now, or as the first pass will make it; None if that is not known."""
    if answer.fault or answer.value or settings is None:
        return answer.value
    return breaker.new_circuit(name, settings, now)

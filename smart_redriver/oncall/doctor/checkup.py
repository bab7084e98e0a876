"""All checks of one queue's deployment, at the same time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from smart_redriver.engine.config.backends import BACKENDS
from smart_redriver.engine.config.targets import Origin
from smart_redriver.oncall.deployment.aws import Answer, Asking, ask
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.doctor.access import check_access
from smart_redriver.oncall.doctor.alarms import check_alarms
from smart_redriver.oncall.doctor.findings import Finding, absent, unknown
from smart_redriver.oncall.doctor.network import check_network
from smart_redriver.oncall.doctor.origins import check_origin, check_targets
from smart_redriver.oncall.doctor.passes import check_passes, check_reports, check_state
from smart_redriver.oncall.doctor.queues import attributes_of, check_queues
from smart_redriver.oncall.terminal.words import listed

#: Looks at one side of a deployment. Raises CallFailed and Refused if it can't read something that it needs.
Check = Callable[[Session], Iterable[Finding]]
#: The answers of the checks, by their names.
_Found = Mapping[str, Answer[list[Finding]]]


def examine(session: Session) -> list[Finding]:
    """All findings about one queue, in the order of the checks."""
    checks: Mapping[str, Check] = BACKENDS[session.place.origin].load("checks")
    _ = session.letter_store, session.store
    is_of_rules = session.place.origin is Origin.EVENTBRIDGE
    for service in (
        *_SERVICES,
        *(("events",) if is_of_rules else ()),
    ):  # one after another: botocore does not build them at the same time
        session.aws.client(service)
    with Asking() as begin:
        answers = {
            name: begin(lambda look=look: list(look(session)))  # type: ignore[misc]  # bound here
            for name, look in checks.items()
        }
        found = {name: wait() for name, wait in answers.items()}
    remedy = _LOOK_AT_A_PROCESS if session.place.process else _LOOK_AT_A_STACK
    return [*_absent(found, session), *_findings(found, remedy)]


#: The checks for letters in SQS queues.
CHECKS: Mapping[str, Check] = {
    "queues": check_queues,
    "origin": check_origin,
    "targets": check_targets,
    "state table": check_state,
    "passes": check_passes,
    "reports": check_reports,
    "access": check_access,
    "network": check_network,
    "alarms": check_alarms,
}
_SERVICES = ("sqs", "dynamodb", "lambda", "logs", "scheduler", "iam", "kms", "cloudwatch", "sns")


_LOOK_AT_A_STACK = "Looking needs the managed policy RedriveViewer; then run it again."
_LOOK_AT_A_PROCESS = (
    "Looking needs what the process needs: state, servers, credentials. Then run it again."
)


def _absent(found: _Found, session: Session) -> Iterator[Finding]:
    """Each thing that does not exist once, with the checks that need it.

    A check ends at the first queue that is gone, so the other queues are then looked for one by one.
    """
    needed_by: defaultdict[str, list[str]] = defaultdict(list)
    for name, answer in found.items():
        if answer.absent:
            needed_by[answer.absent].append(name)
    queues = found.get("queues")
    if queues and queues.absent:
        deployment = session.place.deployment
        urls = (*deployment.source_urls, deployment.dlq_url, deployment.parking_lot_url)
        for url in urls:
            gone = ask(partial(attributes_of, session, url)).absent
            if gone and "queues" not in needed_by[gone]:
                needed_by[gone].append("queues")
    for thing, names in needed_by.items():
        yield absent(thing, f"{listed(names)} could not be checked in full")


def _findings(found: _Found, remedy: str) -> Iterator[Finding]:
    for name, answer in found.items():
        if answer.fault is None:
            yield from answer.value or ()
        elif not answer.absent:
            yield unknown(f"The {name} could not be checked: {answer.fault}", remedy)

"""Looks at source queues, and whether passes can read them."""

from __future__ import annotations

from smart_redriver.engine.errors import GONE
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.oncall.deployment.aws import Answer
from smart_redriver.oncall.deployment.session import Session


def source_facts(session: Session, number: int) -> QueueFacts:
    """The facts of a source queue, by its place among those of its DLQ. Raises CallFailed and Refused."""
    return session.sources[number].facts()


def unread_by(answer: Answer[QueueFacts]) -> str:
    """Why no pass can read a source queue; empty if it can.

    It is gone: another fault may only be this person's, because the re-driver has rights and a network of its own.
    """
    return answer.fault or "" if answer.code in GONE else ""

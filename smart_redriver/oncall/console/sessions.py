"""Sessions for requests: one person's clients and credentials, and where the stack's queues are."""

from __future__ import annotations

import time
from dataclasses import replace
from threading import Lock

from smart_redriver.engine.errors import CallFailed
from smart_redriver.oncall.deployment.places import Place, choose_places
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.terminal import Terminal

#: Outputs of a stack change with a deployment.
_KNOWN_FOR_SECONDS = 30.0
#: What AWS, or botocore, says of credentials that another login would mend.
LOGIN_HELPS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "NoCredentialsError",
        "PartialCredentialsError",
        "CredentialRetrievalError",
        "TokenRetrievalError",
        "SSOTokenLoadError",
        "UnauthorizedSSOTokenError",
        "ProfileNotFound",
    }
)


class Sessions:
    """Opens a session for each request, after the one that the command was started with."""

    def __init__(self, first: Session) -> None:
        self._first = first
        self._aws = first.aws
        self._places: tuple[Place, ...] = ()
        self._known_until = 0.0
        self._lock = Lock()

    @property
    def stack(self) -> str:
        """The name of the stack."""
        return self._first.stack

    def all(self, terminal: Terminal) -> list[Session]:
        """A session for each queue. Raises CallFailed and Refused."""
        return [self._session(place, terminal) for place in self._all_places()]

    def of(self, queue: str, terminal: Terminal) -> Session:
        """The session for one queue. Raises CallFailed, and Refused for one that the stack has not."""
        places = choose_places(self._all_places(), queue)
        return replace(self._session(places[0], terminal), queue=queue)

    def forget(self, fault: Exception) -> None:
        """Look again for what may have changed, now that something failed: the stack, or the person's login."""
        with self._lock:
            self._known_until = 0.0
            if isinstance(fault, CallFailed) and fault.code in LOGIN_HELPS:
                self._aws = self._aws.logged_in_anew()

    def _session(self, place: Place, terminal: Terminal) -> Session:
        return replace(
            self._first, aws=self._aws.counting_anew(), terminal=terminal, known_place=place
        )

    def _all_places(self) -> tuple[Place, ...]:
        with self._lock:
            if time.monotonic() >= self._known_until:
                found = replace(self._first, aws=self._aws.counting_anew()).each_queue()
                self._places = tuple(one.place for one in found)
                self._known_until = time.monotonic() + _KNOWN_FOR_SECONDS
            return self._places

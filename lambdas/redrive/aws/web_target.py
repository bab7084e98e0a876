"""A web target: letters are posted as SNS posts them.

The connection goes to an address that was looked at, and TLS is for the host's name: what a name resolves to a moment
later changes nothing. There are no redirects, proxies or repeats, and of the answer the status is all that is read.
Python's own `http.client` is enough for it, given a socket; a pool would look the host up again.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from functools import cached_property
from http.client import HTTPConnection, HTTPException
from typing import cast
from urllib.parse import SplitResult, urlsplit

from redrive.aws.deliveries import Bounced, deliver_one_by_one
from redrive.aws.timed_connection import TimedConnection
from redrive.aws.web_addresses import Resolve, addresses_of
from redrive.core.outgoing import Outgoing, Sent
from redrive.core.web_post import Post, post_of
from redrive.errors import CallFailed
from redrive.targets import Target

_CONNECT_SECONDS = 2
#: From the handshake to the answer's status, however slowly it drips: as long as SNS waits.
#: https://docs.aws.amazon.com/sns/latest/dg/sns-http-https-endpoint-as-subscriber.html
_WHOLE_SECONDS = 15.0

_PORTS = {"http": 80, "https": 443}


def _usual_context() -> ssl.SSLContext:
    """Names and certificates are looked at, and nothing older than TLS 1.2 is spoken: some builds of Python leave that open."""
    context = ssl.create_default_context()
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    return context


class WebTarget:
    """An HTTP or HTTPS endpoint. It says no id of what it accepted: that keeps the letter's."""

    def __init__(
        self,
        target: Target,
        private_hosts: Collection[str] = (),
        *,
        resolve: Resolve = socket.getaddrinfo,
        context: Callable[[], ssl.SSLContext] = _usual_context,
        whole_seconds: float = _WHOLE_SECONDS,
    ) -> None:
        parts = urlsplit(target.place)
        self._target = target
        self._private_hosts = private_hosts
        self._resolve = resolve
        self._whole_seconds = whole_seconds
        self._host = parts.hostname or ""
        self._port = parts.port or _PORTS[parts.scheme]
        self._header = _host_header(parts)
        self._is_secret = parts.scheme == "https"
        self._make_context = context

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Post each letter. 2xx is accepted; any other answer, and none, is a bounce.

        Where the host is not known, not public, takes no connection or has no valid certificate, that is a refusal.
        """
        addresses: list[str] = []

        def give(one: Outgoing) -> str:
            if not addresses:
                addresses.extend(self._addresses())
            self._post(addresses, post_of(one.letter, self._target))
            return one.letter.message_id

        return deliver_one_by_one("POST", outgoing, give)

    def _addresses(self) -> list[str]:
        return addresses_of(self._host, self._port, self._private_hosts, self._resolve)

    def _post(self, addresses: Sequence[str], post: Post) -> None:
        """Raises CallFailed and Bounced."""
        with closing(self._connected(addresses)) as plain, closing(self._wrapped(plain)) as wrapped:
            connection = TimedConnection(wrapped, self._whole_seconds)
            _shake_hands(connection)
            status = self._status(connection, post)
        if not 200 <= status < 300:
            raise Bounced(f"HTTP {status}")

    def _connected(self, addresses: Sequence[str]) -> socket.socket:
        for address in addresses:
            with suppress(OSError):
                return socket.create_connection((address, self._port), timeout=_CONNECT_SECONDS)
        raise CallFailed("POST", "NoConnection", "no address of the host takes a connection")

    def _wrapped(self, plain: socket.socket) -> socket.socket:
        """The socket of the conversation; the handshake is still to come."""
        if not self._is_secret:
            return plain
        return self._context.wrap_socket(
            # No certificate has the dot at the end of a name that is looked up as it stands.
            plain,
            server_hostname=self._host.removesuffix("."),
            do_handshake_on_connect=False,
        )

    @cached_property
    def _context(self) -> ssl.SSLContext:
        """Reading the authorities' certificates takes a while."""
        return self._make_context()

    def _status(self, connection: TimedConnection, post: Post) -> int:
        http = HTTPConnection(self._host, self._port)
        http.auto_open = 0  # it would look the host up again
        http.sock = cast("socket.socket", connection)
        try:
            headers = {"Host": self._header, **post.headers}
            http.request("POST", post.path, body=post.body, headers=headers)
            with closing(http.getresponse()) as response:
                return response.status
        except (OSError, HTTPException) as error:
            # It may have been taken, or be what the endpoint dies of: it is not for another try at once.
            raise Bounced("no answer") from error


def _host_header(parts: SplitResult) -> str:
    """As it was looked up: a name that is no ASCII in its other spelling. The port is no part of its last label."""
    host = parts.hostname or ""
    name = f"[{host}]" if ":" in host else host.encode("idna").decode()
    return name if parts.port is None else f"{name}:{parts.port}"


def _shake_hands(connection: TimedConnection) -> None:
    """Raises CallFailed: a refusal where the certificate is not the host's or not valid."""
    try:
        connection.shake_hands()
    except ssl.SSLCertVerificationError as error:
        raise CallFailed("POST", "CertificateInvalid", error.verify_message) from error
    except OSError as error:
        raise CallFailed("POST", "SSLError", type(error).__name__) from error

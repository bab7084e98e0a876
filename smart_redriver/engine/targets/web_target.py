"""A web target: letters are posted as SNS posts them.

The connection goes to an address that was checked, and TLS is for the host's name: a different resolution a moment
later changes nothing. There are no redirects, proxies or repeats, and only the answer's status is read. Python's own
`http.client` is enough, given a socket; a pool would look the host up again.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from functools import cached_property
from http.client import HTTPConnection, HTTPException
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

from smart_redriver.engine.config.targets import Address, Target, hands_out_credentials, is_public
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.messages.outgoing import Outgoing, Sent
from smart_redriver.engine.messages.redelivery import Post, post_of
from smart_redriver.engine.targets.target_calls import Bounced, deliver_one_by_one

_CONNECT_SECONDS = 2
#: From the handshake to the answer's status, however slowly that drips: as long as SNS waits.
#: https://docs.aws.amazon.com/sns/latest/dg/sns-http-https-endpoint-as-subscriber.html
_WHOLE_SECONDS = 15.0

_PORTS = {"http": 80, "https": 443}


def _usual_context() -> ssl.SSLContext:
    """Check names and certificates, and accept nothing older than TLS 1.2: some builds of Python leave that open."""
    context = ssl.create_default_context()
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    return context


class WebTarget:
    """An HTTP or HTTPS endpoint. It returns no id, so an accepted letter keeps its own."""

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
        """Post each letter. 2xx is accepted; any other answer, or none, is a bounce.

        If the host is unknown or not public, accepts no connection or has no valid certificate, that is a refusal.
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
        """The socket to talk over; the handshake is still to come."""
        if not self._is_secret:
            return plain
        return self._context.wrap_socket(
            # No certificate has the final dot of a fully qualified name.
            plain,
            server_hostname=self._host.removesuffix("."),
            do_handshake_on_connect=False,
        )

    @cached_property
    def _context(self) -> ssl.SSLContext:
        """The TLS context, made once: reading the authorities' certificates takes a while."""
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
            # The endpoint may have accepted it, or may have crashed on it: it must not be tried again at once.
            raise Bounced("no answer") from error


def _host_header(parts: SplitResult) -> str:
    """The host as it was looked up: a non-ASCII name in its ASCII spelling. The port is no part of its last label."""
    host = parts.hostname or ""
    name = f"[{host}]" if ":" in host else host.encode("idna").decode()
    return name if parts.port is None else f"{name}:{parts.port}"


def _shake_hands(connection: TimedConnection) -> None:
    """Raises CallFailed: a refusal if the certificate is not the host's or not valid."""
    try:
        connection.shake_hands()
    except ssl.SSLCertVerificationError as error:
        raise CallFailed("POST", "CertificateInvalid", error.verify_message) from error
    except OSError as error:
        raise CallFailed("POST", "SSLError", type(error).__name__) from error


#: Bytes that are sent at once.
_CHUNK = 16_384
#: Bytes that are read of an answer at most: `http.client` takes a line of 64 KiB, and we want the first one.
_MOST_READ = 131_072


class TimedConnection:
    """Sends, and provides a file to read the answer from. Every step raises OSError when the time is over."""

    def __init__(
        self,
        connection: socket.socket,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._until = clock() + seconds

    def shake_hands(self) -> None:
        """The TLS handshake, if TLS is used. Raises ssl.SSLCertVerificationError, too."""
        if isinstance(self._connection, ssl.SSLSocket):
            self._allow_what_is_left()
            self._connection.do_handshake()

    def sendall(self, data: bytes) -> None:
        """Send all of it."""
        rest = memoryview(data)
        while rest:
            self._allow_what_is_left()
            rest = rest[self._connection.send(rest[:_CHUNK]) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Read the answer, at most `_MOST_READ` bytes."""
        return io.BufferedReader(_Said(self))

    def recv_into(self, buffer: memoryview) -> int:
        """Read what is there, or wait for it."""
        self._allow_what_is_left()
        return self._connection.recv_into(buffer)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _allow_what_is_left(self) -> None:
        left = self._until - self._clock()
        if left <= 0:
            raise TimeoutError("the time for the whole is over")
        self._connection.settimeout(left)


class _Said(io.RawIOBase):
    def __init__(self, connection: TimedConnection) -> None:
        super().__init__()
        self._connection = connection
        self._left = _MOST_READ

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what BufferedReader gives
        if not self._left:
            raise OSError("the answer is too long")
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count


#: Two unreachable addresses tell the pass enough; each costs a time-out.
MOST_ADDRESSES = 2

Resolve = Callable[..., Any]


def addresses_of(
    host: str, port: int, private_hosts: Collection[str], resolve: Resolve = socket.getaddrinfo
) -> list[str]:
    """The addresses to try, IPv4 before IPv6, which a function in Lambda may not have.

    Raises CallFailed if the host is unknown, or if one of its addresses is not allowed. An address at which machines
    get their credentials never is, whatever hosts are named.
    """
    try:
        found = {entry[4][0] for entry in resolve(host, port, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError) as error:
        raise CallFailed("POST", "HostNotFound", type(error).__name__) from error
    addresses = sorted((ip_address(one.partition("%")[0]) for one in found), key=_rank)
    is_private = host.lower() in {one.lower() for one in private_hosts}
    for one in addresses:
        if hands_out_credentials(one) or not (is_private or is_public(one)):
            raise CallFailed(
                "POST", "AddressNotPublic", "the host has an address that is not public"
            )
    return [str(one) for one in addresses[:MOST_ADDRESSES]]


def _rank(address: Address) -> tuple[int, int]:
    return address.version, int(address)

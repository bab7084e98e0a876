"""An HTTP or HTTPS endpoint on the loopback, which answers one connection after the other as a test says."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

#: What becomes of one connection, whose request has been read.
Answer = Callable[[socket.socket], None]

HOST = "endpoint.test"


def saying(text: str) -> Answer:
    return lambda connection: connection.sendall(text.encode())


def status(code: int, *headers: str) -> Answer:
    return saying("\r\n".join([f"HTTP/1.1 {code} Whatever", "Content-Length: 0", *headers, "", ""]))


def for_ever(text: str, first: str = "") -> Answer:
    """Say something until nobody listens."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(first.encode())
        while True:
            connection.sendall(text.encode())

    return answer


def until_hung_up(connection: socket.socket) -> None:
    """Say nothing."""
    while connection.recv(1024):
        pass


class Endpoint:
    """Listens while it is entered. `requests` are what it was sent, to the letter; `names` whom TLS asked for."""

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self.names: list[str | None] = []
        self._answer = answer
        self._tls = tls
        if tls:
            tls.sni_callback = lambda _, name, __: self.names.append(name)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Wakes whoever waits in accept; closing alone would not.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{HOST}:{self.port}/orders?key=1"

    def resolve(self, host: str, port: int, **_: Any) -> list[Any]:
        """What a resolver says of it."""
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._socket.accept()
            except OSError:
                return
            with plain, suppress(OSError), self._wrapped(plain) as one:
                self.requests.append(_request(one))
                self._answer(one)

    def _wrapped(self, plain: socket.socket) -> socket.socket:
        return self._tls.wrap_socket(plain, server_side=True) if self._tls else plain


def _request(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as lines:
        head = b""
        while (line := lines.readline()) not in (b"\r\n", b""):
            head += line
        length = next(
            (line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")), b"a: 0"
        )
        return head + b"\r\n" + lines.read(int(length.partition(b": ")[2]))


@cache
def certificate(name: str = HOST, *, days: int = 3650) -> tuple[bytes, bytes]:
    """One that is its own authority, and its key; of ten years or, with fewer `days` than none, over already."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = datetime.now(UTC) - timedelta(days=2)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=1 if days < 0 else days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return made.public_bytes(pem), secret


def served(made: tuple[bytes, bytes]) -> ssl.SSLContext:
    """The server's side of a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as folder:
        chain = Path(folder) / "chain.pem"
        chain.write_bytes(made[0] + made[1])
        context.load_cert_chain(chain)
    return context


def trusting(made: tuple[bytes, bytes]) -> Callable[[], ssl.SSLContext]:
    """The context of a machine that has this certificate among its authorities."""
    return lambda: ssl.create_default_context(cadata=made[0].decode())

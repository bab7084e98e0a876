"""The function's credentials for the database, over TLS: a secret's password, or a token that IAM signs."""

from __future__ import annotations

import json
import os
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any

import psycopg

from smart_redriver.engine.aws.clients import naming
from smart_redriver.engine.errors import CallFailed
from smart_redriver.postgres.engine.database import Connection, Database
from smart_redriver.postgres.engine.place import JobsDatabase

#: libpq's own, for a file of authorities, and for a tunnel's end.
#: https://www.postgresql.org/docs/current/libpq-envars.html
AUTHORITIES = "PGSSLROOTCERT"
_ADDRESS = "PGHOSTADDR"

#: libpq's word for the authorities that the machine trusts.
SYSTEM = "system"

#: OpenSSL's words for any fault of a certificate.
_REFUSED = "certificate verify failed"

#: "Do you speak TLS?", and yes. https://www.postgresql.org/docs/current/protocol-message-formats.html
_SSL_REQUEST = struct.pack("!ii", 8, 80_877_103)
_YES = b"S"


def authorities_of(place: JobsDatabase) -> str:
    """The file of authorities, or "system". For the latter, a person may name a file in PGSSLROOTCERT."""
    if place.sslrootcert == SYSTEM:
        return os.environ.get(AUTHORITIES) or SYSTEM
    return place.sslrootcert


def explain(place: JobsDatabase, fault: str, timeout: float) -> str | None:
    """A sentence if a connection failed because of the authorities or the server's certificate; else None.

    `fault` is libpq's text. If that does not give the reason, this asks the server for its certificate once more, for
    at most `timeout` seconds, and sends it nothing else.
    """
    authorities = authorities_of(place)
    if place.sslmode == "disable":
        return None
    if authorities == SYSTEM:
        return _unknown_to_psycopg(place) if _REFUSED in fault else None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # libpq checks the host's name afterwards, and says what is wrong with it.
    context.check_hostname = False
    try:
        context.load_verify_locations(authorities)
    except OSError as unfit:
        return f"The authorities that sign for {place.host} can't be read from {authorities}: {_reason(unfit)}"
    if _REFUSED not in fault:
        return None
    reason = _why_refused(place, context, timeout) or _REFUSED
    return f"The certificate of {place.host}:{place.port} is not trusted by the authorities in {authorities}: {reason}"


def _unknown_to_psycopg(place: JobsDatabase) -> str:
    return (
        f"The certificate of {place.host}:{place.port} is not signed by an authority that psycopg trusts, or is out "
        "of date: name the file of its authorities (`authorities` where it is deployed, `sslrootcert`, or "
        f"{AUTHORITIES} for a command)"
    )


def _reason(unfit: OSError) -> str:
    if isinstance(unfit, ssl.SSLError):
        return "it has no certificates in PEM"
    return unfit.strerror or type(unfit).__name__


def _why_refused(place: JobsDatabase, context: ssl.SSLContext, timeout: float) -> str | None:
    """Return OpenSSL's objection to the certificate; None if it has none or can't be asked."""
    where = os.environ.get(_ADDRESS) or place.host, place.port
    try:
        with socket.create_connection(where, timeout) as plain:
            plain.sendall(_SSL_REQUEST)
            if plain.recv(1) != _YES:
                return None
            with context.wrap_socket(plain):
                return None
    except ssl.SSLCertVerificationError as refused:
        return refused.verify_message
    except OSError:
        return None


#: A server that does not answer must not eat the pass.
CONNECT_TIMEOUT_SECONDS = 5

#: Nor may one that is gone without notice, as after a failover: the kernel would retry for hours. A slow statement is
#: not affected, because the server still answers.
#: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-KEEPALIVES
_GONE_AFTER = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,  # ms
}

#: Parameters that a person's environment or service file must not set. With a Kerberos ticket, libpq would use its
#: encryption instead of TLS, and verify no certificate. Options may lead to tables in another schema.
#: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-GSSENCMODE
_NOT_FROM_OUTSIDE = {"gssencmode": "disable", "ssl_min_protocol_version": "TLSv1.2", "options": ""}


def open_database(place: JobsDatabase, make_client: Callable[[str], Any]) -> Database:
    """The database. Its credentials are fetched when a connection is opened.

    `make_client` makes a boto3 client for a service.
    """
    return Database(place, Connector(place, make_client))


class Connector:
    """Opens connections. If a password is refused, it is read again, because it may have been rotated."""

    def __init__(self, place: JobsDatabase, make_client: Callable[[str], Any]) -> None:
        self._place = place
        self._make_client = make_client
        self._secret: dict[str, str] | None = None

    def __call__(self) -> Connection:
        """One connection, in autocommit. Raises psycopg's errors, and CallFailed if AWS refuses the credentials."""
        was_known = self._secret is not None
        try:
            return self._connect()
        except psycopg.OperationalError:
            if not was_known:
                raise
            self._secret = None
            return self._connect()

    def _connect(self) -> Connection:
        try:
            return self._open(self._credentials())
        except psycopg.OperationalError as error:
            why = explain(self._place, str(error), CONNECT_TIMEOUT_SECONDS)
            if why is None:
                raise
            raise psycopg.OperationalError(why) from error

    def _open(self, credentials: dict[str, str]) -> Connection:
        place = self._place
        parameters: dict[str, Any] = {"sslmode": place.sslmode, **_NOT_FROM_OUTSIDE, **_GONE_AFTER}
        parameters |= credentials
        if place.sslmode != "disable":
            parameters["sslrootcert"] = authorities_of(place)
        return psycopg.connect(
            host=place.host,
            port=place.port,
            dbname=place.dbname,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            application_name="smart-redriver",
            autocommit=True,
            # A pooler in between may give each statement to another session.
            prepare_threshold=None,
            **parameters,
        )

    def _credentials(self) -> dict[str, str]:
        place = self._place
        if place.secret:
            secret = self._secret = self._secret or self._read_secret()
            return {"user": place.user or secret["username"], "password": secret["password"]}
        if place.sslmode == "disable":
            return {"user": place.user} if place.user else {}
        with naming("GenerateDbAuthToken"):
            token = self._make_client("rds").generate_db_auth_token(
                DBHostname=place.host, Port=place.port, DBUsername=place.user
            )
        return {"user": place.user, "password": token}

    def _read_secret(self) -> dict[str, str]:
        call = "GetSecretValue"
        with naming(call):
            answer = self._make_client("secretsmanager").get_secret_value(
                SecretId=self._place.secret
            )
        try:
            secret = json.loads(answer["SecretString"])
            return {"username": str(secret["username"]), "password": str(secret["password"])}
        except (KeyError, TypeError, ValueError):
            raise CallFailed(call, "NotASecret", "username and password, as JSON") from None

"""The authorities that sign for a database, and why a certificate is not trusted: libpq itself says no more than that."""

from __future__ import annotations

import os
import socket
import ssl
import struct

from redrive.databases import JobsDatabase

#: libpq's own, for a file of authorities, and for a tunnel's end. https://www.postgresql.org/docs/current/libpq-envars.html
AUTHORITIES = "PGSSLROOTCERT"
_ADDRESS = "PGHOSTADDR"

#: libpq's word for what the machine trusts.
SYSTEM = "system"

#: What OpenSSL says of a certificate, whatever is wrong with it.
_REFUSED = "certificate verify failed"

#: "Do you speak TLS?", and yes. https://www.postgresql.org/docs/current/protocol-message-formats.html
_SSL_REQUEST = struct.pack("!ii", 8, 80_877_103)
_YES = b"S"


def authorities_of(place: JobsDatabase) -> str:
    """The file of them, or "system": where that is the configuration's, a person may name a file in PGSSLROOTCERT."""
    if place.sslrootcert == SYSTEM:
        return os.environ.get(AUTHORITIES) or SYSTEM
    return place.sslrootcert


def explain(place: JobsDatabase, fault: str, timeout: float) -> str | None:
    """A sentence for a connection that failed for the authorities, or for the server's certificate; None for any other.

    `fault` is libpq's. Where that keeps the reason to itself, the server is asked for its certificate once more, for
    `timeout` seconds at most, and told nothing.
    """
    authorities = authorities_of(place)
    if place.sslmode == "disable":
        return None
    if authorities == SYSTEM:
        return _unknown_to_psycopg(place) if _REFUSED in fault else None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # libpq looks at the name behind it, and says what is wrong with that.
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
        f"The certificate of {place.host}:{place.port} is signed by none that psycopg trusts by itself, or is out of date: name the "
        f"file of its authorities (`authorities` where it is deployed, `sslrootcert`, or {AUTHORITIES} for a command)"
    )


def _reason(unfit: OSError) -> str:
    if isinstance(unfit, ssl.SSLError):
        return "it has no certificates in PEM"
    return unfit.strerror or type(unfit).__name__


def _why_refused(place: JobsDatabase, context: ssl.SSLContext, timeout: float) -> str | None:
    """What OpenSSL holds against the certificate; None where it can't be asked, or nothing is."""
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

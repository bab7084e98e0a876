"""The URL of a web target: one way to write it, as nobody may read another host out of it. Standard library only."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import SplitResult, urlsplit

_URL = "a URL with a host and maybe a port, without user name, fragment or blanks"
_HOST = (
    "a URL whose host is a name of at most 253 letters, digits and hyphens, 63 of them between two dots, or an address "
    "in full: four numbers, or IPv6 in brackets"
)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
#: What resolvers read as an address of IPv4, however few numbers it has, and of whatever base.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def check_url(text: str) -> None:
    """Raises ValueError, saying what is accepted."""
    try:
        parts = urlsplit(text)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        raise ValueError(_URL) from None
    if (
        not (parts.hostname and has_port)
        or "@" in parts.netloc
        or parts.fragment
        or re.search(r"[\s\x00-\x1f\x7f\\]", text)
    ):
        raise ValueError(_URL)
    if not _is_good_host(parts):
        raise ValueError(_HOST)


def _is_good_host(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    if "[" in parts.netloc:
        return _is_address(host, IPv6Address)
    try:
        # As it is looked up: digits of another script are digits then.
        name = host.encode("idna").decode().lower().removesuffix(".")
    except UnicodeError:
        return False
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _is_address(host, IPv4Address)
    return len(name) <= 253 and all(_LABEL.fullmatch(one) for one in labels)


def _is_address(host: str, kind: type[IPv4Address | IPv6Address]) -> bool:
    try:
        kind(host)
    except ValueError:
        return False
    return "%" not in host

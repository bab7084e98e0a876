"""At which addresses a web target is reached: public ones only, unless its host is named as a private one."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any

from redrive.errors import CallFailed

#: Of two that can't be reached the pass learns enough; each costs a time-out.
MOST_ADDRESSES = 2

#: IPv4 behind a translator: the last four bytes. https://www.rfc-editor.org/rfc/rfc6052
_NAT64 = IPv6Network("64:ff9b::/96")

#: The same within a network. https://www.rfc-editor.org/rfc/rfc8215 (newer Pythons know it)
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")

Resolve = Callable[..., Any]


def addresses_of(
    host: str, port: int, private_hosts: Collection[str], resolve: Resolve = socket.getaddrinfo
) -> list[str]:
    """The addresses to try, IPv4 before IPv6, which a function in Lambda may not have.

    Raises CallFailed: the host is not known, or one of its addresses is not for it to be reached at. A link-local
    address never is, whatever is named: what answers there hands out credentials.
    """
    try:
        found = {entry[4][0] for entry in resolve(host, port, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError) as error:
        raise CallFailed("POST", "HostNotFound", type(error).__name__) from error
    addresses = sorted((ip_address(one.partition("%")[0]) for one in found), key=_rank)
    is_private = host.lower() in {one.lower() for one in private_hosts}
    for one in addresses:
        if _embedded(one).is_link_local or not (is_private or is_public(one)):
            raise CallFailed(
                "POST", "AddressNotPublic", "the host has an address that is not public"
            )
    return [str(one) for one in addresses[:MOST_ADDRESSES]]


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether anybody can reach it, and it is one machine's: IPv4 within IPv6 counts as the IPv4 that it is."""
    inner = _embedded(address)
    if isinstance(inner, IPv6Address) and (
        inner.sixtofour or inner.teredo or inner in _LOCAL_NAT64
    ):
        return False  # tunnels, whose end could be anywhere
    return inner.is_global and not inner.is_multicast


def _embedded(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _rank(address: IPv4Address | IPv6Address) -> tuple[int, int]:
    return address.version, int(address)

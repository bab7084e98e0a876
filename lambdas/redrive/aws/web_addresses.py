"""At which addresses a web target is reached: public ones only, unless its host is named as a private one."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from ipaddress import ip_address
from typing import Any

from redrive.addresses import Address, hands_out_credentials, is_public
from redrive.errors import CallFailed

#: Of two that can't be reached the pass learns enough; each costs a time-out.
MOST_ADDRESSES = 2

Resolve = Callable[..., Any]


def addresses_of(
    host: str, port: int, private_hosts: Collection[str], resolve: Resolve = socket.getaddrinfo
) -> list[str]:
    """The addresses to try, IPv4 before IPv6, which a function in Lambda may not have.

    Raises CallFailed: the host is not known, or one of its addresses is not for it to be reached at. One where machines
    get their credentials never is, whatever is named.
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

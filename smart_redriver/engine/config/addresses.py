"""Which addresses letters may be posted to. Standard library only: synth,
the function and `redrive doctor` ask the same.

Python's `is_global` differs between its versions, and knows nothing of what is not assigned to anybody yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

#: All that is assigned of IPv6, and what of it is no machine's own: protocols and tunnels, whose end could be anywhere.
#: https://www.iana.org/assignments/ipv6-address-space
#: https://www.iana.org/assignments/iana-ipv6-special-registry
_UNICAST = IPv6Network("2000::/3")
_NOBODYS = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
#: Relays into such tunnels. https://www.rfc-editor.org/rfc/rfc7526
_RELAYS = IPv4Network("192.88.99.0/24")

#: IPv4 behind a translator, whom anybody may have. https://www.rfc-editor.org/rfc/rfc6052
_NAT64 = IPv6Network("64:ff9b::/96")
#: The same within a network, at the end or behind its prefix. https://www.rfc-editor.org/rfc/rfc8215
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
#: Addresses that end in one of IPv4: compatible, translated, and the two above.
_WITH_IPV4 = (*map(IPv6Network, ("::/96", "::ffff:0:0:0/96")), _NAT64, _LOCAL_NAT64)

#: What AWS answers with to instances and containers: metadata and credentials, beside what is link-local.
#: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
_OF_INSTANCES = IPv6Network("fd00:ec2::/32")


def is_public(address: Address) -> bool:
    """Whether anybody can reach it, and it is one machine's: IPv4 within IPv6 counts as the IPv4 that it is."""
    if isinstance(address, IPv6Address) and address in _NAT64:
        address = _last_of(address)
    elif isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and address not in _RELAYS
    is_somebodys = address in _UNICAST and not any(address in one for one in _NOBODYS)
    return is_somebodys and address.is_global


def hands_out_credentials(address: Address) -> bool:
    """Whether machines get their credentials there, in whatever address of IPv6 that is wrapped."""
    return any(
        one.is_link_local or (isinstance(one, IPv6Address) and one in _OF_INSTANCES)
        for one in (address, *_within(address))
    )


def _within(address: Address) -> Iterator[IPv4Address]:
    """Every address of IPv4 that somebody on the way may make of this one."""
    if isinstance(address, IPv4Address):
        return
    yield from filter(None, (address.ipv4_mapped, address.sixtofour))
    yield from address.teredo or ()
    if any(address in one for one in _WITH_IPV4):
        yield _last_of(address)
    if address in _LOCAL_NAT64:
        number = int(address)
        yield IPv4Address((number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF)


def _last_of(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)

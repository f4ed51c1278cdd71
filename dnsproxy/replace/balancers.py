"""The load balancers that lead here: which addresses and hostnames are replaced, and by what.

The law: pure values. An address is compared by its octets, a hostname by its lower-case wire form; what is no address
and no hostname leads nowhere, and is never an error. The search of a reply for them costs the same for a few of them as
for one, and for more than _MOST_SEARCHED it is not worth its time: then every reply is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple

import msgspec

from dnsproxy.dns.addresses import is_address, parse_address, parse_addresses
from dnsproxy.dns.names import BadName, parse_hostname, to_wire

Network = IPv4Network | IPv6Network

_MOST_SEARCHED: Final = 64
_NAME: Final = b"name of a balancer:"
"""In front of names: longer than any address."""


class Balancers(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Load balancers as texts: as flags, statuses of objects and other processes have them."""

    replaced: dict[str, tuple[str, ...]] = {}
    """Addresses and hostnames of load balancers, and the addresses that pods are to use in place of theirs."""
    known: dict[str, tuple[str, ...]] = {}
    """Addresses, hostnames and networks (`192.0.2.0/24`) that lead here for claimed names, whatever `replaced` says,
    and what the names of their class are answered with; empty: what the name's own row has."""


NO_BALANCERS: Final = Balancers()


class Target(NamedTuple):
    """What pods are to use: addresses in wire form, by their size."""

    addresses: tuple[bytes, ...]

    def of_size(self, size: int) -> tuple[bytes, ...]:
        """Those of one family: 4 or 16 octets."""
        return tuple(one for one in self.addresses if len(one) == size)


OF_ROW: Final = Target(())
"""In place of a target: that of the name's own row. As a tuple with one item it is true, as every target is."""


class Leads:
    """Balancers, ready to judge the addresses and names of replies."""

    def __init__(self, balancers: Balancers = NO_BALANCERS) -> None:
        self.balancers = balancers
        self._networks: list[Network] = []
        self._replaced = self._read(balancers.replaced)
        self._known = {**self._replaced, **self._read(balancers.known)}
        self.search: Callable[[bytes], object] | None = _make_search(balancers.replaced)
        """Finds what is replaced in the octets of a reply, or something like it; None: nothing is replaced."""

    def by_address(self, octets: bytes, *, claimed: bool) -> Target | None:
        """What is to be used in place of an address in a reply to any name, or to one that an object has `claimed`.

        OF_ROW: the addresses of the name's own row. None: the address leads elsewhere.
        """
        found = (self._known if claimed else self._replaced).get(octets)
        if found is None and claimed and self._networks:
            address = ip_address(octets)
            return OF_ROW if any(address in network for network in self._networks) else None
        return found

    def by_name(self, name: bytes, *, claimed: bool) -> Target | None:
        """The same for a lower-case wire name."""
        return (self._known if claimed else self._replaced).get(_NAME + name)

    def _read(self, rows: Mapping[str, tuple[str, ...]]) -> dict[bytes, Target]:
        """Targets by the octets of addresses, and by names behind _NAME.

        What is neither, or has a target that is no address, is left out: a primary, or a saved file, has sent it.
        """
        found: dict[bytes, Target] = {}
        for text, addresses in rows.items():
            try:
                target = make_target(addresses) if addresses else OF_ROW
                if "/" in text:
                    self._networks.append(ip_network(text))
                elif is_address(text):
                    found[ip_address(text).packed] = target
                elif (name := _wire_of(text)) is not None:
                    found[_NAME + name] = target
            except ValueError:
                continue
        return found


def make_target(addresses: Iterable[str]) -> Target:
    """Addresses as texts, in canonical form."""
    return Target(tuple(ip_address(one).packed for one in addresses))


def parse_replacement(text: str) -> tuple[str, tuple[str, ...]]:
    """`ADDRESS=TARGET[,TARGET]...`: a load balancer, and what is used in its place. Raises ValueError."""
    address, equals, target = text.partition("=")
    if not equals:
        raise ValueError(f"{text!a} is not ADDRESS=TARGET, for example 203.0.113.10=10.96.7.7")
    return parse_address(address.strip()), parse_addresses(target)


def _wire_of(text: str) -> bytes | None:
    try:
        return to_wire(parse_hostname(text))
    except BadName:
        return None


def _make_search(replaced: Mapping[str, tuple[str, ...]]) -> Callable[[bytes], object] | None:
    if not replaced:
        return None
    if len(replaced) > _MOST_SEARCHED:
        return bool  # true of every reply: each is read
    octets = []
    for text in replaced:
        try:
            octets.append(re.escape(ip_address(text).packed))
        except ValueError:
            name = _wire_of(text)
            # Its first label stands in one piece wherever the name is: only what follows can be a pointer.
            octets += [b"(?i:" + re.escape(name[: 1 + name[0]]) + b")"] if name is not None else []
    return re.compile(b"|".join(octets), re.DOTALL).search if octets else None

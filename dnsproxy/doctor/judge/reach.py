"""Reach: what a pod gets at an address, from the probes of its ports.

The law: only what was dialled counts; an address is as good as its worst port that counts. A port that accepts no
connection does not count if another one of the address answers, and neither does TLS for hosts without TLS. A family
without a route does not count beside one with a route: a pod's client uses the other. Tested in
tests/dnsproxy/doctor/judge/test_reach.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dnsproxy.doctor.facts.probes import Header, Outcome, Probe
from dnsproxy.doctor.judge.header_mode import by_port, is_understood
from dnsproxy.doctor.judge.paths import normalize_address
from dnsproxy.doctor.judge.web_ports import WebPort

_LOST: Final = frozenset([Outcome.REFUSED, Outcome.UNREACHABLE])
_UNPARSED: Final = frozenset([Outcome.BAD_REQUEST, Outcome.GARBAGE])
"""A client of TLS gets the 400 as plain text instead of a handshake."""


class Reach(Enum):
    """What becomes of a pod's connection."""

    SERVED = "is answered"
    NEEDS_HEADER = "is answered with the PROXY header only"
    BAD_REQUEST = "is answered with 400"
    UNSERVED = "is opened and not answered"
    CLOSED = "is not accepted"
    NO_ROUTE = "has no route"
    UNKNOWN = "was not tried"


WORST_FIRST: Final = (
    Reach.NEEDS_HEADER, Reach.BAD_REQUEST, Reach.UNSERVED, Reach.CLOSED, Reach.UNKNOWN, Reach.NO_ROUTE, Reach.SERVED,
)  # fmt: skip
FAILING: Final = frozenset(
    [Reach.NEEDS_HEADER, Reach.BAD_REQUEST, Reach.UNSERVED, Reach.CLOSED, Reach.NO_ROUTE],
)


@dataclass(frozen=True, slots=True)
class PortReach:
    """What a pod gets at one port."""

    port: int
    tls: bool
    reach: Reach


@dataclass(frozen=True, slots=True)
class AddressReach:
    """What a pod gets at one address, for one host."""

    address: str
    reach: Reach
    probes: tuple[Probe, ...] = ()

    def failing_ports(self, *, tls: bool) -> tuple[int, ...]:
        """The ports that fail pods, for hosts with or without TLS."""
        ports = ports_of(self.probes)
        return tuple(one.port for one in ports if one.reach in FAILING and _counts(one, ports, tls=tls))

    @property
    def bare(self) -> tuple[Probe, ...]:
        """The probes without a PROXY header, as a pod's client connects."""
        return tuple(probe for probe in self.probes if probe.header is Header.PLAIN)


class ProbeIndex:
    """The probes by address."""

    def __init__(self, probes: Iterable[Probe]) -> None:
        self._by_address: dict[str, list[Probe]] = {}
        for probe in probes:
            self._by_address.setdefault(normalize_address(probe.address), []).append(probe)

    def at(self, address: str, hostname: str) -> tuple[Probe, ...]:
        """The probes of an address for a hostname; those for other hostnames if it was not dialled for this one."""
        found = self._by_address.get(normalize_address(address), ())
        return tuple(probe for probe in found if probe.hostname == hostname) or tuple(found)

    def reach(self, address: str, hostname: str, *, tls: bool) -> AddressReach:
        """What a pod gets at an address; `tls`: whether the host has TLS."""
        probes = self.at(address, hostname)
        return AddressReach(address, reach_of_address(probes, tls=tls), probes)


def reach_of_port(probes: Iterable[Probe]) -> Reach:
    """What a pod gets at one port, from at most one probe for each header."""
    outcomes = {probe.header: probe for probe in probes}
    bare = outcomes.get(Header.PLAIN)
    if bare is None:
        return Reach.UNKNOWN
    if is_understood(bare):
        return Reach.SERVED
    if bare.outcome is Outcome.NO_ROUTE:
        return Reach.NO_ROUTE
    if bare.outcome in _LOST:
        return Reach.CLOSED
    if any(is_understood(probe) for header, probe in outcomes.items() if header is not Header.PLAIN):
        return Reach.NEEDS_HEADER
    return Reach.BAD_REQUEST if bare.outcome in _UNPARSED else Reach.UNSERVED


def reach_of_address(probes: Iterable[Probe], *, tls: bool) -> Reach:
    """What a pod gets at one address for a host with or without TLS."""
    ports = ports_of(probes)
    return _worst([one.reach for one in ports if _counts(one, ports, tls=tls)])


def ports_of(probes: Iterable[Probe]) -> list[PortReach]:
    """What a pod gets at each port of one address."""
    return [PortReach(port, secure, reach_of_port(of)) for (_, port, secure, _), of in by_port(probes).items()]


def _counts(one: PortReach, ports: Sequence[PortReach], *, tls: bool) -> bool:
    others = [other.reach for other in ports if other.tls is not one.tls]
    if one.tls and not tls and others:
        return one.reach in (Reach.SERVED, Reach.NEEDS_HEADER)
    if one.tls:
        return True
    answered = Reach.SERVED in others or Reach.NEEDS_HEADER in others
    return not (one.reach is Reach.CLOSED and answered)


def _worst(found: Sequence[Reach]) -> Reach:
    return next((reach for reach in WORST_FIRST if reach in found), Reach.UNKNOWN)


def routed(found: Sequence[AddressReach]) -> tuple[AddressReach, ...]:
    """The addresses that count: without those of a family that pods have no route for, if another is left."""
    left = tuple(one for one in found if one.reach is not Reach.NO_ROUTE)
    return left or tuple(found)


def overall_reach(found: Sequence[AddressReach]) -> Reach:
    """What pods get that may dial any of these addresses."""
    return _worst([one.reach for one in routed(found)])


def statuses(probes: Iterable[Probe]) -> dict[WebPort, int]:
    """The HTTP status of each port that answered."""
    return {(probe.port, probe.tls): probe.status for probe in probes if probe.status}


def differ(there: Mapping[WebPort, int], here: Mapping[WebPort, int]) -> bool:
    """Whether two servers answer a request to the same port with different statuses."""
    return any(there[port] != here[port] for port in there.keys() & here.keys())

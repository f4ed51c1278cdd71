"""What may be probed now: the endpoints of controllers.

The law: only endpoints of LoadBalancer Services behind subjects that have hostnames here. An endpoint that was never
probed is probed at once; after that, each port of a Service once a minute, spread over it, one endpoint in turn. If an
endpoint reacts otherwise than before, or a relay's handshake fails, the settings may have changed: all endpoints of all
ports are probed again, at once and in the rounds that follow, because pods read new settings one after the other, and
a pod that restarts answers nothing yet. What another replica may have probed waits for its minute, unless
the port has a new endpoint. An endpoint that comes back may be another pod: it is probed at once, at most twice a
minute.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from types import MappingProxyType
from typing import Final

from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.doctor.judge.paths import normalize_address
from dnsproxy.doctor.judge.short_circuit import Answer, short_circuit
from dnsproxy.doctor.judge.web_ports import WebPort, web_ports
from dnsproxy.operate.decide.controllers import followed_controllers
from dnsproxy.operate.decide.facts import Facts, Place, ServiceFacts
from sidecar.values.endpoints import Endpoint

INTERVAL: Final = 60.0
"""Seconds between two probes of a port that shows no change."""
SPREAD: Final = 30.0
"""Seconds over which the ports are spread that were probed at once, as at the start; their first minute is shorter."""
SETTLE: Final = 10.0
"""Seconds between two rounds in which all endpoints of a Service are probed."""
ROUNDS: Final = 3
"""Rounds after the first one."""
_SLOW: Final = frozenset([HeaderMode.SILENT, HeaderMode.UNKNOWN])
"""Modes of which a probe has made all its connections, each perhaps until its deadline."""
NONE: Final[Mapping[str, float]] = MappingProxyType({})
MOST_AT_ONCE: Final = 8
"""Endpoints of one port that are probed together: a controller may have a pod on each of a thousand nodes."""
MOST_PORTS: Final = 16
"""Web ports of one Service that are probed, in the order of their numbers: a Service may have hundreds."""
UNSERVED: Final = "switchback-operate.invalid"
"""A hostname that no application has (RFC 6761, section 6.4): a controller answers a request for it by itself."""
MOST_NAMES: Final = 3
"""UNSERVED among them."""


@dataclass(frozen=True, slots=True)
class LastProbe:
    """The last probe of a place."""

    at: float
    """In seconds of one clock."""
    in_turn: bool = True
    """Whether it was the regular one of its minute, and not one that was made at once."""
    inherited: bool = False
    """Whether another replica may have made it: what it showed is not known here."""
    gone: bool = False
    """Whether the endpoint was not there since: then it may be another pod now."""
    earlier: float = -inf
    """When the probe before it was made, rounds not counted."""


@dataclass(frozen=True, slots=True)
class EndpointProbe:
    """An endpoint to probe, and for which names."""

    place: Place
    tls: bool
    hostnames: tuple[str, ...]
    """Of subjects, at most two; they follow a name that nobody has."""
    in_turn: bool
    """Whether it is the regular one of its minute, or may wait as that does."""


def due_probes(
    facts: Facts, last: Mapping[Place, LastProbe], *, now: float, suspected: Mapping[str, float] = NONE
) -> tuple[EndpointProbe, ...]:
    """The endpoints that may be probed now, in a stable order.

    `suspected`: by Service, when an endpoint last reacted otherwise than before, or a handshake failed.
    """
    due: list[EndpointProbe] = []
    for service, hostnames in _probed_services(facts):
        for port, tls in _probed_ports(service):
            places, in_turn = _due_places(service, port, last, now, suspected.get(service.key, -inf))
            # In a round the others would wait for a slow one.
            slow = {place for place in places if place in facts.probes and facts.probes[place].mode in _SLOW}
            due += [EndpointProbe(place, tls, hostnames, in_turn or place in slow) for place in places]
    return tuple(due)


def suspect(before: float, at: float) -> float:
    """When a Service came under suspicion, if something speaks for other settings again at `at`: once a minute."""
    return at if at >= before + INTERVAL else before


def note_probe(before: LastProbe | None, probe: EndpointProbe, *, now: float) -> LastProbe:
    """The last probe of a place, as this one begins."""
    if before is None:
        return LastProbe(now, probe.in_turn)
    # A round is no reason to probe a pod less that comes and goes.
    is_round = not probe.in_turn and not before.gone
    return LastProbe(now, probe.in_turn, earlier=before.earlier if is_round else before.at)


def still_known(last: Mapping[Place, LastProbe], facts: Facts, *, now: float) -> dict[Place, LastProbe]:
    """The last probes. That of a place that is gone stays for INTERVAL: a pod that flaps is not new each time."""
    ready = {place for service in facts.services.values() for place in places_of(service, leaving=False)}
    there = {place for service in facts.services.values() for place in places_of(service)}
    marked = {place: one if place in ready else replace(one, gone=True) for place, one in last.items()}
    return {place: one for place, one in marked.items() if place in there or now < one.at + INTERVAL}


def places_of(service: ServiceFacts, *, leaving: bool = True) -> Iterator[Place]:
    """Every endpoint of each port; without `leaving`, those that get new connections."""
    for found in (service.endpoints or {}, service.leaving if leaving else {}):
        for port, endpoints in found.items():
            yield from ((service.key, port, one) for one in endpoints)


@dataclass(frozen=True, slots=True)
class BalancerProbe:
    """A load balancer to dial without a header, as a pod does: whether it answers shows what no setting tells."""

    service: str
    """`NAMESPACE/NAME`."""
    ports: tuple[tuple[Endpoint, bool], ...]
    """Its web ports, and whether each begins with TLS."""
    hostnames: tuple[str, ...]
    """As in EndpointProbe."""


def due_balancers(facts: Facts, last: Mapping[str, float], *, now: float) -> tuple[BalancerProbe, ...]:
    """The load balancers that may be dialled now: where the data plane was read, and does not tell what it does."""
    due = []
    if facts.plane is None:
        return ()
    for service, hostnames in _probed_services(facts):
        short = short_circuit(service.service, facts.plane)
        waits = service.key in last and now < last[service.key] + INTERVAL
        if short.state is Answer.UNKNOWN and short.addresses and not waits:
            address = normalize_address(short.addresses[0])
            ports = tuple((Endpoint(address, port), tls) for port, tls in _probed_ports(service))
            due.append(BalancerProbe(service.key, ports, hostnames))
    return tuple(due)


def _probed_services(facts: Facts) -> list[tuple[ServiceFacts, tuple[str, ...]]]:
    """The Services behind subjects that have hostnames here, each with some of these names."""
    found: dict[str, tuple[ServiceFacts, list[tuple[str, ...]]]] = {}
    for one in facts.subjects:
        for service in followed_controllers(one, facts) if one.examples else ():
            found.setdefault(service.key, (service, []))[1].append(one.examples)
    return [(service, _probed_names(examples)) for _, (service, examples) in sorted(found.items())]


def _probed_names(examples: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """One name of each subject, then the others of the first: two subjects seldom have one tenant."""
    names = (*(one[0] for one in examples), *examples[0][1:])
    return tuple(dict.fromkeys(names))[: MOST_NAMES - 1]


def _probed_ports(service: ServiceFacts) -> list[WebPort]:
    return sorted(web_ports(service.service.ports))[:MOST_PORTS]


def _due_places(
    service: ServiceFacts, port: int, last: Mapping[Place, LastProbe], now: float, suspected: float
) -> tuple[list[Place], bool]:
    """The places of one port that may be probed, and whether that is its regular probe."""
    places = [(service.key, port, one) for one in sorted((service.endpoints or {}).get(port, ()), key=str)]
    known = {place: last[place] for place in places if place in last}
    round_began = _last_round(suspected, now)
    fresh = [one for one in places if one not in known or known[one].at < round_began or _is_over(known[one], now)]
    if any(one not in known or not known[one].inherited for one in places):
        # The probe of a new endpoint decides nothing alone; the relay still uses the endpoint that leaves.
        leaving = [(service.key, port, one) for one in sorted(service.leaving.get(port, ()), key=str)]
        fresh += [one for one in (*places, *leaving) if one not in fresh and one in last and last[one].inherited]
    if fresh:
        # The oldest first: a round may begin before the one before is through.
        fresh.sort(key=lambda place: last[place].at if place in last else -inf)
        return fresh[:MOST_AT_ONCE], False
    regular = {place: one for place, one in known.items() if not one.gone}
    if not regular:
        return [], False
    latest = max(known.values(), key=lambda one: one.at)
    if now < latest.at + gap(f"{service.key}:{port}", in_turn=latest.in_turn):
        return [], False
    return [min(regular, key=lambda place: (regular[place].at, str(place)))], True


def _last_round(suspected: float, now: float) -> float:
    """When the last round began, since when each endpoint has to be probed."""
    return -inf if suspected == -inf else suspected + SETTLE * min(ROUNDS, (now - suspected) // SETTLE)


def _is_over(last: LastProbe, now: float) -> bool:
    """Whether a place need not wait any longer that is not known here, or that came back."""
    if last.inherited:
        return now >= last.at + INTERVAL
    return last.gone and now >= last.earlier + INTERVAL


def gap(key: str, *, in_turn: bool) -> float:
    """Seconds until the next regular probe: a minute, and after one that was made at once, the key's own part less."""
    digest = hashlib.sha256(key.encode()).digest()
    return INTERVAL if in_turn else INTERVAL - SPREAD * int.from_bytes(digest[:4], "big") / 2**32

"""Which handshakes may be made now: through the relay of a subject to its controller, end to end.

The law: the first one as soon as the relay Service is there; then one a minute for each controller, its subjects in
turn. None without a ready relay: dnsproxy forwards the names meanwhile. A relay that takes no connection is tried again
within seconds: no controller notices that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from dnsproxy.operate.decide.decisions import Decision, Verdict, handshake_of, is_steered, last_route
from dnsproxy.operate.decide.facts import Facts, Handshake, Subject
from dnsproxy.operate.decide.port_headers import NO_HEADER
from dnsproxy.operate.decide.probing import INTERVAL, gap

RETRIES: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds before the next handshake after one that the relay did not take."""
MOST_NAMES: Final = 3
"""Names of one subject for which a port is tried: an application may answer 400 by itself."""


@dataclass(frozen=True, slots=True)
class RelayPort:
    """A port of a relay Service that gets a header."""

    port: int
    listen: int
    """Where the relay's pods listen for it."""
    tls: bool


@dataclass(frozen=True, slots=True)
class RelayHandshake:
    """A handshake to make: each port, for one of these names."""

    subject: Subject
    relay_to: str
    """The backend, `NAMESPACE/NAME`."""
    ports: tuple[RelayPort, ...]
    hostnames: tuple[str, ...]
    addresses: tuple[str, ...] = ()
    """The ClusterIPs of the relay Service that lead to a pod."""
    uid: str = ""
    """The relay Service."""


@dataclass(frozen=True, slots=True)
class LastHandshake:
    """The last handshake of a subject."""

    relay_to: str
    at: float
    """In seconds of one clock."""
    untaken: int = 0
    """How many in a row the relay did not take, the last one included."""
    uid: str = ""
    """As in RelayHandshake."""


def due_handshakes(
    facts: Facts,
    decisions: Sequence[Decision],
    last: Mapping[Subject, LastHandshake],
    *,
    now: float,
    relay_since: float = -inf,
) -> tuple[RelayHandshake, ...]:
    """The handshakes that may be made now, in a stable order; `relay_since`: when its ready pods last changed."""
    due: list[RelayHandshake] = []
    regular: dict[str, list[RelayHandshake]] = {}
    for wanted in filter(None, (_wanted(one, facts) for one in decisions)):
        before = last.get(wanted.subject)
        if before is None or not _is_same(before, wanted):
            due.append(wanted)
        elif before.untaken:
            due += [wanted] if relay_since > before.at or now >= before.at + _pause(before.untaken) else []
        else:
            regular.setdefault(wanted.relay_to, []).append(wanted)
    for key, sharing in sorted(regular.items()):
        latest = max(last[one.subject].at for one in sharing)
        if now >= latest + gap(f"relay to {key}", in_turn=True):
            due.append(min(sharing, key=lambda one: (last[one.subject].at, one.subject)))
    return tuple(due)


def _pause(untaken: int) -> float:
    return RETRIES[untaken - 1] if untaken <= len(RETRIES) else INTERVAL


def _wanted(decision: Decision, facts: Facts) -> RelayHandshake | None:
    """The handshake of a subject whose relay Service is there, with the backend that was decided."""
    route = last_route(decision.subject, facts)
    if route is None or decision.backend is None or route.relay_to != decision.backend.key:
        return None
    if not facts.relay_endpoints:
        return None
    if decision.verdict is not Verdict.RELAY and not (decision.verdict is Verdict.KEEP and decision.steer):
        return None
    listen = {one.port: one.listen for one in route.ports}
    ports = tuple(
        RelayPort(state.port, listen[state.port], state.tls)
        for state in decision.ports
        if state.tls is not None and state.header != NO_HEADER and state.port in listen
    )
    names = next((one.examples for one in facts.subjects if one.subject == decision.subject), ())
    if not ports or not names:
        return None
    addresses = tuple(one for one in route.addresses if ("IPv6" if ":" in one else "IPv4") in facts.relay_families)
    return RelayHandshake(decision.subject, route.relay_to, ports, names[:MOST_NAMES], addresses, route.uid)


def _is_same(last: LastHandshake, made: RelayHandshake) -> bool:
    """Whether both are through one relay Service to one backend."""
    return (last.relay_to, last.uid) == (made.relay_to, made.uid)


@dataclass(frozen=True, slots=True)
class Answered:
    """The result of a handshake."""

    succeeded: bool
    taken: bool
    """Whether the relay took a connection."""
    detail: str = ""


def after_handshake(before: Handshake, answered: Answered, *, untaken: int) -> Handshake:
    """What is known after one more handshake with the same backend; `untaken`: as in LastHandshake, this one included.

    A relay that does not listen yet is no failure until all RETRIES are over.
    """
    if answered.succeeded:
        return Handshake(before.relay_to, succeeded=True, detail=answered.detail, uid=before.uid)
    counts = answered.taken or untaken > len(RETRIES)
    return replace(before, failures=before.failures + counts, detail=answered.detail)


def note_handshake(
    last: Mapping[Subject, LastHandshake], made: RelayHandshake, answered: Answered, *, now: float
) -> dict[Subject, LastHandshake]:
    """The last handshakes with this one among them."""
    before = last.get(made.subject)
    untaken = before.untaken if before is not None and _is_same(before, made) else 0
    noted = LastHandshake(made.relay_to, now, 0 if answered.taken else untaken + 1, made.uid)
    return {**last, made.subject: noted}


def is_first(made: RelayHandshake, facts: Facts) -> bool:
    """Whether nothing was ever answered through this relay: then each of its pods has to answer."""
    route = last_route(made.subject, facts)
    return not handshake_of(made.subject, made.relay_to, facts).succeeded and not is_steered(made.subject, route)

"""Which handshakes may be made now: through the relay of a subject to its controller, end to end.

The law: the first one as soon as the relay Service is there, and SETTLE after its header has changed; then one every
SUCCEEDING seconds for each controller, its subjects in turn. A subject whose last one failed waits for a minute, and so
does a controller where the last two failed, each of another subject if it has several: three in a row let a class go,
and must not be those of one restart. None without a ready relay: dnsproxy forwards the names meanwhile. A relay that
takes no connection is tried again within seconds: no controller notices that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from dnsproxy.operate.decide.decisions import Decision, Verdict, handshake_of
from dnsproxy.operate.decide.facts import Facts, Handshake, Subject
from dnsproxy.operate.decide.last_decision import is_steered, last_route
from dnsproxy.operate.decide.port_headers import NO_HEADER, lent_ports, own_headers, own_headers_of
from dnsproxy.operate.decide.probing import INTERVAL, MOST_NAMES

SETTLE: Final = 1.0
"""Seconds for the relay to learn of another header."""
SUCCEEDING: Final = 10.0
"""Seconds between two handshakes with a controller while they succeed. A controller that stops to take the header fails
its clients for that long: the first handshake that fails has its endpoints probed."""
APART: Final = 1.0
"""Seconds between two handshakes with any controllers, but for those that have waited for a minute."""
RETRIES: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds before the next handshake after one that the relay did not take."""


@dataclass(frozen=True, slots=True)
class RelayPort:
    """A port of a relay Service that gets a header."""

    port: int
    listen: int
    """Where the relay's pods listen for it."""
    tls: bool


@dataclass(frozen=True, slots=True)
class RelayHandshake:
    """A handshake to make: each port, for a name that no application has or for one of these."""

    subject: Subject
    relay_to: str
    """The backend, `NAMESPACE/NAME`."""
    ports: tuple[RelayPort, ...]
    hostnames: tuple[str, ...]
    addresses: tuple[str, ...] = ()
    """The ClusterIPs of the relay Service that lead to a pod."""
    uid: str = ""
    """The relay Service."""
    headers: str = ""
    """Those of its own ports, as port_headers.py has them."""
    steered: bool = False
    """Whether the names are answered with the relay Service."""


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
    headers: str = ""
    """As in RelayHandshake."""


Seen = TypeVar("Seen", Handshake, LastHandshake)


class HeadersSince(NamedTuple):
    """The headers of a relay Service's own ports, and since when it has them, in seconds of one clock."""

    headers: str
    at: float


def note_headers(before: Mapping[Subject, HeadersSince], facts: Facts, *, now: float) -> dict[Subject, HeadersSince]:
    """The headers of the relay Services that are there; the relay has long known the first one of each."""
    after: dict[Subject, HeadersSince] = {}
    for one in facts.subjects:
        route = last_route(one.subject, facts)
        if route is not None:
            headers = own_headers_of(route)
            known = before.get(one.subject, HeadersSince(headers, -inf))
            after[one.subject] = known if known.headers == headers else HeadersSince(headers, now)
    return after


def still_count(seen: Mapping[Subject, Seen], facts: Facts) -> dict[Subject, Seen]:
    """Without those through a relay Service that is gone, or had another header: it may come back with this one."""
    routes = {subject: last_route(subject, facts) for subject in seen}
    places = {subject: (route.uid, own_headers_of(route)) for subject, route in routes.items() if route is not None}
    return {subject: one for subject, one in seen.items() if places.get(subject) == (one.uid, one.headers)}


def due_handshakes(
    facts: Facts,
    decisions: Sequence[Decision],
    last: Mapping[Subject, LastHandshake],
    *,
    now: float,
    relay_since: float = -inf,
    headers: Mapping[Subject, HeadersSince] = MappingProxyType({}),
    under_way: Collection[str] = (),
) -> tuple[RelayHandshake, ...]:
    """The handshakes that may be made now, in a stable order.

    `relay_since`: when the relay's ready pods last changed. `headers` is that of note_headers. `under_way`: the
    backends of handshakes that have not ended.
    """
    due: list[RelayHandshake] = []
    regular: dict[str, list[RelayHandshake]] = {}
    for wanted in filter(None, (_wanted(one, facts) for one in decisions)):
        before = last.get(wanted.subject)
        if before is None or not _is_same(before, wanted):
            due += [wanted] if _is_settled(headers.get(wanted.subject), now) else []
        elif before.untaken:
            due += [wanted] if relay_since > before.at or now >= before.at + _pause(before.untaken) else []
        else:
            regular.setdefault(wanted.relay_to, []).append(wanted)
    newest = max((last[one.subject].at for sharing in regular.values() for one in sharing), default=-inf)
    free = [sharing for key, sharing in regular.items() if key not in under_way]
    return *due, *_due_in_turn(free, facts, last, now, is_time=now >= newest + APART)


def _due_in_turn(
    controllers: Iterable[Sequence[RelayHandshake]],
    facts: Facts,
    last: Mapping[Subject, LastHandshake],
    now: float,
    *,
    is_time: bool,
) -> list[RelayHandshake]:
    """Of each controller the next handshake, if it waits for a minute; of the others one, if it is time."""
    due: list[RelayHandshake] = []
    quick: list[tuple[float, RelayHandshake]] = []
    for sharing in controllers:
        by_time = sorted(sharing, key=lambda one: (last[one.subject].at, one.subject))
        latest = last[by_time[-1].subject].at
        failed = {one.subject for one in sharing if not _has_succeeded(one, facts)}
        able = [one for one in by_time if one.subject not in failed or now >= last[one.subject].at + INTERVAL]
        is_down = failed.issuperset(one.subject for one in by_time[-2:])
        if not able or now < latest + (INTERVAL if is_down else SUCCEEDING):
            continue
        if now >= latest + INTERVAL:
            due.append(able[0])
        else:
            quick.append((latest, able[0]))
    if quick and is_time:
        due.append(min(quick, key=lambda waiting: waiting[0])[1])
    return due


def _has_succeeded(one: RelayHandshake, facts: Facts) -> bool:
    seen = handshake_of(one.subject, one.relay_to, facts)
    return seen.succeeded and not seen.failures


def _is_settled(since: HeadersSince | None, now: float) -> bool:
    return since is None or now >= since.at + SETTLE


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
    # What does not answer a probe does not answer through the relay either: applications that are down let no class go.
    ports = tuple(
        RelayPort(state.port, listen[state.port], state.tls)
        for state in decision.ports
        if state.tls is not None and state.header != NO_HEADER and state.port in listen and not state.mute
    )
    own = {one.port for one in decision.ports if not one.backend}
    if listen.keys() - lent_ports(route) == own and own_headers_of(route) != own_headers(decision.ports):
        # The Service is about to be written.
        return None
    names = next((one.examples[: MOST_NAMES - 1] for one in facts.subjects if one.subject == decision.subject), ())
    if not ports or not names:
        return None
    addresses = tuple(one for one in route.addresses if ("IPv6" if ":" in one else "IPv4") in facts.relay_families)
    return RelayHandshake(
        decision.subject,
        route.relay_to,
        ports,
        names,
        addresses,
        uid=route.uid,
        headers=own_headers_of(route),
        steered=is_steered(decision.subject, route),
    )


def _is_same(last: LastHandshake, made: RelayHandshake) -> bool:
    """Whether both are through one relay Service, with one header, to one backend."""
    return (last.relay_to, last.uid, last.headers) == (made.relay_to, made.uid, made.headers)


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
        return replace(before, succeeded=True, failures=0, detail=answered.detail)
    counts = answered.taken or untaken > len(RETRIES)
    return replace(before, failures=before.failures + counts, detail=answered.detail)


def note_handshake(
    last: Mapping[Subject, LastHandshake], made: RelayHandshake, answered: Answered, *, now: float
) -> dict[Subject, LastHandshake]:
    """The last handshakes with this one among them."""
    before = last.get(made.subject)
    untaken = before.untaken if before is not None and _is_same(before, made) else 0
    noted = LastHandshake(made.relay_to, now, 0 if answered.taken else untaken + 1, made.uid, made.headers)
    return {**last, made.subject: noted}


def is_first(made: RelayHandshake, facts: Facts) -> bool:
    """Whether nothing was ever answered through this relay: then each of its pods has to answer."""
    route = last_route(made.subject, facts)
    return not handshake_of(made.subject, made.relay_to, facts).succeeded and not is_steered(made.subject, route)

"""What the replica that led before may have done a moment ago: it waits for its minute, and what is new does not.

The law: what was there in the first complete reading of this process, or was seen while another replica led, counts as
probed by it until it last held the Lease. What came later is new: the one before cannot have probed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from dnsproxy.operate.decide.controllers import controllers_of
from dnsproxy.operate.decide.facts import Facts, Place, Subject
from dnsproxy.operate.decide.handshaking import HeadersSince, LastHandshake
from dnsproxy.operate.decide.last_decision import is_steered, last_route
from dnsproxy.operate.decide.probing import INTERVAL, LastProbe, places_of


@dataclass(frozen=True, slots=True)
class FirstSights:
    """When the places behind subjects were first seen, in seconds of one clock."""

    at: Mapping[Place, float] = field(default_factory=dict)
    """Those of the first complete reading were there long before: -inf."""
    unread: frozenset[str] | None = None
    """Services of that reading whose endpoints were not read yet; None before it."""


def note_places(before: FirstSights, facts: Facts, *, now: float) -> FirstSights:
    """The first sights after one more reading; a place that is gone is forgotten."""
    services = controllers_of(facts)
    unread = before.unread
    if unread is None and facts.complete:
        unread = frozenset(services)
    at = {}
    for key, one in services.items():
        first = -inf if unread is None or key in unread else now
        at.update({place: before.at.get(place, first) for place in places_of(one)})
    if unread is not None:
        unread -= {key for key, one in services.items() if one.endpoints is not None}
    return FirstSights(at, unread)


def inherited_probes(seen: FirstSights, *, until: float) -> dict[Place, LastProbe]:
    """The probes that another replica may have made; `until`: when it last led, -inf if none did."""
    return {place: LastProbe(until, inherited=True) for place, at in seen.at.items() if at <= until}


def inherited_balancers(last: Mapping[Place, LastProbe]) -> dict[str, float]:
    """When it may have dialled load balancers: those of Services where nothing was probed here, so nothing is new."""
    own = {place[0] for place, one in last.items() if not one.inherited}
    return {place[0]: one.at for place, one in last.items() if place[0] not in own}


def inherited_handshakes(
    facts: Facts, headers: Mapping[Subject, HeadersSince], *, until: float, now: float
) -> dict[Subject, LastHandshake]:
    """The handshakes that it may have made within INTERVAL: through what is steered, with a header that is no newer."""
    found: dict[Subject, LastHandshake] = {}
    if now >= until + INTERVAL:
        return found
    for one in facts.subjects:
        route = last_route(one.subject, facts)
        if route is None or not is_steered(one.subject, route):
            continue
        since = headers.get(one.subject)
        if since is not None and since.at <= until:
            found[one.subject] = LastHandshake(route.relay_to, until, uid=route.uid, headers=since.headers)
    return found

"""Which of what is due starts now, so that no Service delays another one.

The law: never a second time what is under way; of one Service and of all together only so many. The others stay due and
nothing queues. New endpoints come first, and those in turn get at most half of each limit, because a silent port takes
as long as its deadlines. The Service that has waited longest comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from math import inf
from typing import Final

from dnsproxy.operate.decide.facts import Place, Subject
from dnsproxy.operate.decide.handshaking import LastHandshake, RelayHandshake
from dnsproxy.operate.decide.probing import BalancerProbe, EndpointProbe, LastProbe

OF_ONE: Final = 4
"""Probes of one Service under way."""
TOGETHER: Final = 64
"""Probes of all Services under way; as many load balancers, and as many handshakes, beside them."""


def choose_probes(
    due: Iterable[EndpointProbe], last: Mapping[Place, LastProbe], under_way: Mapping[Place, bool]
) -> tuple[EndpointProbe, ...]:
    """The probes that start now; `under_way`: whether each of those is the regular one of its minute."""
    busy, chosen = dict(under_way), []
    for one in _in_order(due, last, under_way):
        if _has_room(one, busy):
            busy[one.place] = one.in_turn
            chosen.append(one)
    return tuple(chosen)


def choose_balancers(
    due: Iterable[BalancerProbe], last: Mapping[str, float], under_way: Collection[str]
) -> tuple[BalancerProbe, ...]:
    """The load balancers that are dialled now; `under_way`: those of Services that still are."""
    waiting = [one for one in due if one.service not in under_way]
    waiting.sort(key=lambda one: last.get(one.service, -inf))
    return tuple(waiting[: max(0, TOGETHER - len(under_way))])


def choose_handshakes(
    due: Iterable[RelayHandshake], last: Mapping[Subject, LastHandshake], under_way: Mapping[Subject, str]
) -> tuple[RelayHandshake, ...]:
    """The handshakes that start now, one for a backend; `under_way`: the backend of each subject's."""
    chosen: dict[str, RelayHandshake] = {}
    for one in sorted(due, key=lambda one: last[one.subject].at if one.subject in last else -inf):
        if one.subject not in under_way and one.relay_to not in under_way.values():
            chosen.setdefault(one.relay_to, one)
    return tuple(chosen.values())[: max(0, TOGETHER - len(under_way))]


def _in_order(
    due: Iterable[EndpointProbe], last: Mapping[Place, LastProbe], under_way: Iterable[Place]
) -> list[EndpointProbe]:
    """The new ones, then those in turn; of each, the Services alternate, and in one the oldest comes first."""
    latest: dict[str, float] = {}
    for (service, _, _), before in last.items():
        latest[service] = max(latest.get(service, -inf), before.at)
    rank = Counter(service for service, _, _ in under_way)
    ordered: list[tuple[bool, int, float, EndpointProbe]] = []
    waiting = [one for one in due if one.place not in under_way]
    for one in sorted(waiting, key=lambda one: (one.in_turn, last[one.place].at if one.place in last else -inf)):
        service = one.place[0]
        ordered.append((one.in_turn, rank[service], latest.get(service, -inf), one))
        rank[service] += 1
    return [one for *_, one in sorted(ordered, key=lambda each: each[:3])]


def _has_room(one: EndpointProbe, busy: Mapping[Place, bool]) -> bool:
    of_one = [in_turn for (service, _, _), in_turn in busy.items() if service == one.place[0]]
    if one.in_turn and (sum(of_one) >= OF_ONE // 2 or sum(busy.values()) >= TOGETHER // 2):
        return False
    return len(of_one) < OF_ONE and len(busy) < TOGETHER

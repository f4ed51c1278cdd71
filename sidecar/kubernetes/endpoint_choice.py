"""Which endpoints of a Service get new connections, for every program that chooses pods itself.

The law: pure. As in kube-proxy (KEP-1669): the ready endpoints, and without any those that terminate and still serve,
because a Service with one replica has no others during a rollout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Final, TypeVar

from sidecar.kubernetes.endpoint_slices import FAMILIES, Condition, EndpointSlice, SliceEndpoint, condition_of
from sidecar.values.endpoints import MAXIMUM_PORT, Endpoint, is_address, parse_address

Group = TypeVar("Group")

USABLE: Final = (Condition.READY, Condition.LEAVING)
"""The conditions of endpoints that may get new connections, best first."""
_TCP: Final = "TCP"


@dataclass(frozen=True, slots=True)
class Usable:
    """The endpoints of a port that accept connections, by their condition."""

    ready: Set[Endpoint] = frozenset()
    leaving: Set[Endpoint] = frozenset()
    """Terminating, and still serving."""


def preferred(*, ready: Group, leaving: Group) -> Group:
    """The group that gets new connections, of the groups with the conditions in USABLE; empty if both are."""
    return ready or leaving


def find_usable(slices: Iterable[EndpointSlice], port: str) -> Usable:
    """The endpoints of a TCP port of the Service, by its name, that accept connections."""
    groups: dict[Condition, set[Endpoint]] = {condition: set() for condition in USABLE}
    for number, one in endpoints_of_port(slices, port):
        group = groups.get(condition_of(one))
        if group is not None:
            group.update(Endpoint(parse_address(text), number) for text in one.addresses or () if is_address(text))
    return Usable(groups[Condition.READY], groups[Condition.LEAVING])


def endpoints_of_port(slices: Iterable[EndpointSlice], port: str) -> Iterator[tuple[int, SliceEndpoint]]:
    """Every endpoint with the number of its port, which may differ between pods."""
    for one in slices:
        if one.address_type in FAMILIES:
            for number in _numbers(one, port):
                for endpoint in one.endpoints or ():
                    yield number, endpoint


def in_order(endpoints: Iterable[Endpoint]) -> tuple[Endpoint, ...]:
    """An order that does not depend on that of the slices."""
    return tuple(sorted(endpoints, key=lambda endpoint: (endpoint.host, endpoint.port)))


def _numbers(one: EndpointSlice, port: str) -> Iterator[int]:
    for entry in one.ports or ():
        matches = (entry.name or "") == port and (entry.protocol or _TCP) == _TCP
        if matches and entry.port is not None and 0 < entry.port <= MAXIMUM_PORT:
            yield entry.port

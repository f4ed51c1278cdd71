"""The share of each namespace in the relay's ports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from dnsproxy.doctor.facts.model import Port
from dnsproxy.operate.decide.decisions import decide
from dnsproxy.operate.decide.facts import Subject
from dnsproxy.operate.decide.names import service_name
from dnsproxy.operate.decide.port_shares import within_shares
from tests.dnsproxy.operate.decide.cluster import CLASS, SERVICE, cluster, route_of, service

NEIGHBOR = service("tenant/many", ports=tuple(Port(port) for port in range(1001, 1100)))
MOST = "the relay listens at most at 250 ports for controllers in namespace ingress-nginx"


def shared(count: int, *, there: Iterable[int] = (), own: int = 0) -> tuple[list[int], list[str]]:
    """How many ports each of some classes of one controller gets, and what they lack; `there`: those with a route."""
    controller = service(ports=(*(Port(one) for one in range(1, own + 1)), Port(443, "https"))) if own else SERVICE
    subjects = [Subject(f"shop-{number}") for number in range(count)]
    facts = cluster(CLASS, controller, NEIGHBOR, subjects=tuple(replace(CLASS, subject=one) for one in subjects))
    wishes = {service_name(one.subject): one for one in decide(facts)}
    current = {one.name: one for one in (route_of(subjects[number]) for number in there)}
    found, faults = within_shares(wishes, current)
    ports = [len(found[name].ports) if name in found else 0 for name in wishes]
    return ports, [faults.get(name, "") for name in wishes]


@pytest.mark.parametrize(
    ("count", "there", "ports"),
    [
        (1, (), [66]),
        (5, (), [66, 66, 66, 50, 2]),
        (6, (0, 1, 2, 3, 4), [66, 66, 66, 48, 2, 2]),
        (6, (5,), [66, 66, 48, 2, 2, 66]),
    ],
    ids=["room for all", "too many ports", "one class too many", "a route exists"],
)
def test_neighbors_get_what_the_ports_of_controllers_leave(
    count: int, there: tuple[int, ...], ports: list[int]
) -> None:
    assert shared(count, there=there)[0] == ports


def test_a_controller_whose_own_ports_have_no_room_gets_none() -> None:
    ports, faults = shared(3, own=100)
    assert (ports, faults[2]) == ([101 + 48, 101, 0], MOST)


def test_a_port_of_a_neighbor_without_room_is_named() -> None:
    _, faults = shared(5)
    assert faults == [
        *("", "", ""),
        f"{MOST}: none is left for port 1049 of tenant/many, nor for 15 others",
        f"{MOST}: none is left for port 1001 of tenant/many, nor for 63 others",
    ]

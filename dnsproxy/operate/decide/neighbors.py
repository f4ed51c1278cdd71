"""Neighbors: other Services of type LoadBalancer at an address of a controller's Service.

The law: pods dial a claimed name at the relay's Service, which replaces the whole address. So it has the ports of the
neighbors too: Git over SSH beside web pages. Without us kube-proxy leads such a port to its pods, without a header.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from dnsproxy.doctor.judge.paths import normalize_address
from dnsproxy.operate.decide.controllers import is_our_relay
from dnsproxy.operate.decide.facts import Facts, ServiceFacts

MOST: Final = 64
"""Ports of neighbors. Where all Services have the nodes' addresses, as with klipper-lb, each tenant adds some."""


def neighbor_ports(service: ServiceFacts, facts: Facts) -> dict[int, str]:
    """The Service `NAMESPACE/NAME` of each TCP port that a neighbor has and the Service has not, by port.

    Of two neighbors with one port, which have different addresses of the Service, the one with more of them counts,
    then the first by name: a Service with one of the addresses takes no port from the owner of all others.
    """
    taken = {port.port for port in service.service.ports}
    found: dict[int, str] = {}
    for other in _neighbors(service, facts):
        for port in other.service.ports:
            if port.port not in taken:
                found.setdefault(port.port, other.key)
    return dict(sorted(found.items())[:MOST])


def _neighbors(service: ServiceFacts, facts: Facts) -> list[ServiceFacts]:
    addresses = {normalize_address(point.ip) for point in service.service.points if point.ip}
    found = [one for address in addresses for one in facts.by_address.get(address, ()) if one.key != service.key]
    shared = Counter(one.key for one in found)
    others = {one.key: one for one in sorted(found, key=lambda one: (-shared[one.key], one.key))}.values()
    # The relay would let every pod past the ranges of a Service.
    return [one for one in others if not one.limited_families and not is_our_relay(one, facts)]

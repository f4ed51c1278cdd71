"""Whether `ipMode: Proxy` in a Service's status would help its pods, and whether it would harm its clients.

The law: with `Proxy` the data plane has no rule for the address any more. A load balancer that passes packets on with
its own address as their destination needs that rule, and loses every client from outside; one that sends the PROXY
header opens connections of its own, and does not. What is not known is never a yes. KEP-1860. Tested in
tests/dnsproxy/doctor/judge/test_ip_mode_judgement.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from dnsproxy.doctor.facts.model import Service
from dnsproxy.doctor.judge.declared_header import parse_networks
from dnsproxy.doctor.judge.header_annotations import Sends
from dnsproxy.doctor.judge.nlb import returns_connections
from dnsproxy.doctor.judge.provider import Provider
from dnsproxy.doctor.judge.providers import sends
from dnsproxy.doctor.judge.short_circuit import IP_MODE_SINCE, Answer, DataPlane, parse_version
from sidecar.values.text import cut_list

SIDE_EFFECTS: Final = (
    "pods' traffic to the host leaves the cluster and comes back through the load balancer: its cost, its latency and "
    "its session limits count",
    "the PROXY header names the node, or the NAT before it, and no pod",
    "firewalls and NetworkPolicies on that way must let it pass",
)
_LOCAL: Final = (
    "externalTrafficPolicy is Local, so that the load balancer must find a node with a pod of the controller, as for "
    "clients from outside"
)
LOOK_AT_PACKETS: Final = (
    "on a node, look at packets from outside with tcpdump or conntrack: if their destination is the load balancer's "
    "address and not the node's, `ipMode: Proxy` would cut these clients off"
)


@dataclass(frozen=True, slots=True)
class Open:
    """Something that is not known, and how to see it."""

    what: str
    how: str


@dataclass(frozen=True, slots=True)
class IpModeJudgement:
    """The judgement about one Service."""

    harms: Answer
    """Whether clients from outside would be cut off."""
    why: str
    """The source of `harms`."""
    already: bool = False
    """Whether every address has ipMode Proxy already."""
    obstacles: tuple[str, ...] = ()
    """Why it would not help."""
    open: tuple[Open, ...] = ()

    @property
    def helps(self) -> Answer:
        """Whether pods would reach the load balancer, and nobody would be cut off."""
        if self.harms is Answer.YES or self.obstacles:
            return Answer.NO
        return Answer.UNKNOWN if self.open else Answer.YES


def side_effects(services: Iterable[Service]) -> tuple[str, ...]:
    """What `ipMode: Proxy` changes for pods that reach one of these Services."""
    is_local = any(service.external_traffic_policy == "Local" for service in services)
    return (*SIDE_EFFECTS, *((_LOCAL,) if is_local else ()))


def judge_ip_mode(
    service: Service,
    provider: Provider,
    plane: DataPlane,
    *,
    node_addresses: tuple[str, ...] = (),
    ends_connections: bool = False,
    server_version: str = "",
) -> IpModeJudgement:
    """The judgement.

    `ends_connections`: the user's word that the load balancer opens connections of its own. `server_version`: of the
    API server; empty if unknown.
    """
    harms, why = _harm(service, provider, ends_connections=ends_connections)
    addresses = [point for point in service.points if point.ip]
    return IpModeJudgement(
        harms,
        why,
        already=bool(addresses) and all(point.ip_mode == "Proxy" for point in addresses),
        obstacles=(*_keeps_no_ip_mode(server_version), *_obstacles(service, plane)),
        open=tuple(_open(service, provider, plane, harms, node_addresses)),
    )


def _harm(service: Service, provider: Provider, *, ends_connections: bool) -> tuple[Answer, str]:
    if provider.passes_packets:
        why = f"{provider.name} passes packets on with the load balancer's address as their destination"
        return Answer.YES, f"{why}: without a rule for it, clients from outside are cut off"
    if sends(provider, service) in (Sends.YES, Sends.SOME):
        return Answer.NO, f"{provider.name} {sends(provider, service).value}, so it opens connections of its own"
    if ends_connections:
        return Answer.NO, "the load balancer opens connections of its own, as the user says"
    return Answer.UNKNOWN, f"{provider.name}: whether it opens connections of its own is not known"


def _keeps_no_ip_mode(server_version: str) -> Iterator[str]:
    server = parse_version(server_version)
    if server is not None and server < IP_MODE_SINCE:
        yield f"Kubernetes {server_version} does not keep ipMode; 1.30 and newer do"


def _obstacles(service: Service, plane: DataPlane) -> Iterator[str]:
    if plane.takes_addresses is Answer.NO:
        yield f"{plane.name} does not intercept connections to load balancers ({plane.why}): there is nothing to cure"
    elif plane.honours_ip_mode is Answer.NO:
        yield f"{plane.name} ignores ipMode ({plane.why}); {plane.remedy}"
    if service.type != "LoadBalancer":
        yield f"the Service is of type {service.type}, so it has no load balancer"
    elif not service.points:
        yield "its status has no load balancer address yet"
    elif not any(point.ip for point in service.points):
        yield "its status has only hostnames, which nothing intercepts and which have no ipMode"
    if service.external_ips:
        yield f"it has externalIPs {cut_list(service.external_ips)}, to which ipMode does not apply"


def _open(
    service: Service, provider: Provider, plane: DataPlane, harms: Answer, node_addresses: tuple[str, ...]
) -> Iterator[Open]:
    if harms is Answer.UNKNOWN:
        yield Open("whether clients from outside would be cut off", LOOK_AT_PACKETS)
    if plane.takes_addresses is not Answer.NO and plane.honours_ip_mode is Answer.UNKNOWN:
        how = plane.remedy or "see its release notes"
        yield Open(f"whether {plane.name} honours ipMode ({plane.why})", how)
    if returns_connections(provider, service):
        what = "whether the NLB returns a connection to the node that it came from, which drops it"
        yield Open(what, "turn preserve_client_ip off, or try it from several nodes")
    if not _admits(service.source_ranges, node_addresses):
        ranges = cut_list(service.source_ranges)
        what = f"whether the load balancer takes connections from the nodes: its source ranges are {ranges}"
        yield Open(what, "add the addresses with which the nodes leave the cluster to loadBalancerSourceRanges")


def _admits(source_ranges: tuple[str, ...], node_addresses: tuple[str, ...]) -> bool:
    """Whether every node is in the source ranges; an address behind a NAT is not known, so that a doubt stays."""
    if not source_ranges:
        return True
    networks = parse_networks(source_ranges)
    if any(not network.prefixlen for network in networks):
        return True
    nodes = [ip_address(network.network_address) for network in parse_networks(node_addresses)]
    return bool(nodes) and all(any(node in network for network in networks) for node in nodes)

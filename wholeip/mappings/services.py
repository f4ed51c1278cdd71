"""Services that want a whole address: which they are, and what they ask for.

The law: pure. Whatever an owner or a load balancer wrote becomes a value and reports, never an error: one bad Service
costs no other its mapping. https://kubernetes.io/docs/reference/kubernetes-api/service-resources/service-v1/
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

import msgspec

from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable, key_of
from sidecar.values.endpoints import MAXIMUM_PORT
from wholeip.mappings.addresses import Address
from wholeip.mappings.mapping import OpenPort, Protocol
from wholeip.mappings.refused_addresses import parse_mappable
from wholeip.mappings.reports import Reason, Report

LABEL: Final = "service.kubernetes.io/service-proxy-name"
"""kube-proxy leaves a Service with this label to others, whatever its value."""
DEFAULT_PROXY_NAME: Final = "cozy-proxy"
_PROTOCOLS: Final = frozenset({"tcp", "udp", "sctp"})
_LATER: Final = "~"
"""Sorts behind every time stamp."""
_TRUTHS: Final = {"true": True, "false": False}


class _Annotations(msgspec.Struct, frozen=True, gc=False):
    whole_ip: str | None = msgspec.field(default=None, name="switchback.dev/whole-ip")
    allow_icmp: str | None = msgspec.field(default=None, name="switchback.dev/allow-icmp")
    cozystack_whole_ip: str | None = msgspec.field(default=None, name="networking.cozystack.io/wholeIP")
    cozystack_allow_icmp: str | None = msgspec.field(default=None, name="networking.cozystack.io/allowICMP")


class ServiceMeta(ObjectMeta, frozen=True, gc=False):
    """Who the Service is, and how it wants its address."""

    annotations: _Annotations | None = None


class _Port(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    port: int | None = None
    protocol: str | None = None
    target_port: int | str | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False):
    ports: tuple[_Port | None, ...] | None = None


class _Point(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    ip: str | None = None
    hostname: str | None = None
    ip_mode: str | None = None


class _LoadBalancer(msgspec.Struct, frozen=True, gc=False):
    ingress: tuple[_Point | None, ...] | None = None


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    load_balancer: _LoadBalancer | None = None


class Service(msgspec.Struct, frozen=True, gc=False):
    """The fields of a Service that count here."""

    metadata: ServiceMeta
    spec: _Spec | None = None
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class ManagedService:
    """What one Service asks for."""

    key: str
    """NAMESPACE/NAME."""
    created: str
    """RFC 3339; the older of two Services wins."""
    addresses: tuple[Address, ...]
    """Of its load balancer, in the order of the status."""
    opened: frozenset[OpenPort] | None
    """Only these come in; None: everything."""
    icmp: bool
    reports: tuple[Report, ...] = ()

    @property
    def age(self) -> tuple[str, str]:
        """Sorts the older one first."""
        return self.created, self.key


def service_collection(proxy_name: str) -> Collection[Service]:
    """The Services that have the label. RBAC: list and watch on services."""
    return Collection("Service", "/api/v1/services", Service, label_selector=f"{LABEL}={proxy_name}")


def read_service(service: Service | Unreadable) -> ManagedService:
    """What a Service asks for, with what is wrong about that."""
    key = key_of(service.metadata)
    created = service.metadata.creation_timestamp or _LATER
    if isinstance(service, Unreadable):
        report = Report(key, Reason.UNREADABLE, f"it cannot be read: {service.reason}")
        return ManagedService(key, created, (), frozenset(), icmp=False, reports=(report,))
    told: list[tuple[Reason, str]] = []
    addresses = tuple(dict.fromkeys(_addresses(service, told)))
    if not addresses and not told:
        told.append((Reason.NO_ADDRESS, "its load balancer has not given it an address yet"))
    annotations = service.metadata.annotations or _Annotations()
    whole = _flag("whole-ip", annotations.whole_ip, "wholeIP", annotations.cozystack_whole_ip, told)
    icmp = _flag("allow-icmp", annotations.allow_icmp, "allowICMP", annotations.cozystack_allow_icmp, told)
    opened = None if whole else frozenset(_ports(service, told))
    if opened is not None and not opened:
        told.append((Reason.NO_PORTS, "it lists no port that can be opened, and does not ask for the whole address"))
    reports = tuple(Report(key, reason, detail) for reason, detail in dict.fromkeys(told))
    return ManagedService(key, created, addresses, opened, icmp, reports)


def _addresses(service: Service, told: list[tuple[Reason, str]]) -> Iterator[Address]:
    balancer = (service.status or _Status()).load_balancer or _LoadBalancer()
    for point in balancer.ingress or ():
        if point is None or not (point.ip or point.hostname):
            continue
        if not point.ip:
            told.append((Reason.HOSTNAME, f"its load balancer gives a name, {point.hostname}, and no address"))
        elif point.ip_mode == "Proxy":
            # What it takes at its address comes with another one, so there is nothing to be translated back.
            told.append((Reason.BAD_ADDRESS, f"{point.ip}: the load balancer is a proxy, the address stays with it"))
        else:
            try:
                yield parse_mappable(point.ip)
            except ValueError as error:
                told.append((Reason.BAD_ADDRESS, f"{point.ip}: {error}"))


def _flag(
    name: str, value: str | None, cozystack_name: str, cozystack_value: str | None, told: list[tuple[Reason, str]]
) -> bool:
    """Ours first, then the one that cozy-proxy knows."""
    if value is not None:
        if value in _TRUTHS:
            return _TRUTHS[value]
        told.append((Reason.BAD_ANNOTATION, f'switchback.dev/{name}: "{value}" is neither "true" nor "false"'))
    if cozystack_value not in {None, "", *_TRUTHS}:
        # Only this counts with cozy-proxy too; who writes "True" means something else than he gets.
        text = f'networking.cozystack.io/{cozystack_name}: "{cozystack_value}" is not "true"'
        told.append((Reason.BAD_ANNOTATION, text))
    return cozystack_value == "true"


def _ports(service: Service, told: list[tuple[Reason, str]]) -> Iterator[OpenPort]:
    for port in (service.spec or _Spec()).ports or ():
        if port is None or port.port is None or not 0 < port.port <= MAXIMUM_PORT:
            told.append((Reason.BAD_PORT, f"{None if port is None else port.port} is no port"))
            continue
        protocol = (port.protocol or "TCP").lower()
        if protocol not in _PROTOCOLS:
            told.append((Reason.BAD_PORT, f"port {port.port}: {port.protocol} is none of TCP, UDP and SCTP"))
            continue
        if isinstance(port.target_port, int) and port.target_port not in {0, port.port}:
            text = f"targetPort {port.target_port}: no port is translated, so the pod has to listen on {port.port}"
            told.append((Reason.TARGET_PORT, text))
        yield OpenPort(cast("Protocol", protocol), port.port)

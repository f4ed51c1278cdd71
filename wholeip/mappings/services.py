"""Reads the Services with our label, and what each of them asks for.

The law: anything that an owner or a load balancer wrote becomes a value and reports, never an error: a bad Service
costs no other Service its mapping. https://kubernetes.io/docs/reference/kubernetes-api/service-resources/service-v1/
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

import msgspec

from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable, key_of
from sidecar.values.endpoints import MAXIMUM_PORT
from sidecar.values.text import cut
from wholeip.mappings.addresses import Address, parse_each
from wholeip.mappings.mapping import OpenPort, Protocol
from wholeip.mappings.refused_addresses import parse_mappable, parse_shown
from wholeip.mappings.reports import Reason, Report

LABEL: Final = "service.kubernetes.io/service-proxy-name"
"""kube-proxy ignores a Service with this label, whatever its value."""
DEFAULT_PROXY_NAME: Final = "cozy-proxy"
_PROTOCOLS: Final = frozenset({"tcp", "udp", "sctp"})
_LATER: Final = "~"
"""Sorts after every timestamp."""
_TRUTHS: Final = {"true": True, "false": False}
_SHOWN: Final = 80
"""Characters of an annotation, which may have 256 KiB."""


class _Annotations(msgspec.Struct, frozen=True, gc=False):
    whole_ip: str | None = msgspec.field(default=None, name="switchback.dev/whole-ip")
    allow_icmp: str | None = msgspec.field(default=None, name="switchback.dev/allow-icmp")
    cozystack_whole_ip: str | None = msgspec.field(default=None, name="networking.cozystack.io/wholeIP")
    cozystack_allow_icmp: str | None = msgspec.field(default=None, name="networking.cozystack.io/allowICMP")


class ServiceMeta(ObjectMeta, frozen=True, gc=False):
    """The identity of a Service, and its annotations."""

    annotations: _Annotations | None = None
    uid: str = ""


class _Port(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    port: int | None = None
    protocol: str | None = None
    target_port: int | str | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False):
    ports: tuple[_Port | None, ...] | None = None
    cluster_ips: tuple[str | None, ...] | None = msgspec.field(default=None, name="clusterIPs")


class _Point(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    ip: str | None = None
    hostname: str | None = None
    ip_mode: str | None = None


class _LoadBalancer(msgspec.Struct, frozen=True, gc=False):
    ingress: tuple[_Point | None, ...] | None = None


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    load_balancer: _LoadBalancer | None = None


class Service(msgspec.Struct, frozen=True, gc=False):
    """The fields of a Service that are read."""

    metadata: ServiceMeta
    spec: _Spec | None = None
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class ManagedService:
    """What one Service asks for."""

    key: str
    """NAMESPACE/NAME."""
    created: str
    """RFC 3339; of two Services the older one wins."""
    addresses: tuple[Address, ...]
    """The addresses of its load balancer, in the order of the status."""
    opened: frozenset[OpenPort] | None
    """The ports that are let in; None: everything."""
    icmp: bool
    reports: tuple[Report, ...] = ()
    cluster_ips: frozenset[Address] = frozenset()
    """Its addresses inside the cluster."""
    uid: str = ""
    """Another one after it was deleted and created again with its name."""

    @property
    def age(self) -> tuple[str, str]:
        """Sorts the older one first."""
        return self.created, self.key


def service_collection(proxy_name: str) -> Collection[Service]:
    """The Services with the label. RBAC: list and watch on services."""
    return Collection("Service", "/api/v1/services", Service, label_selector=f"{LABEL}={proxy_name}")


def read_service(service: Service | Unreadable) -> ManagedService:
    """What a Service asks for, and the problems with it."""
    key = key_of(service.metadata)
    created = service.metadata.creation_timestamp or _LATER
    if isinstance(service, Unreadable):
        report = Report(key, Reason.UNREADABLE, f"it cannot be read: {service.reason}")
        return ManagedService(key, created, (), frozenset(), icmp=False, reports=(report,))
    problems: list[tuple[Reason, str]] = []
    addresses = tuple(dict.fromkeys(_addresses(service, problems)))
    if not addresses and not problems:
        problems.append((Reason.NO_ADDRESS, "its load balancer has not assigned an address yet"))
    annotations = service.metadata.annotations or _Annotations()
    whole = _flag("whole-ip", annotations.whole_ip, "wholeIP", annotations.cozystack_whole_ip, problems)
    icmp = _flag("allow-icmp", annotations.allow_icmp, "allowICMP", annotations.cozystack_allow_icmp, problems)
    opened = None if whole else frozenset(_ports(service, problems))
    if opened is not None and not opened:
        problems.append(
            (Reason.NO_PORTS, "it lists no port that can be opened, and does not ask for the whole address")
        )
    reports = tuple(Report(key, reason, detail) for reason, detail in dict.fromkeys(problems))
    # A headless Service has the text None instead of an address.
    cluster_ips = parse_each(parse_shown, (service.spec or _Spec()).cluster_ips or ())
    return ManagedService(key, created, addresses, opened, icmp, reports, cluster_ips, service.metadata.uid)


def _addresses(service: Service, problems: list[tuple[Reason, str]]) -> Iterator[Address]:
    balancer = (service.status or _Status()).load_balancer or _LoadBalancer()
    for point in balancer.ingress or ():
        if point is None or not (point.ip or point.hostname):
            continue
        if not point.ip:
            problems.append((Reason.HOSTNAME, f"its load balancer has a hostname, {point.hostname}, and no address"))
        elif point.ip_mode == "Proxy":
            # A proxy connects to the pod from an address of its own, so there is nothing to translate.
            problems.append(
                (Reason.BAD_ADDRESS, f"{point.ip}: the load balancer is a proxy, so the address stays with it")
            )
        else:
            try:
                yield parse_mappable(point.ip)
            except ValueError as error:
                problems.append((Reason.BAD_ADDRESS, f"{point.ip}: {error}"))


def _flag(
    name: str, value: str | None, cozystack_name: str, cozystack_value: str | None, problems: list[tuple[Reason, str]]
) -> bool:
    """Our annotation, else that of cozy-proxy."""
    if value is not None:
        if value in _TRUTHS:
            return _TRUTHS[value]
        problems.append(
            (Reason.BAD_ANNOTATION, f'switchback.dev/{name}: "{cut(value, _SHOWN)}" is neither "true" nor "false"')
        )
    if cozystack_value and cozystack_value not in _TRUTHS:
        # cozy-proxy too accepts "true" alone; a "True" was meant otherwise than it works.
        text = f'networking.cozystack.io/{cozystack_name}: "{cut(cozystack_value, _SHOWN)}" is not "true"'
        problems.append((Reason.BAD_ANNOTATION, text))
    return cozystack_value == "true"


def _ports(service: Service, problems: list[tuple[Reason, str]]) -> Iterator[OpenPort]:
    for port in (service.spec or _Spec()).ports or ():
        if port is None or port.port is None or not 0 < port.port <= MAXIMUM_PORT:
            problems.append((Reason.BAD_PORT, f"{None if port is None else port.port} is not a port"))
            continue
        protocol = (port.protocol or "TCP").lower()
        if protocol not in _PROTOCOLS:
            problems.append((Reason.BAD_PORT, f"port {port.port}: {port.protocol} is not TCP, UDP or SCTP"))
            continue
        if isinstance(port.target_port, int) and port.target_port not in {0, port.port}:
            text = f"targetPort {port.target_port}: ports are not translated, so the pod must listen on {port.port}"
            problems.append((Reason.TARGET_PORT, text))
        yield OpenPort(cast("Protocol", protocol), port.port)

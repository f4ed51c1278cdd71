"""Services as targets: the addresses of `service:NAMESPACE/NAME`, why a Service has none, and which are in use.

The law: pure. Only a ClusterIP is an address here, because it stays when pods come and go. A Service is in use for
exactly as long as a claim names it, and a change costs what it touches.
https://kubernetes.io/docs/reference/kubernetes-api/service-resources/service-v1/
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from dnsproxy.dns.addresses import is_address, parse_address
from dnsproxy.hostnames.targets import SERVICE
from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable

_NONE: Final = "None"  # the ClusterIP of a headless Service
_LOCAL: Final = "Local"


class ServicePort(msgspec.Struct, frozen=True, gc=False):
    """One port of a Service."""

    port: int = 0
    name: str | None = None
    protocol: str | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False):
    type: str | None = None
    cluster_ip: str | None = msgspec.field(default=None, name="clusterIP")
    cluster_ips: tuple[str | None, ...] | None = msgspec.field(default=None, name="clusterIPs")
    ports: tuple[ServicePort, ...] | None = None
    internal_traffic_policy: str | None = msgspec.field(default=None, name="internalTrafficPolicy")


class Service(msgspec.Struct, frozen=True, gc=False):
    """The fields of a Service that give its addresses and ports: fewer than in sidecar, only these cause a change."""

    metadata: ObjectMeta
    spec: _Spec | None = None

    @property
    def ports(self) -> tuple[ServicePort, ...]:
        """Its ports of all protocols."""
        return (self.spec.ports if self.spec else None) or ()

    @property
    def is_local(self) -> bool:
        """Whether clients of each node reach only that node's own endpoints (KEP-2086), and nothing if it has none."""
        return self.spec is not None and self.spec.internal_traffic_policy == _LOCAL


def service_collection(key: str) -> Collection[Service]:
    """The one Service `NAMESPACE/NAME`. RBAC: list and watch services in its namespace; resourceNames may narrow it."""
    namespace, _, name = key.partition("/")
    path = f"/api/v1/namespaces/{namespace}/services"
    return Collection(f"Service {key}", path, Service, field_selector=f"metadata.name={name}")


def addresses_of(service: Service | Unreadable | None) -> tuple[str, ...]:
    """The ClusterIPs of both families, the primary first; empty if it has none."""
    if not isinstance(service, Service) or service.spec is None:
        return ()
    ips = service.spec.cluster_ips or (service.spec.cluster_ip,)
    return tuple(dict.fromkeys(parse_address(ip) for ip in ips if ip and is_address(ip)))


def fault_of(service: Service | Unreadable | None) -> str | None:
    """Why a Service cannot be a target; None if it can."""
    if service is None:
        return "there is no such Service"
    if isinstance(service, Unreadable):
        return f"unreadable: {service.reason}"
    if addresses_of(service):
        return None
    spec = service.spec or _Spec()
    if spec.type == "ExternalName":
        return "it is an ExternalName; name a Service with a ClusterIP"
    if spec.cluster_ip == _NONE:
        return "it is headless; name a Service with a ClusterIP"
    return "it has no ClusterIP yet"


def service_keys(targets: Iterable[str]) -> frozenset[str]:
    """The `NAMESPACE/NAME` of those targets that are Services."""
    return frozenset(text.removeprefix(SERVICE) for text in targets if text.startswith(SERVICE))


@dataclass(frozen=True, slots=True)
class UseChange:
    """The Services whose use began or ended with a change, by `NAMESPACE/NAME`."""

    added: frozenset[str] = frozenset()
    """Services that no claim named before."""
    removed: frozenset[str] = frozenset()
    """Services that no claim names any more."""


_NOTHING = UseChange()


class ServiceUses:
    """The Services that claims choose (`Terms.target`), by hostname, and the hostnames by Service."""

    def __init__(self) -> None:
        self._by_hostname: dict[str, frozenset[str]] = {}
        self._by_service: dict[str, dict[str, None]] = {}

    def put(self, hostname: str, targets: Iterable[str]) -> UseChange:
        """Set the targets that the claims to a hostname choose now; targets other than Services are ignored."""
        old, new = self._by_hostname.get(hostname, frozenset()), service_keys(targets)
        if old == new:
            return _NOTHING
        added = frozenset(key for key in new - old if self._link(key, hostname))
        removed = frozenset(key for key in old - new if self._unlink(key, hostname))
        if new:
            self._by_hostname[hostname] = new
        else:
            del self._by_hostname[hostname]
        return UseChange(added, removed)

    @property
    def is_empty(self) -> bool:
        """Whether no claim chooses any Service."""
        return not self._by_hostname

    def hostnames(self, key: str) -> list[str]:
        """The hostnames with a claim that chooses this Service."""
        return list(self._by_service.get(key, ()))

    def _link(self, key: str, hostname: str) -> bool:
        hostnames = self._by_service.setdefault(key, {})
        hostnames[hostname] = None
        return len(hostnames) == 1

    def _unlink(self, key: str, hostname: str) -> bool:
        hostnames = self._by_service[key]
        del hostnames[hostname]
        if not hostnames:
            del self._by_service[key]
        return not hostnames

"""Envoy Gateway's ClientTrafficPolicies: whether the listeners of a Gateway demand the PROXY header.

The law: pure, except for its one list. Only what holds for all listeners of a Gateway counts: a policy for one
listener, or with a selector, leaves the header open, and so does a second policy, whatever it is about: the one for a
listener replaces that of its Gateway there, and of two for a Gateway the older one counts. `proxyProtocol` has
precedence over `enableProxyProtocol`. https://github.com/envoyproxy/gateway api/v1alpha1/clienttrafficpolicy_types.go
and internal/gatewayapi/clienttrafficpolicy.go, v1.9.1, read 2026-11-25. Tested in
tests/dnsproxy/doctor/collect/test_client_traffic_policies.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.facts.model import Service
from dnsproxy.doctor.judge.paths import ENVOY_GATEWAY, OWNING_GATEWAY, OWNING_NAMESPACE
from sidecar.kubernetes.objects import ObjectMeta

PATH: Final = "/apis/gateway.envoyproxy.io/v1alpha1/clienttrafficpolicies"
SETTING: Final = "proxy-protocol"
REQUIRED: Final = "required"
OPTIONAL: Final = "optional"


class ProxyProtocol(msgspec.Struct, frozen=True):
    """`proxyProtocol` of a policy."""

    optional: bool | None = None


class Target(msgspec.Struct, frozen=True, rename="camel"):
    """An object that a policy is for."""

    kind: str = ""
    name: str = ""
    section_name: str | None = None


class PolicySpec(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a policy that is about the header."""

    target_ref: Target | None = None
    target_refs: tuple[Target, ...] | None = None
    target_selectors: tuple[Any, ...] | None = None
    enable_proxy_protocol: bool | None = None
    proxy_protocol: ProxyProtocol | None = None


class ClientTrafficPolicy(msgspec.Struct, frozen=True):
    """gateway.envoyproxy.io/v1alpha1 ClientTrafficPolicy."""

    metadata: ObjectMeta
    spec: PolicySpec | None = None

    @property
    def about_header(self) -> str:
        """What it says about the header; empty for nothing."""
        if self.spec is None:
            return ""
        if self.spec.proxy_protocol is not None:
            return OPTIONAL if self.spec.proxy_protocol.optional else REQUIRED
        return REQUIRED if self.spec.enable_proxy_protocol else ""

    def may_be_for(self, gateway: str) -> bool:
        """Whether it is for a Gateway of its namespace, or for a part of it, or may be."""
        return self.spec is not None and (
            bool(self.spec.target_selectors) or any(one.name == gateway for one in self._targets)
        )

    def is_for(self, gateway: str) -> bool:
        """Whether it is for the whole of a Gateway of its namespace."""
        whole = (one for one in self._targets if one.kind == "Gateway" and not one.section_name)
        return any(one.name == gateway for one in whole)

    @property
    def _targets(self) -> tuple[Target, ...]:
        spec = self.spec or PolicySpec()
        return (*((spec.target_ref,) if spec.target_ref else ()), *(spec.target_refs or ()))


async def read_policies(reader: Reader, services: Iterable[Service]) -> list[ClientTrafficPolicy]:
    """All policies, if a Service of Envoy Gateway is among these; none if they could not be read."""
    if not any(OWNING_GATEWAY in one.labels for one in services):
        return []
    what = "list clienttrafficpolicies.gateway.envoyproxy.io"
    return await reader.list(PATH, ClientTrafficPolicy, what) or []


def with_policies(service: Service, policies: Iterable[ClientTrafficPolicy]) -> Service:
    """The Service of a Gateway's Envoys, with what its policy says."""
    namespace, gateway = service.labels.get(OWNING_NAMESPACE), service.labels.get(OWNING_GATEWAY, "")
    if service.program != ENVOY_GATEWAY or not namespace:
        return service
    near = (one for one in policies if one.metadata.namespace == namespace)
    found = [one for one in near if one.may_be_for(gateway)]
    if len(found) != 1 or not found[0].is_for(gateway) or not found[0].about_header:
        return service
    origin = f"ClientTrafficPolicy {namespace}/{found[0].metadata.name}"
    return replace(service, settings={SETTING: found[0].about_header}, settings_from=origin)

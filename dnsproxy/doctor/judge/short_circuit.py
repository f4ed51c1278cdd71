"""The short circuit: whether a connection from a pod to a load balancer's address ever leaves the cluster.

The law: what kube-proxy or the CNI does follows from the Service's status, from ipMode and from versions; if one of
these is unknown, so is the result; a pre-release counts as before its release. Sources: KEP-1860 (kube-proxy: beta and
on in 1.30); cilium #34780 (1.17.0), #40913 and #40915 (lost in 1.18.0, back in 1.18.1); antrea #6102 (2.0.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from dnsproxy.doctor.facts.model import Component, Facts, Service
from sidecar.values.text import cut

Version = tuple[int, int, int]

_VERSION: Final = re.compile(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?![\d])(-(?:alpha|beta|rc|pre)[\w.]*)?", re.ASCII)

KUBE_PROXY: Final = "kube-proxy"
CILIUM: Final = "cilium"
ANTREA: Final = "antrea"
OTHERS: Final = ("calico", "ovn-kubernetes", "kube-router")
"""Programs that may or may not honour ipMode."""
SYSTEM_NAMESPACE: Final = "kube-system"
"""Only owners create here; kube-proxy and most CNI plugins do."""

IP_MODE_SINCE: Final = (1, 30, 0)
"""The first Kubernetes whose API server and kube-proxy know ipMode without a feature gate."""
_LONGEST: Final = 320
"""Characters of a sentence."""
_CILIUM_SINCE: Final = (1, 17, 0)
_CILIUM_LOST: Final = (1, 18, 0)
_ANTREA_SINCE: Final = (2, 0, 0)
_EMBEDDED: Final = {"+k3s": "k3s", "+rke2": "RKE2"}
_ON: Final = frozenset(["true", "strict", "partial", "probe"])
_OFF: Final = frozenset(["false", "disabled", "off"])


def parse_version(text: str) -> Version | None:
    """`v1.34.4+k3s1`, `1.18.0` or `v1.30` as numbers; None if invalid. A pre-release of .0 has the patch -1."""
    found = _VERSION.match(text.strip())
    if found is None:
        return None
    patch = int(found[3] or 0)
    return int(found[1]), int(found[2]), patch - 1 if found[4] else patch


def format_version(version: Version) -> str:
    """`1.18.0`."""
    return ".".join(str(max(number, 0)) for number in version)


class Answer(Enum):
    """Yes, no, or unknown."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


EXPERIMENTAL_LB: Final = "enable-experimental-lb"
"""Cilium's setting, before 1.18, for the program that reads Services since 1.18, and lacked ipMode until 1.18.1."""

_DECIDING: Final = frozenset(
    [
        "mode",
        "kube-proxy-replacement",
        "bpf-lb-sock",
        EXPERIMENTAL_LB,
        "proxyLoadBalancerIPs",
        "bpfEnabled",
        "service-proxy",
    ]
)
"""The settings that decide about connections; others are about networks and headers."""


@dataclass(frozen=True, slots=True)
class DataPlane:
    """The program that carries connections from pods to Services."""

    name: str
    takes_addresses: Answer
    """Whether it intercepts connections to load balancers' addresses at all."""
    honours_ip_mode: Answer
    why: str
    """The source of these facts."""
    remedy: str = ""
    """How to make it honour ipMode, if it does not."""


def data_plane(facts: Facts) -> DataPlane:
    """The data plane of this cluster."""
    found = _data_plane(facts)
    # Versions and settings are of manifests and ConfigMaps.
    name, why, remedy = (cut(text, _LONGEST) for text in (found.name, found.why, found.remedy))
    return replace(found, name=name, why=why, remedy=remedy)


def _data_plane(facts: Facts) -> DataPlane:
    found = _by_name(facts.components)
    cilium, antrea = found.get(CILIUM), found.get(ANTREA)
    if cilium is not None and _replaces_kube_proxy(cilium, found):
        return _cilium(cilium)
    if antrea is not None:
        return _antrea(antrea)
    for name in OTHERS:
        if name in found and found[name].settings.get("service-proxy") == "true":
            return _other(found[name])
    return _kube_proxy(found.get(KUBE_PROXY), facts.server_version)


def _by_name(components: Iterable[Component]) -> dict[str, Component]:
    """One of each name: saved facts may have several, and that of another namespace may be a tenant's."""
    ranked = sorted(components, key=lambda one: (f" {SYSTEM_NAMESPACE}/" not in one.workload, one.workload))
    return {component.name: component for component in reversed(ranked)}


def _replaces_kube_proxy(cilium: Component, found: dict[str, Component]) -> bool:
    replacement = cilium.settings.get("kube-proxy-replacement", "").lower()
    if replacement in _ON:
        return True
    return replacement not in _OFF and KUBE_PROXY not in found


def _cilium(component: Component) -> DataPlane:
    version = parse_version(component.version)
    name = f"Cilium {component.version or 'of an unknown version'} instead of kube-proxy"
    if version is None:
        return DataPlane(name, Answer.YES, Answer.UNKNOWN, _read_from(component))
    is_early = version < _CILIUM_LOST and component.settings.get(EXPERIMENTAL_LB, "").lower() == "true"
    lost = is_early or (version[:2] == _CILIUM_LOST[:2] and version <= _CILIUM_LOST)
    honours = Answer.NO if version < _CILIUM_SINCE or lost else Answer.YES
    wanted = "1.18.1 or newer" if lost else "1.17 or newer, but not 1.18.0"
    instead = f", or set {EXPERIMENTAL_LB}: false" if is_early and version >= _CILIUM_SINCE else ""
    return DataPlane(name, Answer.YES, honours, _read_from(component), f"upgrade Cilium to {wanted}{instead}")


def _antrea(component: Component) -> DataPlane:
    version = parse_version(component.version)
    takes = Answer.NO if component.settings.get("proxyLoadBalancerIPs", "").lower() == "false" else Answer.YES
    honours = Answer.UNKNOWN if version is None else _since(version, _ANTREA_SINCE)
    name = f"Antrea {component.version or 'of an unknown version'}"
    remedy = "upgrade Antrea to 2.0 or newer, or set antreaProxy.proxyLoadBalancerIPs: false in its configuration"
    return DataPlane(name, takes, honours, _read_from(component), remedy)


def _other(component: Component) -> DataPlane:
    name = f"{component.name} {component.version}".strip()
    remedy = f"whether {component.name} honours ipMode is unknown: see its release notes"
    return DataPlane(f"{name} instead of kube-proxy", Answer.YES, Answer.UNKNOWN, _read_from(component), remedy)


def _kube_proxy(component: Component | None, server_version: str) -> DataPlane:
    server = parse_version(server_version)
    version = parse_version(component.version) if component else None
    mode = component.settings.get("mode", "") if component else ""
    embedded = next((name for mark, name in _EMBEDDED.items() if mark in server_version), "")
    known = component is not None or embedded
    known_version = version or (server if known else None)
    # An API server drops a field that it does not know, so that kube-proxy never sees it.
    oldest = min(filter(None, (known_version, server)), default=None) if known else None
    honours = Answer.UNKNOWN if oldest is None else _since(oldest, IP_MODE_SINCE)
    name = (
        f"kube-proxy {format_version(known_version)}"
        if known_version
        else "kube-proxy"
        if known
        else "an unknown data plane"
    )
    name += f" in mode {mode}" if mode else ""
    if component is not None:
        why = _read_from(component)
    else:
        why = (
            f"{embedded} {server_version} has it built in"
            if embedded
            else "neither kube-proxy nor a known CNI was found"
        )
    return DataPlane(name, Answer.YES, honours, why, "upgrade Kubernetes to 1.30 or newer, nodes included")


def _since(version: Version, first: Version) -> Answer:
    return Answer.YES if version >= first else Answer.NO


def _read_from(component: Component) -> str:
    settings = ", ".join(f"{key}: {value}" for key, value in sorted(component.settings.items()) if key in _DECIDING)
    return f"{component.workload or component.name}{f' ({settings})' if settings else ''}"


@dataclass(frozen=True, slots=True)
class ShortCircuit:
    """The way of a pod's connection to one Service's load balancer."""

    state: Answer
    addresses: tuple[str, ...] = ()
    """The addresses that are intercepted, or may be."""
    evidence: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """Those whose ipMode is Proxy, which the data plane ignores."""
    empty: bool = False
    """Whether there is no load balancer address at all."""


def short_circuit(service: Service, plane: DataPlane) -> ShortCircuit:
    """Whether pods are short-circuited to this Service."""
    evidence = tuple(_entries(service))
    taken = tuple(point.ip for point in service.points if point.ip and point.ip_mode in ("", "VIP"))
    left = tuple(point.ip for point in service.points if point.ip and point.ip_mode not in ("", "VIP"))
    if not service.points and not service.external_ips:
        return ShortCircuit(Answer.NO, evidence=("its status has no load balancer address",), empty=True)
    evidence += (f"connections to Services are carried by {plane.name} ({plane.why})",)
    if plane.takes_addresses is Answer.NO:
        return ShortCircuit(Answer.NO, evidence=evidence)
    taken += service.external_ips
    ignored = left if plane.honours_ip_mode is Answer.NO else ()
    if taken or ignored:
        return ShortCircuit(Answer.YES, (*taken, *ignored), (*evidence, *_both(service)), ignored)
    if left and (plane.honours_ip_mode is Answer.UNKNOWN or not _all_proxy(service)):
        return ShortCircuit(Answer.UNKNOWN, left, evidence)
    return ShortCircuit(Answer.NO, evidence=evidence)


def _entries(service: Service) -> Iterable[str]:
    for point in service.points:
        mode = f", ipMode {point.ip_mode}" if point.ip_mode else ", no ipMode" if point.ip else ""
        named = " and ".join(filter(None, (f"ip {point.ip}" if point.ip else "", _hostname(point.hostname))))
        yield f"status.loadBalancer.ingress of Service {service.key} has {named or 'an empty entry'}{mode}"
    if service.external_ips:
        yield f"Service {service.key} has externalIPs {', '.join(service.external_ips)}, to which ipMode does not apply"


def _hostname(text: str) -> str:
    return f"hostname {text}" if text else ""


def _both(service: Service) -> Sequence[str]:
    both = any(point.hostname for point in service.points) and any(point.ip for point in service.points)
    return ("the hostname has no effect as long as there is an ip beside it",) if both else ()


def _all_proxy(service: Service) -> bool:
    return all(point.ip_mode == "Proxy" for point in service.points if point.ip)

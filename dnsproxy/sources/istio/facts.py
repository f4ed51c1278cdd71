"""Facts: what is kept of a Gateway or a VirtualService, parsed once per version of the object.

The law: two versions of an object that serve the same names have equal facts, so that a change of routes or ports costs
a comparison. An invalid part becomes a fault in words and affects no other part.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from sys import intern
from typing import Final

import msgspec

from dnsproxy.dns.names import parse_hostnames
from dnsproxy.hostnames.claims import Origin
from dnsproxy.sources.annotations import Annotations, origin_of, read_annotations
from dnsproxy.sources.istio import structs
from dnsproxy.sources.istio.gateway_class import format_class
from dnsproxy.sources.istio.hosts import EVERY_HOST, ServerHosts, first_hosts, parse_servers
from dnsproxy.sources.istio.kinds import ISTIO_GATEWAY
from dnsproxy.sources.unreadable import UnreadableFacts, unreadable_facts
from sidecar.kubernetes.objects import Unreadable
from sidecar.values.text import quoted

_MESH: Final = "mesh"
"""Among the gateways of a VirtualService: the sidecars of all pods."""
_MOST_GATEWAYS: Final = 32
"""Of one VirtualService, which may take all hosts of each."""
_LONGEST_CLASS: Final = 1_000
"""Characters of a selector: each claim keeps it. A single label may have 381."""
_GATEWAY: Final = re.compile(r"[a-z0-9-]{1,63}/[a-z0-9.-]{1,253}")


class GatewayFacts(msgspec.Struct, frozen=True, gc=False):
    """An Istio Gateway."""

    origin: Origin
    annotations: Annotations
    faults: tuple[str, ...]
    class_name: str
    """Its selector, `key=value[,key=value]` in the order of the keys; empty for all gateways of the mesh."""
    hosts: ServerHosts

    @property
    def key(self) -> str:
        """As Terms.gateway; one text for all claims that have it."""
        return intern(f"{ISTIO_GATEWAY} {self.origin.namespace}/{self.origin.name}")


class VirtualServiceFacts(msgspec.Struct, frozen=True, gc=False):
    """A VirtualService."""

    origin: Origin
    annotations: Annotations
    faults: tuple[str, ...]
    gateways: tuple[str, ...]
    """`NAMESPACE/NAME`, in the object's order."""
    exported_to: frozenset[str]
    """Those of the namespaces of its Gateways that may use it."""
    in_mesh: bool
    """Whether it is for sidecars, too, or for them alone."""
    is_delegate: bool
    """Whether it names no hosts, so that other VirtualServices have to include it."""
    hosts: tuple[str, ...]
    """In normal form."""
    takes_all: bool
    """Whether it has the host `*`: all names of its Gateways."""
    short_names: tuple[str, ...]
    """Hosts without a dot, which Istio completes to the names of Services."""


Facts = GatewayFacts | VirtualServiceFacts | UnreadableFacts
Object = structs.Gateway | structs.VirtualService


def read_facts(kind: str, one: Object | Unreadable, *, most: int | None) -> Facts:
    """The facts of an object of a kind. `most`: the hosts that are read."""
    origin = origin_of(kind, one.metadata)
    match one:
        case structs.Gateway():
            return _read_gateway(origin, one, most)
        case structs.VirtualService():
            return _read_virtual_service(origin, one, most)
        case Unreadable():
            return unreadable_facts(kind, one)


def _read_gateway(origin: Origin, gateway: structs.Gateway, most: int | None) -> GatewayFacts | UnreadableFacts:
    spec = gateway.spec or structs.GatewaySpec()
    class_name = format_class(spec.selector or {})
    if len(class_name) > _LONGEST_CLASS:
        return UnreadableFacts(origin, f"its selector {quoted(class_name)} is longer than {_LONGEST_CLASS} characters")
    annotations = read_annotations(gateway.metadata)
    hosts, faults = parse_servers(spec.servers, home=origin.namespace, most=most)
    faults = [*annotations.faults, *annotations.bad_hostnames, *faults]
    return GatewayFacts(origin, annotations, tuple(faults), intern(class_name), hosts)


def _read_virtual_service(origin: Origin, service: structs.VirtualService, most: int | None) -> VirtualServiceFacts:
    spec = service.spec or structs.VirtualServiceSpec()
    annotations = read_annotations(service.metadata)
    names = [name for name in spec.gateways or () if name]
    gateways, bad_gateways = _read_gateways(names, origin.namespace)
    texts, too_many_hosts = first_hosts(spec.hosts or (), most)
    hosts, bad_hosts = parse_hostnames(text for text in texts if text != EVERY_HOST)
    return VirtualServiceFacts(
        origin,
        annotations,
        (*annotations.faults, *annotations.bad_hostnames, *bad_gateways, *too_many_hosts, *bad_hosts),
        gateways,
        _exported_to(spec.export_to or (), {key.partition("/")[0] for key in gateways}, home=origin.namespace),
        in_mesh=not names or _MESH in names,
        is_delegate=not texts,
        hosts=tuple(name for name in hosts if "." in name),
        takes_all=EVERY_HOST in texts,
        short_names=tuple(name for name in hosts if "." not in name),
    )


def _read_gateways(names: Iterable[str], home: str) -> tuple[tuple[str, ...], list[str]]:
    """The Gateways that are named, each once, and the faults of the invalid ones."""
    keys: dict[str, None] = {}
    faults: list[str] = []
    for name in dict.fromkeys(names):
        if name == _MESH:
            continue
        if len(keys) + len(faults) == _MOST_GATEWAYS:
            faults.append(f"gateways: it has more than {_MOST_GATEWAYS}: the others are left out")
            break
        key = resolve_gateway(name, home)
        if _GATEWAY.fullmatch(key):
            keys[intern(key)] = None
        else:
            faults.append(f"gateways: {quoted(name)} is not NAMESPACE/NAME")
    return tuple(keys), faults


def resolve_gateway(name: str, home: str) -> str:
    """The `NAMESPACE/NAME` of `NAME`, `NAMESPACE/NAME`, `./NAME`, and of `NAME.NAMESPACE[.svc...]`, an earlier form.

    https://github.com/istio/istio/blob/86c9f01fd73/pilot/pkg/model/config.go (resolveGatewayName)
    """
    namespace, slash, rest = name.partition("/")
    if slash:
        return f"{home}/{rest}" if namespace == "." else name
    name, _, domain = name.partition(".")
    return f"{domain.partition('.')[0] or home}/{name}"


def _exported_to(export_to: Iterable[str | None], namespaces: Collection[str], *, home: str) -> frozenset[str]:
    """Those of the namespaces that may use a VirtualService of the namespace `home`.

    Without exportTo all: the mesh may have another default, which no object here says.
    https://istio.io/latest/docs/reference/config/networking/virtual-service/#VirtualService
    """
    given = frozenset(one for one in export_to if one is not None)
    if not given or "*" in given:
        return frozenset(namespaces)
    if "~" in given:
        return frozenset()
    return frozenset(one for one in namespaces if one in given or (one == home and "." in given))

"""Sets of Gateway API objects: listeners, admission, ListenerSets, routes across namespaces, and certificates.

The law: what the API server accepts; a set may be refused by the controller, and by us, in every way that the
specification has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.differential.sets import ABSENT, CERTIFICATE, FOREIGN, TEAMS, WEB, Draw, Manifest, manifest
from tests.differential.universe import HOSTS, STRANGE, in_zone

GROUP: Final = "gateway.networking.k8s.io"
_OWN: Final = "own"
STRAY_PORT: Final = 9
"""A port on which no controller listens."""


@dataclass(frozen=True)
class Choices:
    """The parts of the Gateway API that a controller has."""

    routes: tuple[str, ...] = ("HTTPRoute", "GRPCRoute", "TLSRoute")
    listener_sets: bool = True
    every_name: bool = True
    """Whether a route without hostnames may attach to a listener without one."""


@dataclass(frozen=True)
class _Parent:
    """An object that routes may name."""

    kind: str
    namespace: str
    name: str
    listeners: tuple[Manifest, ...]


def make_gateway_objects(draw: Draw, choices: Choices) -> Iterator[Manifest]:
    """One or two Gateways, perhaps a ListenerSet, and one to four routes."""
    parents: list[_Parent] = []
    for number in range(draw.one_of({1: 3, 2: 1})):
        one = _gateway(draw, f"gateway-{number}")
        yield one
        parents.append(_parent(one))
    if choices.listener_sets and draw.chance(40):
        one = _listener_set(draw, "listeners", draw.random.choice(parents))
        yield one
        parents.append(_parent(one))
    for number in range(draw.one_of({1: 3, 2: 3, 3: 2, 4: 1})):
        yield _route(draw, f"route-{number}", parents, choices)
    if draw.chance(30):
        yield _grant(draw)


def _parent(one: Manifest) -> _Parent:
    about = one["metadata"]
    return _Parent(one["kind"], about["namespace"], about["name"], tuple(one["spec"]["listeners"]))


def _gateway(draw: Draw, name: str) -> Manifest:
    chosen = draw.one_of({_OWN: 90, FOREIGN: 5, ABSENT: 5})
    spec: dict[str, Any] = {"gatewayClassName": draw.terms.gateway_class if chosen == _OWN else chosen}
    spec["listeners"] = _listeners(draw, least=1)
    if draw.chance(60):
        spec["allowedListeners"] = {"namespaces": _admission(draw)}
    return manifest(f"{GROUP}/v1", "Gateway", name, draw.namespace(), spec=spec)


def _listener_set(draw: Draw, name: str, gateway: _Parent) -> Manifest:
    reference = {"name": gateway.name, "namespace": gateway.namespace}
    spec = {"parentRef": reference, "listeners": _listeners(draw, least=1)}
    return manifest(f"{GROUP}/v1", "ListenerSet", name, draw.namespace(), spec=spec)


def _listeners(draw: Draw, *, least: int) -> list[Manifest]:
    """Listeners that the API server accepts: names and the combination of port, protocol and hostname are unique."""
    hosts = [None, *HOSTS]
    found: dict[tuple[object, ...], Manifest] = {}
    for number in range(draw.random.randint(least, 3)):
        host = None if draw.chance(30) else draw.random.choice(hosts)
        one = _listener(draw, f"listener-{number}", host)
        found.setdefault((one["port"], one["protocol"], one.get("hostname")), one)
    return list(found.values())


def _listener(draw: Draw, name: str, host: str | None) -> Manifest:
    protocol = draw.one_of({"HTTP": 45, "HTTPS": 30, "TLS": 25})
    port = draw.terms.http if protocol == "HTTP" else draw.terms.https
    one: Manifest = {"name": name, "protocol": protocol, "port": STRAY_PORT if draw.chance(4) else port}
    if host is not None:
        one["hostname"] = in_zone(host, draw.zone)
    if protocol != "HTTP":
        one["tls"] = _tls(draw, protocol)
    allowed: Manifest = {}
    if draw.chance(70):
        allowed["namespaces"] = _admission(draw)
    if draw.chance(25):
        allowed["kinds"] = [{"kind": kind} for kind in draw.some(("HTTPRoute", "GRPCRoute", "TLSRoute"), most=2)]
    if allowed:
        one["allowedRoutes"] = allowed
    return one


def _tls(draw: Draw, protocol: str) -> Manifest:
    if protocol == "TLS" and draw.chance(80):
        return {"mode": "Passthrough"}
    reference: Manifest = {"name": CERTIFICATE if draw.chance(90) else ABSENT}
    if draw.chance(15):
        reference["namespace"] = draw.namespace()
    return {"mode": "Terminate", "certificateRefs": [reference]}


def _admission(draw: Draw) -> Manifest:
    scope = draw.one_of({"All": 6, "Same": 2, "Selector": 3, "None": 1})
    if scope != "Selector":
        return {"from": scope}
    team = draw.random.choice(TEAMS)
    if draw.chance(50):
        return {"from": scope, "selector": {"matchLabels": {"team": team}}}
    operator = draw.one_of({"In": 2, "NotIn": 2, "Exists": 1, "DoesNotExist": 1})
    values = {"values": [team]} if operator in ("In", "NotIn") else {}
    return {"from": scope, "selector": {"matchExpressions": [{"key": "team", "operator": operator, **values}]}}


def _route(draw: Draw, name: str, parents: list[_Parent], choices: Choices) -> Manifest:
    weights = {"HTTPRoute": 6, "GRPCRoute": 2, "TLSRoute": 4}
    kind = draw.one_of({kind: weights[kind] for kind in choices.routes})
    namespace = draw.namespace()
    chosen = draw.some(parents, most=2, least=1)
    references = [_reference(draw, parent, namespace) for parent in chosen]
    is_open = any("hostname" not in one for parent in chosen for one in parent.listeners)
    needs_host = kind == "TLSRoute" or (is_open and not choices.every_name)
    hosts = draw.some(HOSTS, most=3, least=1 if needs_host else 0)
    hosts += draw.some(STRANGE, most=1) if draw.chance(20) else []
    backend = {"name": WEB if draw.chance(92) else ABSENT, "port": 80}
    spec: Manifest = {"parentRefs": references, "rules": [{"backendRefs": [backend]}]}
    if hosts:
        spec["hostnames"] = [in_zone(host, draw.zone) for host in hosts]
    return manifest(f"{GROUP}/v1", kind, name, namespace, spec=spec)


def _reference(draw: Draw, parent: _Parent, home: str) -> Manifest:
    one: Manifest = {"name": parent.name, "kind": parent.kind, "group": GROUP}
    if parent.namespace != home and draw.chance(95):
        one["namespace"] = parent.namespace
    if draw.chance(25):
        one["sectionName"] = draw.random.choice(parent.listeners)["name"] if draw.chance(90) else ABSENT
    if draw.chance(10):
        one["port"] = draw.one_of({draw.terms.http: 1, draw.terms.https: 1})
    return one


def _grant(draw: Draw) -> Manifest:
    """The Gateways of one namespace may use the Secrets of the other."""
    source, target = draw.random.sample(draw.namespaces, 2)
    spec = {
        "from": [{"group": GROUP, "kind": "Gateway", "namespace": source}],
        "to": [{"group": "", "kind": "Secret"}],
    }
    return manifest(f"{GROUP}/v1beta1", "ReferenceGrant", "grant", target, spec=spec)

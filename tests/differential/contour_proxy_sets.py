"""Sets of HTTPProxies: roots, what they include in this namespace and the other, certificates, and every kind of fault.

The law: what the API server accepts. https://projectcontour.io/docs/1.33/config/fundamentals/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.differential.ingress_sets import CLASS_ANNOTATION
from tests.differential.sets import ABSENT, CERTIFICATE, FOREIGN, WEB, Draw, Manifest, manifest
from tests.differential.universe import HOSTS, STRANGE, in_zone

VERSION: Final = "projectcontour.io/v1"
OWN_ANNOTATION: Final = "projectcontour.io/ingress.class"
_ROOT: Final = "root"
_INVALID: Final = "no-slash"
"""A prefix that the API server accepts and Contour does not."""


def make_proxies(draw: Draw) -> Iterator[Manifest]:
    """One to three roots, up to three proxies for them to include, and perhaps a delegation of certificates."""
    parts = [(f"part-{number}", draw.namespace()) for number in range(draw.one_of({0: 2, 1: 4, 2: 2, 3: 1}))]
    hosts: list[str] = []
    for number in range(draw.one_of({1: 4, 2: 3, 3: 1})):
        root = _root(draw, f"{_ROOT}-{number}", parts, hosts)
        hosts.append(root["spec"]["virtualhost"]["fqdn"])
        yield root
    for name, namespace in parts:
        yield _part(draw, name, namespace, parts)
    if draw.chance(30):
        yield _delegation(draw)


def _root(draw: Draw, name: str, parts: list[tuple[str, str]], hosts: list[str]) -> Manifest:
    namespace = draw.namespace()
    others = [*HOSTS, *(STRANGE if draw.chance(25) else ())]
    fqdn = draw.random.choice(hosts) if hosts and draw.chance(20) else in_zone(draw.random.choice(others), draw.zone)
    virtual_host: dict[str, Any] = {"fqdn": fqdn}
    spec: dict[str, Any] = {"virtualhost": virtual_host, **_rules(draw, namespace, parts)}
    tls = draw.one_of({"": 55, CERTIFICATE: 15, ABSENT: 5, "delegated": 10, "passthrough": 12, "none": 3})
    if tls == "passthrough":
        virtual_host["tls"] = {"passthrough": True}
    elif tls == "delegated":
        virtual_host["tls"] = {"secretName": f"{draw.namespace()}/{CERTIFICATE}"}
    elif tls:
        virtual_host["tls"] = {} if tls == "none" else {"secretName": tls}
    if tls == "passthrough" or draw.chance(5):
        spec["tcpproxy"] = {"services": [_service(draw)]}
        if draw.chance(30):
            spec["routes"] = [*spec.get("routes", ()), {**_route(draw, "/"), "conditions": [{"prefix": _INVALID}]}]
    return manifest(VERSION, "HTTPProxy", name, namespace, spec=spec, annotations=_choose_class(draw, spec))


def _part(draw: Draw, name: str, namespace: str, parts: list[tuple[str, str]]) -> Manifest:
    spec = _rules(draw, namespace, parts if draw.chance(15) else [])
    return manifest(VERSION, "HTTPProxy", name, namespace, spec=spec, annotations=_choose_class(draw, spec))


def _choose_class(draw: Draw, spec: dict[str, Any]) -> dict[str, str]:
    """Puts a class into the spec, or returns annotations with one; sometimes there are two."""
    annotations: dict[str, str] = {}
    places = draw.one_of({("field",): 70, (CLASS_ANNOTATION,): 8, (OWN_ANNOTATION,): 8, (): 4})
    if draw.chance(10):
        places = tuple(draw.some(("field", CLASS_ANNOTATION, OWN_ANNOTATION), most=3, least=2))
    for place in places:
        chosen = draw.one_of({draw.terms.ingress_class: 88, FOREIGN: 8, "": 4})
        if place == "field":
            spec["ingressClassName"] = chosen
        else:
            annotations[place] = chosen
    return annotations


def _rules(draw: Draw, home: str, parts: list[tuple[str, str]]) -> dict[str, Any]:
    routes = [_route(draw, path) for path in draw.some(("/", "/api", "/static"), most=2)]
    includes = [_include(draw, home, part, number) for number, part in enumerate(draw.some(parts, most=2))]
    if draw.chance(8):
        includes.append(_include(draw, home, (draw.random.choice((ABSENT, f"{_ROOT}-0")), draw.namespace()), 9))
    return {name: items for name, items in (("routes", routes), ("includes", includes)) if items}


def _route(draw: Draw, path: str) -> dict[str, Any]:
    route: dict[str, Any] = {"services": [_service(draw) for _ in range(draw.one_of({1: 4, 2: 1}))]}
    if path != "/" or draw.chance(30):
        route["conditions"] = [{"prefix": path if draw.chance(95) else _INVALID}]
    return route


def _service(draw: Draw) -> dict[str, Any]:
    name, port = draw.one_of({(WEB, 80): 88, (ABSENT, 80): 7, (WEB, 81): 5})
    return {"name": name, "port": port}


def _include(draw: Draw, home: str, part: tuple[str, str], number: int) -> dict[str, Any]:
    name, namespace = part
    include: dict[str, Any] = {"name": name}
    if namespace != home and draw.chance(90):
        include["namespace"] = namespace
    if draw.chance(70):
        include["conditions"] = [{"prefix": f"/part-{number}"}]
    return include


def _delegation(draw: Draw) -> Manifest:
    """The roots of one namespace, or of both, may use the certificate of another."""
    targets = [draw.random.choice((*draw.namespaces, "*"))]
    spec = {"delegations": [{"secretName": CERTIFICATE, "targetNamespaces": targets}]}
    return manifest(VERSION, "TLSCertificateDelegation", "certificates", draw.namespace(), spec=spec)

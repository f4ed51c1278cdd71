"""Sets of Ingresses: hosts, wildcards, TLS sections and classes, with the faults that the API server accepts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.differential.sets import ABSENT, CERTIFICATE, FOREIGN, WEB, Draw, Manifest, manifest
from tests.differential.universe import HOSTS, STRANGE, in_zone

CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
_OWN: Final = "own"


def make_ingresses(draw: Draw, *, hostless: bool = True) -> Iterator[Manifest]:
    """One to four Ingresses in the namespaces of a set. `hostless`: a rule or a backend may be for every host."""
    for number in range(draw.one_of({1: 4, 2: 3, 3: 2, 4: 1})):
        yield _ingress(draw, f"ingress-{number}", hostless=hostless)


def _ingress(draw: Draw, name: str, *, hostless: bool) -> Manifest:
    spec: dict[str, Any] = {}
    annotations: dict[str, str] = {}
    by = draw.one_of({"field": 70, "annotation": 15, "": 15})
    chosen = draw.one_of({_OWN: 80, FOREIGN: 10, ABSENT: 10})
    ingress_class = draw.terms.ingress_class if chosen == _OWN else chosen
    if by == "field":
        spec["ingressClassName"] = ingress_class
    elif by == "annotation":
        annotations[CLASS_ANNOTATION] = ingress_class
    rules = [_rule(draw, host) for host in _hosts(draw, most=3, least=0 if hostless else 1)]
    if hostless and draw.chance(10):
        rules.append(_rule(draw, None))
    if rules:
        spec["rules"] = rules
    if draw.chance(40):
        spec["tls"] = [_tls(draw, rules) for _ in range(draw.one_of({1: 4, 2: 1}))]
    if not rules or draw.chance(10):
        spec["defaultBackend"] = _backend(draw)
    return manifest("networking.k8s.io/v1", "Ingress", name, draw.namespace(), spec=spec, annotations=annotations)


def _hosts(draw: Draw, *, most: int, least: int = 0) -> list[str]:
    """Hosts of the zone; the same host may come twice."""
    hosts = draw.some(HOSTS, most=most, least=least) + (draw.some(STRANGE, most=1) if draw.chance(20) else [])
    if hosts and draw.chance(5):
        hosts.append(hosts[0])
    return [in_zone(host, draw.zone) for host in hosts]


def _rule(draw: Draw, host: str | None) -> dict[str, Any]:
    rule: dict[str, Any] = {} if host is None else {"host": host}
    if not draw.chance(8):
        paths = draw.some(("/", "/api", "/static"), most=2, least=1)
        rule["http"] = {"paths": [_path(draw, path) for path in paths]}
    return rule


def _path(draw: Draw, path: str) -> dict[str, Any]:
    kind = draw.one_of({"Prefix": 5, "Exact": 1, "ImplementationSpecific": 1})
    return {"path": path, "pathType": kind, "backend": _backend(draw)}


def _backend(draw: Draw) -> dict[str, Any]:
    match draw.one_of({"number": 60, "name": 25, "no Service": 6, "no port": 5, "resource": 4}):
        case "number":
            return {"service": {"name": WEB, "port": {"number": 80}}}
        case "name":
            return {"service": {"name": WEB, "port": {"name": "http"}}}
        case "no Service":
            return {"service": {"name": ABSENT, "port": {"number": 80}}}
        case "no port":
            return {"service": {"name": WEB, "port": {"number": 81}}}
        case _:
            return {"resource": {"apiGroup": "example.org", "kind": "Bucket", "name": "static"}}


def _tls(draw: Draw, rules: list[dict[str, Any]]) -> dict[str, Any]:
    """Mostly hosts of the rules, sometimes others or none."""
    ruled = [rule["host"] for rule in rules if "host" in rule]
    hosts = draw.some(ruled, most=2) if not draw.chance(25) else _hosts(draw, most=2)
    secret = draw.one_of({CERTIFICATE: 7, ABSENT: 2, "": 1})
    return {**({"hosts": hosts} if hosts else {}), **({"secretName": secret} if secret else {})}

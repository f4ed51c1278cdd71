"""Sets of Traefik's IngressRoutes and IngressRouteTCPs: rules of a grammar, and what Traefik refuses.

The law: no rule matches the names of another set, so that requests can judge. A matcher that does not look at the host
is true for one of rules.REQUESTS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from tests.differential.ingress_sets import CLASS_ANNOTATION
from tests.differential.rules import Rule, may_match
from tests.differential.sets import ABSENT, FOREIGN, WEB, Draw, Manifest, manifest
from tests.differential.universe import HOSTS, STRANGE, in_zone

ELSEWHERE: Final = "elsewhere.example.net"
_VERSION: Final = "traefik.io/v1alpha1"
_BROKEN: Final = (
    "Host(", "Host()", "Host({})", "Nowhere({})", "Host({}) &&", "Host({}) & Host({})", "Host({}) or PathPrefix(`/`)",
    "Host({}) Host({})", "!", "Host({}, {})", "HoSt({})", "Host(`bücher.example.org`)", "HostRegexp(`[`)",
    "PathPrefix(`api`)", "Host({}))", "HostSNI({})",
)  # fmt: skip
"""What Traefik refuses in one syntax or in both."""


_ALWAYS: Final = ("ClientIP(`127.0.0.0/8`)", "HostSNIRegexp(`.`)", "ALPN(`http/1.1`)")
"""True for every request of a judge by TLS."""


def make_ingress_routes(draw: Draw) -> Iterator[Manifest]:
    """One to three IngressRoutes."""
    for number in range(draw.one_of({1: 4, 2: 3, 3: 1})):
        yield _ingress_route(draw, f"route-{number}")


def make_ingress_route_tcps(draw: Draw) -> Iterator[Manifest]:
    """One to three IngressRouteTCPs; with an IngressRoute for the same host, one of the two would be shadowed."""
    for number in range(draw.one_of({1: 4, 2: 3, 3: 1})):
        yield _ingress_route_tcp(draw, f"route-{number}")


def _ingress_route(draw: Draw, name: str) -> Manifest:
    spec: dict[str, Any] = {"routes": [_route(draw) for _ in range(draw.one_of({1: 5, 2: 2, 3: 1}))]}
    point = draw.one_of({"": 5, "web": 3, "websecure": 3, ABSENT: 1})
    if point:
        spec["entryPoints"] = [point]
    if point == "websecure" or (point == "" and draw.chance(30)):
        spec["tls"] = {}
    return manifest(_VERSION, "IngressRoute", name, draw.namespace(), spec=spec, annotations=_annotations(draw))


def _annotations(draw: Draw) -> dict[str, str]:
    chosen = draw.one_of({"": 6, draw.terms.ingress_class: 3, FOREIGN: 1})
    return {CLASS_ANNOTATION: chosen} if chosen else {}


def _route(draw: Draw) -> Manifest:
    syntax = draw.one_of({"": 6, "v3": 2, "v2": 2})
    route: Manifest = {"kind": "Rule", "match": _rule(draw, syntax)}
    if syntax:
        route["syntax"] = syntax
    match draw.one_of({"one": 90, "no Service": 4, "none": 2, "middleware": 4}):
        case "none":
            pass
        case "middleware":
            route |= {"services": [{"name": WEB, "port": 80}], "middlewares": [{"name": ABSENT}]}
        case backend:
            route["services"] = [{"name": WEB if backend == "one" else ABSENT, "port": 80}]
    return route


def _rule(draw: Draw, syntax: str) -> str:
    if draw.chance(8):
        return draw.random.choice(_BROKEN).replace("{}", _quoted(draw, _host(draw)))
    if not syntax and draw.chance(3):
        return f"Host({_quoted(draw, _host(draw))}, {_quoted(draw, _host(draw))})"
    rule = _either(draw, syntax, depth=2)
    if may_match(Rule(rule, syntax), ELSEWHERE):
        pattern = rf"^(.+\.)?{re.escape(draw.zone)}$" if syntax != "v2" else f"{{any:(.+\\.)?{re.escape(draw.zone)}}}"
        return f"({rule}) && HostRegexp(`{pattern}`)"
    return rule


def _either(draw: Draw, syntax: str, *, depth: int) -> str:
    if not depth:
        return _matcher(draw, syntax)
    match draw.one_of({"matcher": 5, "and": 3, "or": 2, "not": 1}):
        case "matcher":
            return _matcher(draw, syntax)
        case "not":
            return f"!{_grouped(_either(draw, syntax, depth=depth - 1))}"
        case operator:
            parts = [_either(draw, syntax, depth=depth - 1) for _ in range(draw.one_of({2: 4, 3: 1}))]
            # Without parentheses, the parts of a part may belong to another operator: that is the grammar's matter.
            joined = [_grouped(part) if draw.chance(70) else part for part in parts]
            return (" && " if operator == "and" else draw.random.choice((" || ", "||"))).join(joined)


def _grouped(rule: str) -> str:
    return f"({rule})" if "&&" in rule or "||" in rule else rule


def _matcher(draw: Draw, syntax: str) -> str:
    match draw.one_of({"host": 65, "regexp": 8, "path": 18, "method": 4, "header": 5}):
        case "host":
            hosts = [_quoted(draw, _host(draw)) for _ in range(draw.one_of({1: 3, 2: 1}) if syntax == "v2" else 1)]
            name = draw.one_of({"Host": 10, "HOST": 1, "host": 1, "HostHeader" if syntax == "v2" else "Host": 1})
            return f"{name}({', '.join(hosts)})"
        case "regexp":
            host = in_zone(draw.random.choice(("a", "x.a")), draw.zone)
            pattern = f"{{sub:[a-z]+}}.{host}" if syntax == "v2" else rf"^[a-z]+\.{re.escape(host)}$"
            return f"HostRegexp(`{pattern}`)"
        case "path":
            path = draw.random.choice(("/", "/api", "/static"))
            return f"{draw.one_of({'PathPrefix': 2, 'Path': 1})}({_quoted(draw, path)})"
        case "method":
            return "Method(`GET`)"
        case _:
            return "Headers(`X-Test`, `yes`)" if syntax == "v2" else "Header(`X-Test`, `yes`)"


def _quoted(draw: Draw, text: str) -> str:
    return f'"{text}"' if draw.chance(20) else f"`{text}`"


def _host(draw: Draw) -> str:
    host = in_zone(draw.random.choice(HOSTS if draw.chance(90) else STRANGE), draw.zone)
    match draw.one_of({"": 90, "upper": 6, "dot": 4}):
        case "upper":
            return host.upper()
        case "dot":
            return f"{host}."
    return host


def _ingress_route_tcp(draw: Draw, name: str) -> Manifest:
    """Without a `*`, which would take all TLS connections."""
    spec: dict[str, Any] = {"routes": [_route_tcp(draw) for _ in range(draw.one_of({1: 5, 2: 2}))]}
    spec["entryPoints"] = [draw.one_of({"websecure": 9, ABSENT: 1})]
    if not draw.chance(10):
        spec["tls"] = {"passthrough": True} if draw.chance(80) else {}
    return manifest(_VERSION, "IngressRouteTCP", name, draw.namespace(), spec=spec, annotations=_annotations(draw))


def _route_tcp(draw: Draw) -> Manifest:
    rule = " || ".join(f"HostSNI({_quoted(draw, _host(draw))})" for _ in range(draw.one_of({1: 3, 2: 1})))
    if draw.chance(20):
        rule = (
            f"({rule}) && {draw.random.choice(('ClientIP(`127.0.0.0/8`)', 'HostSNIRegexp(`.`)', 'ALPN(`http/1.1`)'))}"
        )
    if draw.chance(5):
        rule = draw.random.choice(_BROKEN).replace("{}", _quoted(draw, _host(draw)))
    service = {"name": WEB if draw.chance(92) else ABSENT, "port": 80}
    return {"match": rule, "services": [service]}

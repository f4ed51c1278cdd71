"""The table: every kind of objects whose hostnames can be read without a relation to other objects.

The law: data only, one row for each kind. A kind with relations of its own has a package: gateway, istio, external_dns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dnsproxy.dns.names import Reach
from dnsproxy.sources.described.admission import admitting_routers, refused_by_contour, refused_by_routers
from dnsproxy.sources.described.classes import class_of_annotation, class_of_contour, routers_of
from dnsproxy.sources.described.field_path import first_text, parse_path, values_at
from dnsproxy.sources.described.host_readers import read_openshift, read_plain, traefik_http, traefik_tcp
from dnsproxy.sources.described.kind import DescribedKind, HostField, watched

TRAEFIK: Final = "traefik"
OPENSHIFT: Final = "openshift"
CONTOUR: Final = "contour"

_TRAEFIK_CONTROLLER: Final = "traefik.io/ingress-controller"
_TRAEFIK_RULES: Final = (
    "https://doc.traefik.io/traefik/v3.7/reference/routing-configuration/{}/routing/rules-and-priority/"
)
_BALANCER: Final = parse_path("loadBalancer.ingress[*]")


def _balancer_of_contour(status: Any) -> Iterator[str]:
    for point in values_at(status, _BALANCER):
        for field in ("ip", "hostname"):
            text = first_text(point, (field,))
            if text:
                yield text


def _balancer_of_routers(status: Any) -> Iterator[str]:
    for router in admitting_routers(status):
        text = first_text(router, ("routerCanonicalHostname",))
        if text:
            yield text


def _traefik(kind: str, group: str, resource: str, hosts: HostField, rules: str) -> DescribedKind:
    return DescribedKind(
        source=TRAEFIK,
        watched=watched(kind, group, ("v1alpha1",), resource),
        hosts=(hosts,),
        classes=class_of_annotation,
        controller=_TRAEFIK_CONTROLLER,
        wildcards=Reach.ONE_LABEL,
        rule="since Traefik 3.7, in v3 syntax: “A wildcard matches exactly one subdomain label”",
        link=_TRAEFIK_RULES.format(rules),
    )


_SPEC: Final = parse_path("spec")
_OLD_GROUP: Final = "traefik.containo.us"
"""Until Traefik 2.10; Traefik 3 does not read it."""

KINDS: Final = (
    _traefik("IngressRoute", "traefik.io", "ingressroutes", HostField(_SPEC, traefik_http()), "http"),
    _traefik("IngressRouteTCP", "traefik.io", "ingressroutetcps", HostField(_SPEC, traefik_tcp()), "tcp"),
    _traefik("IngressRoute of containo.us", _OLD_GROUP, "ingressroutes", HostField(_SPEC, traefik_http("v2")), "http"),
    _traefik(
        "IngressRouteTCP of containo.us", _OLD_GROUP, "ingressroutetcps", HostField(_SPEC, traefik_tcp("v2")), "tcp"
    ),
    DescribedKind(
        source=OPENSHIFT,
        watched=watched("Route", "route.openshift.io", ("v1",), "routes"),
        hosts=(HostField(parse_path("spec"), read_openshift),),
        classes=routers_of,
        refusal=refused_by_routers,
        points=_balancer_of_routers,
        wildcards=Reach.ONE_LABEL,
        rule="wildcardPolicy Subdomain: for the host www.acme.test, “the router should support requests for "
        "*.acme.test”; its pattern takes one label",
        link="https://github.com/openshift/api/blob/master/route/v1/types.go",
    ),
    DescribedKind(
        source=CONTOUR,
        watched=watched("HTTPProxy", "projectcontour.io", ("v1",), "httpproxies"),
        hosts=(HostField(parse_path("spec.virtualhost.fqdn"), read_plain),),
        classes=class_of_contour,
        controller="projectcontour.io/",
        refusal=refused_by_contour,
        points=_balancer_of_contour,
        wildcards=Reach.ONE_LABEL,
        rule="since Contour 1.20, by the same pattern as an Ingress: it “will match foo.projectcontour.io but not "
        "foo.bar.projectcontour.io”",
        link="https://github.com/projectcontour/contour/blob/v1.33.8/changelogs/CHANGELOG-v1.15.0.md",
    ),
)

SOURCES: Final = tuple(dict.fromkeys(kind.source for kind in KINDS))
"""The values of `--source` with described kinds."""


def kinds_of(source: str) -> tuple[DescribedKind, ...]:
    """The rows of one value of `--source`."""
    return tuple(kind for kind in KINDS if kind.source == source)

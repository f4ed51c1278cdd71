"""Why Contour serves other hostnames of HTTPProxies than Switchback claims.

The law: pure; each sentence is in the guide. https://projectcontour.io/docs/1.33/config/inclusion-delegation/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dnsproxy.hostnames.claims import Claim
from tests.differential.common_reasons import rejected_label
from tests.differential.contour_proxy_sets import OWN_ANNOTATION
from tests.differential.contour_serve import CLASS
from tests.differential.differences import Explanation, Omission, Reasons, find_object, of_kind
from tests.differential.ingress_sets import CLASS_ANNOTATION
from tests.differential.sets import Manifest, ObjectSet
from tests.differential.universe import covers

_MISSING: Final = "missing"
_FOUND: Final = "found"


def is_read(proxy: Manifest) -> bool:
    """Whether Contour takes the object into account, by its class."""
    annotations = proxy["metadata"].get("annotations", {})
    annotated = next((annotations[key] for key in (OWN_ANNOTATION, CLASS_ANNOTATION) if key in annotations), "")
    return (annotated or proxy["spec"].get("ingressClassName", "")) == CLASS


def _has_bad_route(proxy: Manifest) -> bool:
    routes = proxy["spec"].get("routes", ())
    return not all(one["prefix"].startswith("/") for route in routes for one in route.get("conditions", ()))


def _routes(objects: ObjectSet, proxy: Manifest, above: tuple[Manifest, ...] = ()) -> Iterator[str]:
    """The routes below a proxy: those of services, and those that answer 502 for a missing include."""
    if proxy in above or _has_bad_route(proxy):
        return
    yield from (_FOUND for _ in proxy["spec"].get("routes", ()))
    for include in proxy["spec"].get("includes", ()):
        namespace = include.get("namespace", proxy["metadata"]["namespace"])
        part = find_object(objects, "HTTPProxy", namespace, include["name"])
        if part is not None and is_read(part) and "virtualhost" not in part["spec"]:
            yield from _routes(objects, part, (*above, proxy))
        elif include.get("conditions"):
            yield _MISSING


def _has_no_route(objects: ObjectSet, claim: Claim) -> bool:
    proxy = find_object(objects, "HTTPProxy", claim.origin.namespace, claim.origin.name)
    assert proxy is not None, claim
    return "tcpproxy" not in proxy["spec"] and not list(_routes(objects, proxy))


def _roots(objects: ObjectSet, name: str) -> Iterator[tuple[Manifest, bool]]:
    """The roots whose host covers a name by any number of labels, and whether it is more than one label."""
    for proxy in of_kind(objects, "HTTPProxy"):
        fqdn = proxy["spec"].get("virtualhost", {}).get("fqdn", "")
        if is_read(proxy) and covers(fqdn, name):
            yield proxy, not covers(fqdn, name, labels="one")


def _is_tunnelled(objects: ObjectSet, name: str) -> bool:
    return any(is_deep and "tcpproxy" in proxy["spec"] for proxy, is_deep in _roots(objects, name))


def _is_tunnelled_alone(objects: ObjectSet, name: str) -> bool:
    return any("tcpproxy" in proxy["spec"] and _has_bad_route(proxy) for proxy, _ in _roots(objects, name))


def _lacks_include(objects: ObjectSet, name: str) -> bool:
    return any(is_deep and _MISSING in _routes(objects, proxy) for proxy, is_deep in _roots(objects, name))


REASONS: Final = Reasons(
    explanations=(
        Explanation(
            "Switchback claims the host of an HTTPProxy whose includes have no route; Contour does not serve it.",
            _has_no_route,
        ),
    ),
    omissions=(
        Omission(
            "A wildcard of an HTTPProxy counts for one label; with `tcpproxy`, Contour serves any number of labels.",
            _is_tunnelled,
        ),
        Omission(
            "A wildcard of an HTTPProxy counts for one label; where an include is missing, Contour answers 502 for any "
            "number of labels.",
            _lacks_include,
        ),
        Omission(
            "Switchback claims no host of an HTTPProxy with an invalid route; Contour serves its `tcpproxy`.",
            _is_tunnelled_alone,
        ),
        rejected_label("Contour"),
    ),
)
"""With `--source-class contour=CLASS` at Switchback and `--ingress-class-name` at Contour."""

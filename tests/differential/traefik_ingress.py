"""Why Traefik serves other hosts of Ingresses than Switchback claims.

The law: pure; each sentence is in the guide.
https://doc.traefik.io/traefik/reference/routing-configuration/kubernetes/ingress/
"""

from __future__ import annotations

from typing import Any, Final

from dnsproxy.hostnames.claims import Claim
from tests.differential.common_reasons import rejected_label
from tests.differential.differences import Explanation, Omission, Reasons, find_object, of_kind
from tests.differential.ingress_sets import CLASS_ANNOTATION
from tests.differential.sets import FOREIGN, WEB, Manifest, ObjectSet
from tests.differential.universe import covers

_PORTS: Final = ({"number": 80}, {"name": "http"})
"""The port of the Services of all sets."""


def _rules(ingress: Manifest) -> list[dict[str, Any]]:
    return list(ingress["spec"].get("rules", ()))


def _rules_for(objects: ObjectSet, claim: Claim) -> list[dict[str, Any]]:
    """The rules of the claim's object that have its host."""
    ingress = find_object(objects, "Ingress", claim.origin.namespace, claim.origin.name)
    assert ingress is not None, claim
    return [rule for rule in _rules(ingress) if rule.get("host") == claim.hostname]


def _has_backend(path: dict[str, Any]) -> bool:
    service = path["backend"].get("service")
    return service is not None and service["name"] == WEB and service["port"] in _PORTS


def _is_in_tls_alone(objects: ObjectSet, claim: Claim) -> bool:
    return not _rules_for(objects, claim)


def _has_no_path(objects: ObjectSet, claim: Claim) -> bool:
    rules = _rules_for(objects, claim)
    return bool(rules) and not any("http" in rule for rule in rules)


def _has_no_service(objects: ObjectSet, claim: Claim) -> bool:
    paths = [path for rule in _rules_for(objects, claim) for path in rule.get("http", {}).get("paths", ())]
    return bool(paths) and not any(map(_has_backend, paths))


def _is_foreign(objects: ObjectSet, claim: Claim) -> bool:  # noqa: ARG001  # the form of all explanations
    return claim.terms.ingress_class == FOREIGN


def _class_of(ingress: Manifest) -> str | None:
    annotation = ingress["metadata"].get("annotations", {}).get(CLASS_ANNOTATION)
    named: str | None = ingress["spec"].get("ingressClassName", annotation)
    return named


def _is_classless(objects: ObjectSet, name: str) -> bool:
    return any(
        covers(rule.get("host", ""), name, labels="one")
        for ingress in of_kind(objects, "Ingress")
        if _class_of(ingress) is None
        for rule in _rules(ingress)
    )


FOREIGN_CLASS: Final = "Without --ingress-class, Switchback claims the hosts of every class that has an IngressClass."
CLASSLESS: Final = (
    "With --ingress-class, Switchback claims an Ingress without a class only if the default class is named."
)

_CLAIMED: Final = (
    Explanation(
        "With `--tls-hosts all`, Switchback claims the hosts of TLS sections; Traefik routes only those of rules.",
        _is_in_tls_alone,
    ),
    Explanation("Switchback claims the host of a rule without paths; Traefik has no route for it.", _has_no_path),
    Explanation(
        "Switchback reads no backends: it claims a host whose Service or port does not exist, or whose backend is "
        "a resource; Traefik drops such a path.",
        _has_no_service,
    ),
)
_SERVED: Final = (rejected_label("Traefik"),)

FILTERED: Final = Reasons(_CLAIMED, (*_SERVED, Omission(CLASSLESS, _is_classless)))
"""With `--ingress-class` and `--tls-hosts all`."""
UNFILTERED: Final = Reasons((*_CLAIMED, Explanation(FOREIGN_CLASS, _is_foreign)), _SERVED)
"""With `--tls-hosts all` alone."""

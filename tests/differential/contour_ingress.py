"""Why Contour serves other hosts of Ingresses than Switchback claims.

The law: pure but for name_second_class(); each sentence is in the guide.
https://projectcontour.io/docs/1.33/config/ingress/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from dnsproxy.hostnames.claims import Claim
from tests.differential.common_reasons import rejected_label
from tests.differential.contour_serve import CLASS
from tests.differential.differences import Explanation, Omission, Reasons, find_object, of_kind
from tests.differential.ingress_sets import CLASS_ANNOTATION
from tests.differential.sets import CERTIFICATE, FOREIGN, WEB, Draw, Manifest, ObjectSet
from tests.differential.universe import covers
from tests.kit.apiserver import ApiServer

ALLOW_HTTP: Final = "kubernetes.io/ingress.allow-http"
_PORTS: Final = ({"number": 80}, {"name": "http"})


def refuse_http(draw: Draw, ingresses: Iterator[Manifest]) -> Iterator[Manifest]:
    """Some of the Ingresses are for HTTPS alone."""
    for one in ingresses:
        if draw.chance(10):
            one["metadata"].setdefault("annotations", {})[ALLOW_HTTP] = "false"
        yield one


def name_second_class(server: ApiServer, sets: Iterable[ObjectSet]) -> None:
    """Give Ingresses of some sets a second class by an annotation, which the API server accepts only as a change."""
    for one in sets:
        for number, ingress in enumerate(of_kind(one, "Ingress")):
            if "ingressClassName" in ingress["spec"] and (one.number + number) % 6 == 0:
                annotation = {CLASS_ANNOTATION: FOREIGN if one.number % 4 == 0 else CLASS}
                metadata = ingress["metadata"]
                patch = {"metadata": {"annotations": annotation}}
                server.patch_ingress(metadata["name"], patch, namespace=metadata["namespace"])
                metadata["annotations"] = _annotations(ingress) | annotation


def class_at_contour(ingress: Manifest) -> str | None:
    """The class by which Contour goes."""
    return _annotations(ingress).get(CLASS_ANNOTATION) or ingress["spec"].get("ingressClassName")


def _annotations(ingress: Manifest) -> dict[str, str]:
    return dict(ingress["metadata"].get("annotations", {}))


def _ingress_of(objects: ObjectSet, claim: Claim) -> Manifest:
    found = find_object(objects, "Ingress", claim.origin.namespace, claim.origin.name)
    assert found is not None, claim
    return found


def _rules(objects: ObjectSet, claim: Claim) -> list[list[dict[str, Any]]]:
    """The backends of each rule for the claim's host."""
    rules = _ingress_of(objects, claim)["spec"].get("rules", ())
    mine = (rule for rule in rules if rule.get("host") == claim.hostname)
    return [[path["backend"] for path in rule.get("http", {}).get("paths", ())] for rule in mine]


def _has_backend(rules: list[list[dict[str, Any]]]) -> bool:
    services = [one.get("service", {}) for backends in rules for one in backends]
    return any(one.get("name") == WEB and one["port"] in _PORTS for one in services)


def _is_only_in_tls(objects: ObjectSet, claim: Claim) -> bool:
    return not _rules(objects, claim)


def _has_no_path(objects: ObjectSet, claim: Claim) -> bool:
    rules = _rules(objects, claim)
    return bool(rules) and not any(rules)


def _lacks_services(objects: ObjectSet, claim: Claim) -> bool:
    rules = _rules(objects, claim)
    return any(rules) and not _has_backend(rules)


def _lacks_certificate(objects: ObjectSet, claim: Claim) -> bool:
    """A certificate in any Ingress of the class serves the host."""
    return _annotations(_ingress_of(objects, claim)).get(ALLOW_HTTP) == "false" and not any(
        claim.hostname in section.get("hosts", ())
        for ingress in of_kind(objects, "Ingress")
        for section in ingress["spec"].get("tls", ())
        if class_at_contour(ingress) == CLASS and section.get("secretName") == CERTIFICATE
    )


def _is_of_another_class(objects: ObjectSet, claim: Claim) -> bool:
    return class_at_contour(_ingress_of(objects, claim)) != CLASS


def _is_annotated_with_class(objects: ObjectSet, name: str) -> bool:
    return any(
        covers(rule.get("host", ""), name, labels="one")
        for one in of_kind(objects, "Ingress")
        if class_at_contour(one) == CLASS != one["spec"].get("ingressClassName", CLASS)
        for rule in one["spec"].get("rules", ())
    )


_TWO_CLASSES: Final = (
    "Of an Ingress with one class in the field and another in the annotation, Switchback takes the field, as Traefik "
    "does, and Contour the annotation."
)

REASONS: Final = Reasons(
    explanations=(
        Explanation(
            "With `--tls-hosts all`, Switchback claims the hosts of TLS sections; Contour serves only those of rules.",
            _is_only_in_tls,
        ),
        Explanation("Switchback claims the host of a rule without paths; Contour does not serve it.", _has_no_path),
        Explanation(
            "Switchback reads no backends: it claims a host whose Service or port does not exist, or whose backend is "
            "a resource; Contour drops such a path.",
            _lacks_services,
        ),
        Explanation(
            f"Switchback claims a host without HTTP (`{ALLOW_HTTP}`); Contour does not serve it if its certificate is "
            "missing.",
            _lacks_certificate,
        ),
        Explanation(_TWO_CLASSES, _is_of_another_class),
    ),
    omissions=(
        Omission(_TWO_CLASSES, _is_annotated_with_class),
        rejected_label("Contour"),
    ),
)
"""With `--ingress-class` and `--tls-hosts all` at Switchback and `--ingress-class-name` at Contour."""

"""What two objects have in common that one installation made."""

from __future__ import annotations

import pytest

from dnsproxy.operate.observe.owners import backend_of, gateway_owner, owners_of
from sidecar.kubernetes.structs.metadata import LabelledMetadata

HELM = {"meta.helm.sh/release-name": "nginx", "meta.helm.sh/release-namespace": "web"}
INSTANCE = {"app.kubernetes.io/instance": "nginx", "app.kubernetes.io/name": "ingress-nginx"}


@pytest.mark.parametrize(
    ("labels", "annotations", "owners"),
    [
        pytest.param(None, None, set(), id="none"),
        pytest.param({}, HELM, {"Helm release web/nginx"}, id="Helm"),
        pytest.param({}, {"meta.helm.sh/release-name": "nginx"}, set(), id="half of Helm"),
        pytest.param(INSTANCE, {}, {"instance nginx of ingress-nginx"}, id="an instance"),
        pytest.param({"app.kubernetes.io/name": "ingress-nginx"}, {}, set(), id="a name alone"),
        pytest.param({"app.kubernetes.io/instance": "", "app.kubernetes.io/name": ""}, {}, set(), id="empty labels"),
        pytest.param(
            {"gateway.networking.k8s.io/gateway-name": "public"}, {}, {"Gateway web/public"}, id="of a Gateway"
        ),
    ],
)
def test_only_marks_of_an_installer_count(
    labels: dict[str, str] | None, annotations: dict[str, str] | None, owners: set[str]
) -> None:
    metadata = LabelledMetadata("a", "web", labels=labels, annotations=annotations)
    assert owners_of(metadata) == owners


def test_a_gateway_owns_what_carries_its_label_in_its_namespace() -> None:
    of = LabelledMetadata("a", "infra", labels={"gateway.networking.k8s.io/gateway-name": "public"})
    assert owners_of(of) == {gateway_owner("infra", "public")}
    assert owners_of(of) != {gateway_owner("web", "public")}


@pytest.mark.parametrize(
    ("annotations", "backend"),
    [(None, None), ({}, None), ({"switchback.dev/backend": "a/b"}, "a/b"), ({"switchback.dev/backend": ""}, "")],
    ids=["no annotations", "others", "annotated", "empty"],
)
def test_the_annotation_is_taken_as_it_is(annotations: dict[str, str] | None, backend: str | None) -> None:
    assert backend_of(LabelledMetadata("a", annotations=annotations)) == backend


def test_no_annotation_is_kept_that_is_longer_than_names_are() -> None:
    long = "a" * 240_000
    annotated = LabelledMetadata("a", annotations={"switchback.dev/backend": long, **dict.fromkeys(HELM, long)})
    backend = backend_of(annotated)
    assert backend is not None
    assert len(backend) < 400
    assert all(len(one) < 400 for one in owners_of(annotated))
    longest = f"{'n' * 63}/{'s' * 253}"
    assert backend_of(LabelledMetadata("a", annotations={"switchback.dev/backend": f" {longest}\n"})) == longest

"""Owners: what two objects have in common that one installation made, and the annotation that names a Service.

The law: pure. Only marks that an installer sets, never a name that a program happens to have: the annotations of Helm,
the two standard labels of an instance, and the Gateway API's label for what belongs to a Gateway.
https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/
https://gateway-api.sigs.k8s.io/geps/gep-1762/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dnsproxy.operate.decide.controllers import BACKEND
from sidecar.kubernetes.structs.metadata import LabelledMetadata
from sidecar.values.text import cut

_RELEASE: Final = "meta.helm.sh/release-name"
_RELEASE_NAMESPACE: Final = "meta.helm.sh/release-namespace"
_INSTANCE: Final = "app.kubernetes.io/instance"
_NAME: Final = "app.kubernetes.io/name"
_LONGEST: Final = 320
"""Characters, more than a namespace and a name have: an annotation may have 256 KiB, and is kept, logged and shown."""
_GATEWAY: Final = "gateway.networking.k8s.io/gateway-name"


def backend_of(metadata: LabelledMetadata) -> str | None:
    """The text of the annotation with the Service of a controller, cut where it can name none."""
    text = (metadata.annotations or {}).get(BACKEND)
    return None if text is None else cut(text.strip(), _LONGEST)


def owners_of(metadata: LabelledMetadata) -> frozenset[str]:
    """The owners of an object, for display and comparison: `Helm release web/nginx`."""
    return frozenset(_owners(metadata))


def gateway_owner(namespace: str, name: str) -> str:
    """The owner of what belongs to a Gateway."""
    return f"Gateway {namespace}/{name}"


def _owners(metadata: LabelledMetadata) -> Iterator[str]:
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    if annotations.get(_RELEASE) and annotations.get(_RELEASE_NAMESPACE):
        yield cut(f"Helm release {annotations[_RELEASE_NAMESPACE]}/{annotations[_RELEASE]}", _LONGEST)
    if labels.get(_INSTANCE) and labels.get(_NAME):
        yield f"instance {labels[_INSTANCE]} of {labels[_NAME]}"
    if labels.get(_GATEWAY) and metadata.namespace:
        yield gateway_owner(metadata.namespace, labels[_GATEWAY])

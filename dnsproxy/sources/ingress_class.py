"""IngressClass: which class an Ingress gets that names none.

The law: one class is the default, whatever the order in which the classes came: that which the API server itself
would choose, so that both agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from sidecar.kubernetes.objects import Collection, ObjectMeta


class _Annotations(msgspec.Struct, frozen=True, gc=False):
    is_default: str | None = msgspec.field(default=None, name="ingressclass.kubernetes.io/is-default-class")


class _Metadata(ObjectMeta, frozen=True, gc=False, rename="camel"):
    annotations: _Annotations | None = None


class IngressClass(msgspec.Struct, frozen=True, gc=False):
    """The fields of an IngressClass that say whether it is the default."""

    metadata: _Metadata

    @property
    def is_default(self) -> bool:
        """Whether the class is marked as the default; the API server knows no other spelling of true."""
        annotations = self.metadata.annotations
        return annotations is not None and annotations.is_default == "true"


INGRESS_CLASSES: Final = Collection(
    "IngressClass", "/apis/networking.k8s.io/v1/ingressclasses", IngressClass, optional=True
)
"""Where they can't be seen, none is the default. RBAC: list and watch ingressclasses.networking.k8s.io."""


def default_class(classes: Iterable[IngressClass]) -> str | None:
    """The name of the default class; of several, the newest, then the first by name.

    https://github.com/kubernetes/kubernetes/blob/v1.34.4/plugin/pkg/admission/network/defaultingressclass/admission.go
    """
    marked = sorted((one for one in classes if one.is_default), key=lambda one: one.metadata.name)
    if not marked:
        return None
    return max(marked, key=lambda one: one.metadata.creation_timestamp or "").metadata.name

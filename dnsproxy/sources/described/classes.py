"""Classes: which controller an object of a described kind is for, by that kind's own idea of a class.

The law: pure. An object that names no class is for the IngressClass of its controller, if there is exactly one, or for
the default among several. Without a default, each controller may serve it, so it has no class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

import msgspec

from dnsproxy.sources.annotations import AnnotatedMetadata, AnnotationFields
from dnsproxy.sources.class_names import CLASS_ANNOTATION
from dnsproxy.sources.described.admission import admitting_routers
from dnsproxy.sources.described.field_path import FieldPath, first_text
from dnsproxy.sources.ingress import INGRESS_CLASSES, IngressClass, default_class
from sidecar.kubernetes.objects import Collection

CONTOUR_ANNOTATION: Final = "projectcontour.io/ingress.class"


class _Annotations(AnnotationFields, frozen=True, gc=False):
    ingress_class: str | None = msgspec.field(default=None, name=CLASS_ANNOTATION)
    contour_class: str | None = msgspec.field(default=None, name=CONTOUR_ANNOTATION)


class _Metadata(AnnotatedMetadata, frozen=True, gc=False, rename="camel"):
    annotations: _Annotations | None = None


class DescribedObject(msgspec.Struct, frozen=True, gc=False):
    """Any object: its identity, our annotations and those with a class, and whatever else it has."""

    metadata: _Metadata
    spec: Any = None
    status: Any = None


ClassReader = Callable[[DescribedObject], tuple[str, ...]]
"""The classes that an object is for, the first before the others; none if it names none."""


def class_of_annotation(one: DescribedObject) -> tuple[str, ...]:
    """The annotation of Ingresses, by which Traefik's provider filters, too.

    https://doc.traefik.io/traefik/reference/install-configuration/providers/kubernetes/kubernetes-crd/#opt-providers-kubernetesCRD-ingressClass
    """
    annotations = one.metadata.annotations
    return (annotations.ingress_class,) if annotations is not None and annotations.ingress_class else ()


def class_of_contour(one: DescribedObject) -> tuple[str, ...]:
    """The annotations come before `spec.ingressClassName`.

    https://github.com/projectcontour/contour/blob/v1.33.8/internal/ingressclass/ingressclass.go
    """
    annotations = one.metadata.annotations
    named = None
    if annotations is not None:
        # Contour's own annotation counts also if it is empty.
        named = annotations.ingress_class if annotations.contour_class is None else annotations.contour_class
    named = named or first_text(one.spec, _CLASS_NAME)
    return (named,) if named else ()


_CLASS_NAME: Final[FieldPath] = ("ingressClassName",)


def routers_of(one: DescribedObject) -> tuple[str, ...]:
    """The routers that admit a Route: its classes are what decides which load balancer serves it."""
    names = (first_text(router, ("routerName",)) for router in admitting_routers(one.status))
    return tuple(dict.fromkeys(name for name in names if name))


def classes_for(source: str) -> Collection[IngressClass]:
    """The IngressClasses for a value of `--source`: each watch has a name of its own, the label of its metrics."""
    return replace(INGRESS_CLASSES, kind=f"{source} {INGRESS_CLASSES.kind}")


def class_of_controller(classes: Iterable[IngressClass], controller: str) -> str | None:
    """The class for objects that name none; `controller`: how the name of their controller begins."""
    own = [one for one in classes if one.controller.startswith(controller)]
    return own[0].metadata.name if len(own) == 1 else default_class(own)

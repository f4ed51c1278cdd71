"""Ingress: the hostnames that one networking.k8s.io/v1 Ingress serves.

The law: one object in, claims and rejections out; a bad host harms neither the object's other hosts nor other objects.
https://kubernetes.io/docs/reference/kubernetes-api/networking-resources/ingress-v1/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from sys import intern
from typing import Final

import msgspec

from dnsproxy.dns.names import BadName, parse_hostname
from dnsproxy.hostnames.claims import Claim, Origin, Rejection
from dnsproxy.hostnames.wildcards import reach_in_ingress
from dnsproxy.sources.annotations import MarkedMetadata, MarkFields, Marks, read_marks
from dnsproxy.sources.load_balancer import BalancedStatus, points_of
from sidecar.kubernetes.objects import Collection, ObjectMeta


class _Annotations(MarkFields, frozen=True, gc=False):
    ingress_class: str | None = msgspec.field(default=None, name="kubernetes.io/ingress.class")
    """The way to name a class before spec.ingressClassName; still read by every controller."""


class _Metadata(MarkedMetadata, frozen=True, gc=False, rename="camel"):
    annotations: _Annotations | None = None


class _Rule(msgspec.Struct, frozen=True, gc=False):
    host: str | None = None


class _Tls(msgspec.Struct, frozen=True, gc=False):
    hosts: tuple[str | None, ...] | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    ingress_class_name: str | None = None
    rules: tuple[_Rule | None, ...] | None = None
    tls: tuple[_Tls | None, ...] | None = None


class Ingress(msgspec.Struct, frozen=True, gc=False):
    """The fields of an Ingress that say which hostnames it serves, and by which class."""

    metadata: _Metadata
    spec: _Spec | None = None
    status: BalancedStatus | None = None

    @property
    def class_name(self) -> str | None:
        """The class that the object names itself; None leaves it to the cluster's default."""
        if self.spec is not None and self.spec.ingress_class_name:
            return self.spec.ingress_class_name
        annotations = self.metadata.annotations
        return (annotations.ingress_class if annotations is not None else None) or None


INGRESSES: Final = Collection("Ingress", "/apis/networking.k8s.io/v1/ingresses", Ingress)
"""In all namespaces. RBAC: list and watch ingresses.networking.k8s.io."""


def claims_of(ingress: Ingress, *, tls_only: bool) -> tuple[list[Claim], list[Rejection]]:
    """A claim for each hostname that an Ingress serves, each once, and a rejection for each that is none.

    Hosts of rules and of TLS sections both count, because the solver of an HTTP-01 challenge has a rule alone;
    `tls_only` takes those of TLS sections alone, and of marks. A rule without host means every host, which nobody can
    answer for.
    """
    origin = origin_of(ingress.metadata)
    marks = read_marks(ingress.metadata)
    hostnames, faults = _hostnames_of(ingress, marks, tls_only=tls_only)
    rejections = [Rejection(origin, fault) for fault in faults]
    if marks.bar is not None:
        # One for each name, so that whoever looks for it finds it.
        rejections += [Rejection(origin, f"{name}: it {marks.bar}", marks.ignored) for name in hostnames]
        return [], rejections
    # Interned, because 100,000 objects name the same few.
    ingress_class = intern(ingress.class_name) if ingress.class_name else None
    status = points_of(ingress.status)
    return [
        Claim(
            hostname,
            reach_in_ingress(hostname),
            origin,
            ingress_class=ingress_class,
            target=marks.target,
            status=status,
        )
        for hostname in hostnames
    ], rejections


def origin_of(metadata: ObjectMeta) -> Origin:
    """Where the claims of an Ingress come from."""
    return Origin("Ingress", metadata.name, intern(metadata.namespace or ""), metadata.creation_timestamp or "")


def _hostnames_of(ingress: Ingress, marks: Marks, *, tls_only: bool) -> tuple[dict[str, None], list[str]]:
    """The hostnames in normal form, in the object's order, and what is wrong with it."""
    hostnames: dict[str, None] = {}
    faults = [*marks.faults, *marks.bad_hostnames]
    for host in dict.fromkeys(_hosts_of(ingress, tls_only=tls_only)):
        try:
            hostnames[parse_hostname(host)] = None
        except BadName as error:
            faults.append(str(error))
    hostnames.update(dict.fromkeys(marks.hostnames))
    return hostnames, faults


def _hosts_of(ingress: Ingress, *, tls_only: bool) -> Iterator[str]:
    spec = ingress.spec or _Spec()
    if not tls_only:
        yield from (rule.host for rule in spec.rules or () if rule is not None and rule.host)
    for tls in spec.tls or ():
        if tls is not None:
            yield from (host for host in tls.hosts or () if host)


class _ClassAnnotations(msgspec.Struct, frozen=True, gc=False):
    is_default: str | None = msgspec.field(default=None, name="ingressclass.kubernetes.io/is-default-class")


class _ClassMetadata(ObjectMeta, frozen=True, gc=False, rename="camel"):
    annotations: _ClassAnnotations | None = None


class IngressClass(msgspec.Struct, frozen=True, gc=False):
    """The fields of an IngressClass that say whether it is the default."""

    metadata: _ClassMetadata

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

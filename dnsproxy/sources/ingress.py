"""Ingress: the hostnames that one networking.k8s.io/v1 Ingress serves, and the default IngressClass.

The law: one object in, claims and rejections out; an invalid host affects neither the object's other hosts nor other
objects. The default class is the choice of the API server itself, whatever the order of the classes.
https://kubernetes.io/docs/reference/kubernetes-api/networking-resources/ingress-v1/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from sys import intern
from typing import Final

import msgspec

from dnsproxy.hostnames.claims import Claim, Rejection, Terms, share_terms
from dnsproxy.hostnames.wildcards import reach_in_ingress
from dnsproxy.sources.annotations import (
    AnnotatedMetadata,
    Annotations,
    origin_of,
    read_annotations,
    rejections_of,
)
from dnsproxy.sources.class_names import CLASS_ANNOTATION, refuse_class
from dnsproxy.sources.ingress_hosts import Hosts, TlsHosts, explain_unserved, read_hosts
from dnsproxy.sources.ingress_nginx import CONTROLLERS, NginxFields, additional_hostnames
from dnsproxy.sources.load_balancer import BalancedStatus, points_of
from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable


class _Annotations(NginxFields, frozen=True, gc=False):
    ingress_class: str | None = msgspec.field(default=None, name=CLASS_ANNOTATION)


class _Metadata(AnnotatedMetadata, frozen=True, gc=False, rename="camel"):
    annotations: _Annotations | None = None


class _Http(msgspec.Struct, frozen=True, gc=False):
    """That there are paths is all that counts."""


class _Rule(msgspec.Struct, frozen=True, gc=False):
    host: str | None = None
    http: _Http | None = None


class _Backend(msgspec.Struct, frozen=True, gc=False):
    """That there is one is all that counts."""


class _Tls(msgspec.Struct, frozen=True, gc=False):
    hosts: tuple[str | None, ...] | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    ingress_class_name: str | None = None
    default_backend: _Backend | None = None
    rules: tuple[_Rule | None, ...] | None = None
    tls: tuple[_Tls | None, ...] | None = None


class Ingress(msgspec.Struct, frozen=True, gc=False):
    """The fields of an Ingress that decide its claims.

    Fewer than in sidecar: a change of backends or paths must not cost a decoded object.
    """

    metadata: _Metadata
    spec: _Spec | None = None
    status: BalancedStatus | None = None

    @property
    def class_name(self) -> str | None:
        """The class that the object names; None: the cluster's default class."""
        field = self.spec.ingress_class_name if self.spec is not None else None
        annotations = self.metadata.annotations
        return field or (annotations.ingress_class if annotations is not None else None) or None


INGRESSES: Final = Collection("Ingress", "/apis/networking.k8s.io/v1/ingresses", Ingress)
"""In all namespaces. RBAC: list and watch ingresses.networking.k8s.io."""


def claims_of(
    ingress: Ingress, *, tls_only: bool, tls_hosts: TlsHosts = TlsHosts.RULES, most: int | None = None
) -> tuple[list[Claim], list[Rejection]]:
    """A claim for each hostname that an Ingress serves, each once, and a rejection for each invalid one.

    Of its hosts, which can be 100,000, the first `most` are read: those of rules, then those of TLS sections.

    Hosts of rules count, because the solver of an HTTP-01 challenge has only a rule, and of the hosts of TLS sections
    those that `tls_hosts` names. `tls_only` takes only hosts of TLS sections, and hostnames of our annotations. A rule
    without a host means every host, and claims none. The additional hostnames of ingress-nginx come last, whatever the
    class is (Claim.is_additional).
    """
    origin = origin_of("Ingress", ingress.metadata)
    refusal = refuse_class(ingress.class_name)
    if refusal is not None:
        return [], [Rejection(origin, refusal)]
    annotations = read_annotations(ingress.metadata)
    own = _read_hosts(ingress, tls_only=tls_only, tls_hosts=tls_hosts, most=most)
    hostnames = _with_annotated(own.served, annotations)
    additional, more_faults = _additional_hostnames_of(ingress, most)
    if tls_only:
        additional, more_faults = {name: None for name in additional if name in own.unserved}, []
    faults = [*annotations.faults, *annotations.bad_hostnames, *own.faults, *more_faults]
    rejections = [Rejection(origin, fault) for fault in faults]
    if annotations.exclusion is not None:
        return [], rejections + rejections_of(origin, annotations, dict.fromkeys([*hostnames, *additional]))
    unserved = [name for name in own.unserved if name not in hostnames and name not in additional]
    if unserved:
        rejections.append(Rejection(origin, explain_unserved(unserved), deliberate=True))
    # Interned, because 100,000 objects name the same few.
    ingress_class = intern(ingress.class_name) if ingress.class_name else None
    status = points_of(ingress.status)

    def claim(hostname: str, *, annotated: bool = False, routed: bool = True) -> Claim:
        terms = Terms(
            ingress_class=ingress_class, target=annotations.target, status=status, routed=routed, annotated=annotated
        )
        return Claim(hostname, reach_in_ingress(hostname), origin, share_terms(terms))

    claims = [claim(hostname, annotated=annotated) for hostname, annotated in hostnames.items()]
    # Its own annotation may need a right that the additional hostname does not need.
    claims += [claim(hostname, routed=False) for hostname in additional if hostnames.get(hostname, True)]
    return claims, rejections


def _read_hosts(ingress: Ingress, *, tls_only: bool, tls_hosts: TlsHosts, most: int | None) -> Hosts:
    spec = ingress.spec or _Spec()
    return read_hosts(
        [rule for rule in spec.rules or () if rule is not None],
        (host for tls in spec.tls or () if tls is not None for host in tls.hosts or ()),
        has_default_backend=spec.default_backend is not None,
        tls_only=tls_only,
        tls_hosts=tls_hosts,
        most=most,
    )


def _with_annotated(hosts: Iterable[str], annotations: Annotations) -> dict[str, bool]:
    """The hosts and the hostnames of our annotations, with whether only an annotation has it."""
    hostnames = dict.fromkeys(hosts, False)
    for hostname in annotations.hostnames:
        hostnames.setdefault(hostname, True)
    return hostnames


def _additional_hostnames_of(ingress: Ingress, most: int | None) -> tuple[dict[str, None], list[str]]:
    """None without a rule: then ingress-nginx has no server that an alias could be for."""
    rules = [rule for rule in ((ingress.spec or _Spec()).rules or ()) if rule is not None]
    if not rules:
        return {}, []
    hosts = (rule.host for rule in rules if rule.host and rule.http is not None)
    return additional_hostnames(ingress.metadata.annotations, islice(hosts, most))


def hosts_with_tls(ingress: Ingress, hostnames: Iterable[str]) -> frozenset[str]:
    """Those of an Ingress's hostnames, in normal form, that its TLS sections cover.

    A section without hosts stands for all of them, and a wildcard covers one label.
    """
    sections = [tls for tls in ((ingress.spec or _Spec()).tls or ()) if tls is not None]
    if any(not tls.hosts for tls in sections):
        return frozenset(hostnames)
    named = {host.lower().removesuffix(".") for tls in sections for host in tls.hosts or () if host}
    return frozenset(name for name in hostnames if name in named or f"*.{name.partition('.')[2]}" in named)


class _ClassAnnotations(msgspec.Struct, frozen=True, gc=False):
    is_default: str | None = msgspec.field(default=None, name="ingressclass.kubernetes.io/is-default-class")


class _ClassMetadata(ObjectMeta, frozen=True, gc=False, rename="camel"):
    annotations: _ClassAnnotations | None = None


class IngressClassSpec(msgspec.Struct, frozen=True, gc=False):
    """The controller of an IngressClass."""

    controller: str | None = None


class IngressClass(msgspec.Struct, frozen=True, gc=False):
    """The fields of an IngressClass that decide whether it is the default, and what its controller serves."""

    metadata: _ClassMetadata
    spec: IngressClassSpec | None = None

    @property
    def is_default(self) -> bool:
        """Whether the class is annotated as the default; the API server accepts only `true`."""
        annotations = self.metadata.annotations
        return annotations is not None and annotations.is_default == "true"

    @property
    def controller(self) -> str:
        """The controller that it is for; empty if it names none."""
        return (self.spec.controller or "") if self.spec is not None else ""


INGRESS_CLASSES: Final = Collection(
    "IngressClass", "/apis/networking.k8s.io/v1/ingressclasses", IngressClass, optional=True
)
"""If RBAC hides them, no class is the default, and no controller is known. RBAC: list and watch
ingressclasses.networking.k8s.io."""


def note_classes(known: dict[str, IngressClass], changes: Mapping[str, IngressClass | Unreadable | None]) -> None:
    """Take in changes of IngressClasses, by name; one that cannot be read is none."""
    for name, one in changes.items():
        known.pop(name, None)
        if isinstance(one, IngressClass):
            known[name] = one


def nginx_classes(classes: Iterable[IngressClass]) -> frozenset[str]:
    """The names of the classes of ingress-nginx."""
    return frozenset(one.metadata.name for one in classes if one.controller in CONTROLLERS)


def default_class(classes: Iterable[IngressClass]) -> str | None:
    """The name of the default class; of several, the newest, then the first by name.

    https://github.com/kubernetes/kubernetes/blob/v1.34.4/plugin/pkg/admission/network/defaultingressclass/admission.go
    """
    marked = sorted((one for one in classes if one.is_default), key=lambda one: one.metadata.name)
    if not marked:
        return None
    return max(marked, key=lambda one: one.metadata.creation_timestamp or "").metadata.name

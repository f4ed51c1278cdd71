"""The annotations of external-dns on one object, under its new prefix and its old one.

The law: pure. Each external-dns reads one prefix, and which one runs is not known here: so both count, and of an
annotation under both the newer prefix, as with --enable-legacy-annotation-prefix. An invalid hostname affects no other.
https://kubernetes-sigs.github.io/external-dns/latest/docs/annotations/annotations/
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

import msgspec

from dnsproxy.dns.names import parse_hostnames
from dnsproxy.hostnames.name_limits import too_many
from dnsproxy.sources.annotations import AnnotatedMetadata, AnnotationFields
from dnsproxy.sources.class_names import CLASS_ANNOTATION
from dnsproxy.sources.load_balancer import parse_point
from sidecar.values.text import quoted

PREFIX: Final = "external-dns.kubernetes.io/"
OLD_PREFIX: Final = "external-dns.alpha.kubernetes.io/"
"""Before 0.22, external-dns knows no other."""
HOSTNAME: Final = "hostname"
INTERNAL: Final = "internal-hostname"
TARGET: Final = "target"
PUBLISHED: Final = "switchback.dev/instance"
"""The label of objects that `dnsproxy publish-external-dns` writes: to read them would keep each name for ever."""

_RESPONSIBLE: Final = "dns-controller"
_NODES: Final = ("HostIP", "NodeExternalIP")
"""Values of endpoints-type."""
_MOST_NAMES: Final = 1_000
_MOST_DECLARED: Final = 16


class ExternalDnsFields(AnnotationFields, frozen=True, gc=False):
    """The annotations as text, beside ours."""

    new_hostname: str | None = msgspec.field(default=None, name=PREFIX + HOSTNAME)
    old_hostname: str | None = msgspec.field(default=None, name=OLD_PREFIX + HOSTNAME)
    new_internal: str | None = msgspec.field(default=None, name=PREFIX + INTERNAL)
    old_internal: str | None = msgspec.field(default=None, name=OLD_PREFIX + INTERNAL)
    new_target: str | None = msgspec.field(default=None, name=PREFIX + TARGET)
    old_target: str | None = msgspec.field(default=None, name=OLD_PREFIX + TARGET)
    new_controller: str | None = msgspec.field(default=None, name=PREFIX + "controller")
    old_controller: str | None = msgspec.field(default=None, name=OLD_PREFIX + "controller")
    new_endpoints: str | None = msgspec.field(default=None, name=PREFIX + "endpoints-type")
    old_endpoints: str | None = msgspec.field(default=None, name=OLD_PREFIX + "endpoints-type")
    new_source: str | None = msgspec.field(default=None, name=PREFIX + "ingress-hostname-source")
    old_source: str | None = msgspec.field(default=None, name=OLD_PREFIX + "ingress-hostname-source")
    ingress_class: str | None = msgspec.field(default=None, name=CLASS_ANNOTATION)


class PublishedFields(AnnotationFields, frozen=True, gc=False):
    """The labels: ours, and that of our publisher."""

    instance: str | None = msgspec.field(default=None, name=PUBLISHED)


class ExternalDnsMetadata(AnnotatedMetadata, frozen=True, gc=False, rename="camel"):
    """The identity of an object, our annotations and those of external-dns."""

    annotations: ExternalDnsFields | None = None
    labels: PublishedFields | None = None


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """What an object's annotations ask of external-dns."""

    hostnames: tuple[str, ...] = ()
    """In normal form, each once."""
    internal: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    """Why a hostname was rejected; the other hostnames count."""
    target: str = ""
    """The annotation's text; empty: the object itself decides where its records point."""
    declared: tuple[str, ...] = ()
    """The addresses and hostnames of the annotation `target`, in the form of Terms.declared."""
    refusal: str = ""
    """Why external-dns publishes none of them, to be appended to a hostname; empty if it does."""
    of_nodes: bool = False
    """Whether names of a headless Service point to nodes."""

    @property
    def names(self) -> tuple[str, ...]:
        """The hostnames of both annotations, each once."""
        return tuple(dict.fromkeys((*self.hostnames, *self.internal)))


def read_wanted(
    metadata: ExternalDnsMetadata, *, internal: bool = False, ingress: bool = False, most: int | None = None
) -> Wanted | None:
    """The annotations of an object; None if they name no host. Of its hostnames, the first `most` are read.

    `internal`: whether external-dns reads internal-hostname of this kind; `ingress`: the same of
    ingress-hostname-source.
    """
    fields = metadata.annotations
    if fields is None:
        return None
    given = _newer(fields.new_hostname, fields.old_hostname)
    given_internal = _newer(fields.new_internal, fields.old_internal) if internal else ""
    if not given and not given_internal:
        return None
    faults: list[str] = []
    hostnames = _parse_hostnames(given, HOSTNAME, faults, most=most or _MOST_NAMES)
    inside = _parse_hostnames(given_internal, INTERNAL, faults, most=most or _MOST_NAMES)
    if not hostnames and not inside and not faults:
        return None
    target = _newer(fields.new_target, fields.old_target)
    refusal = _refusal(metadata, fields, ingress=ingress)
    return Wanted(
        hostnames,
        inside,
        tuple(dict.fromkeys(faults)),
        quoted(target) if target else "",
        points_of(target.split(",", _MOST_DECLARED)[:_MOST_DECLARED]) if target else (),
        refusal,
        _newer(fields.new_endpoints, fields.old_endpoints) in _NODES,
    )


def is_published(labels: PublishedFields | None) -> bool:
    """Whether `dnsproxy publish-external-dns` wrote the object with these labels."""
    return labels is not None and labels.instance is not None


def points_of(texts: Iterable[str]) -> tuple[str, ...]:
    """The addresses and hostnames among texts, in normal form, each once; other texts are ignored."""
    return tuple(
        dict.fromkeys(islice(filter(None, (parse_point(text.replace(" ", "")) for text in texts)), _MOST_DECLARED))
    )


def _refusal(metadata: ExternalDnsMetadata, fields: ExternalDnsFields, *, ingress: bool) -> str:
    if is_published(metadata.labels):
        return f"Switchback itself has published it ({PUBLISHED})"
    controller = _newer(fields.new_controller, fields.old_controller, absent=_RESPONSIBLE)
    if controller != _RESPONSIBLE:
        return f"external-dns leaves it to another controller ({PREFIX}controller: {quoted(controller)})"
    source = _newer(fields.new_source, fields.old_source, absent="annotation-only") if ingress else "annotation-only"
    if source.lower() != "annotation-only":
        return f"external-dns takes no annotation ({PREFIX}ingress-hostname-source: {quoted(source)})"
    return ""


def _newer(new: str | None, old: str | None, *, absent: str = "") -> str:
    return new if new is not None else old if old is not None else absent


def _parse_hostnames(text: str, annotation: str, faults: list[str], *, most: int) -> tuple[str, ...]:
    """The valid hostnames of a list; empty items and spaces are ignored, as external-dns does."""
    *parts, rest = text.replace(" ", "").split(",", most)
    if len(parts) == most:
        if rest:
            faults.append(too_many(most))
    else:
        parts.append(rest)
    hostnames, bad_hostnames = parse_hostnames(filter(None, parts))
    faults += [f"{PREFIX}{annotation}: {fault}" for fault in bad_hostnames]
    return tuple(hostnames)

"""Custom kinds: `--source crd:PLURAL.GROUP:PATH`, a row of the table from the command line.

The law: pure; every mistake in the text is reported here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from dnsproxy.dns.names import Reach
from dnsproxy.sources.described.classes import DescribedObject, class_of_annotation
from dnsproxy.sources.described.field_path import parse_path
from dnsproxy.sources.described.host_readers import read_plain
from dnsproxy.sources.described.kind import DescribedKind, HostField, watched
from sidecar.kubernetes.names import LABEL
from sidecar.values.text import quoted

PREFIX: Final = "crd:"
_PLAIN: Final = ("spec", "status")
"""The fields that every DescribedObject has."""
_FORM: Final = "crd:PLURAL.GROUP:PATH[,PATH...], for example crd:sites.example.org:spec.hosts[*]"
_RESOURCE: Final = re.compile(rf"(?P<plural>{LABEL})\.(?P<group>{LABEL}(\.{LABEL})+)")


def parse_custom(text: str) -> DescribedKind:
    """The row of `crd:PLURAL.GROUP:PATH[,PATH...]`. Raises ValueError."""
    resource, colon, places = text.removeprefix(PREFIX).partition(":")
    found = _RESOURCE.fullmatch(resource)
    if found is None or not colon:
        raise ValueError(f"{quoted(text)} is not {_FORM}")
    paths = [parse_path(place) for place in places.split(",")]
    for root in (path[0] for path in paths):
        if root in ("metadata", "kind", "apiVersion"):
            raise ValueError(f"{quoted(text)}: {root} has no hostnames; switchback.dev/hostname is read anyway")
    roots = dict.fromkeys(path[0] for path in paths)
    # Under other names, because a root may be a word of Python's.
    fields = {root: root if root in _PLAIN else f"field{number}" for number, root in enumerate(roots)}
    return DescribedKind(
        source=text,
        watched=watched(resource, found["group"], (), found["plural"], type_=_object_with(fields)),
        hosts=tuple(HostField((fields[path[0]], *path[1:]), read_plain) for path in paths),
        classes=class_of_annotation,
        wildcards=Reach.ANY_LABELS,
        rule="wildcards as in DNS: one or more labels",
        link="https://www.rfc-editor.org/rfc/rfc4592",
    )


def resource_of(text: str) -> str:
    """The `PLURAL.GROUP` of such a text."""
    return text.removeprefix(PREFIX).partition(":")[0]


def _object_with(fields: Mapping[str, str]) -> type[Any]:
    """A DescribedObject with these fields of its object beside those that all have."""
    rows = [(name, Any, msgspec.field(default=None, name=root)) for root, name in fields.items() if root not in _PLAIN]
    return msgspec.defstruct("CustomObject", rows, bases=(DescribedObject,), frozen=True, gc=False)

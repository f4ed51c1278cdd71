"""Parses the flags of `dnsproxy publish-external-dns`: labels, annotations, names.

The law: values that the API server would refuse are refused here, by the same rules
(https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/), and so are the labels and annotations that
the publisher sets itself. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from dnsproxy.publish.configmaps.manifests import MANAGED_BY
from dnsproxy.publish.externaldns.manifests import reserved_annotations
from sidecar.kubernetes.names import LABEL, LONGEST_SUBDOMAIN, SUBDOMAIN
from sidecar.values.text import quoted

MOST: Final = 32
"""The limit of additional labels, and of additional annotations."""

_WORD: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN: Final = re.compile(SUBDOMAIN)
_LABEL: Final = re.compile(LABEL)
_OURS: Final = "switchback.dev/"


def parse_instance(text: str) -> str:
    """A label value that is not empty. Raises ValueError."""
    if not _WORD.fullmatch(text):
        raise ValueError(f"{quoted(text)} is not a label value: 1 to 63 letters, digits, `-`, `_` and `.`")
    return text


def parse_namespace(text: str) -> str:
    """The name of a namespace. Raises ValueError."""
    if not _LABEL.fullmatch(text):
        raise ValueError(f"{quoted(text)} is not the name of a namespace")
    return text


def parse_annotation_prefix(text: str) -> str:
    """`DOMAIN/`. Raises ValueError."""
    domain = text.removesuffix("/")
    if not text.endswith("/") or len(domain) > LONGEST_SUBDOMAIN or not _SUBDOMAIN.fullmatch(domain):
        raise ValueError(f"{quoted(text)} is not a prefix such as external-dns.kubernetes.io/")
    return text


def parse_label(text: str) -> tuple[str, str]:
    """`KEY=VALUE`. Raises ValueError."""
    key, value = _parse_pair(text)
    if value and not _WORD.fullmatch(value):
        raise ValueError(f"{quoted(value)} is not a label value: at most 63 letters, digits, `-`, `_` and `.`")
    return key, value


def parse_annotation(text: str) -> tuple[str, str]:
    """`KEY=VALUE`. Raises ValueError."""
    return _parse_pair(text)


def refuse_reserved(labels: Iterable[str], annotations: Iterable[str], *, prefixes: Iterable[str]) -> list[str]:
    """Why some of these keys are refused, a line for each."""
    ours = reserved_annotations(prefixes)
    return [
        *(f"--label {key}: it marks the owner of the objects" for key in labels if _is_reserved(key, {MANAGED_BY})),
        *(f"--annotation {key}: the publisher sets it" for key in annotations if _is_reserved(key, ours)),
    ]


def _is_reserved(key: str, ours: Iterable[str]) -> bool:
    # `switchback.dev/hostname` on a Service would make our servers answer that hostname.
    return key in ours or key.startswith(_OURS)


def _parse_pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    prefix, slash, name = key.rpartition("/")
    if not equals:
        raise ValueError(f"{quoted(text)} is not KEY=VALUE")
    if not _WORD.fullmatch(name) or (slash and (len(prefix) > LONGEST_SUBDOMAIN or not _SUBDOMAIN.fullmatch(prefix))):
        raise ValueError(f"{quoted(key)} is not a key: [DOMAIN/]NAME")
    return key, value

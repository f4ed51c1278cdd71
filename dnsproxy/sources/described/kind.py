"""A described kind: one row of the table, which says all that is particular to a kind of objects.

The law: values only; contribution.py reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dnsproxy.dns.names import Reach
from dnsproxy.sources.described.classes import ClassReader, DescribedObject
from dnsproxy.sources.described.field_path import FieldPath
from dnsproxy.sources.described.host_readers import HostReader
from dnsproxy.sources.watched_kinds import WatchedKind


@dataclass(frozen=True, slots=True)
class HostField:
    """A place with hostnames."""

    path: FieldPath
    """From the object's root."""
    read: HostReader


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedKind:
    """A kind of objects that name hosts."""

    source: str
    """The value of `--source` that it belongs to."""
    watched: WatchedKind
    hosts: tuple[HostField, ...]
    classes: ClassReader
    controller: str = ""
    """How the controller of its IngressClasses begins; empty: objects that name no class have none."""
    refusal: Callable[[Any], str | None] | None = None
    """Why the controller does not serve an object, by its status; None: the status does not say."""
    points: Callable[[Any], Iterator[str]] | None = None
    """The addresses and hostnames of the load balancer in a status."""
    wildcards: Reach
    """What `*.NAME` covers."""
    rule: str
    """What its documentation says about wildcards, in a sentence for the guide."""
    link: str
    """Where it says so."""

    @property
    def name(self) -> str:
        """The kind, as `dnsproxy explain` shows it."""
        return self.watched.kind


def watched(
    kind: str, group: str, versions: tuple[str, ...], resource: str, *, type_: type[Any] = DescribedObject
) -> WatchedKind:
    """Where a described kind is."""
    return WatchedKind(kind, group, versions, resource, type_)

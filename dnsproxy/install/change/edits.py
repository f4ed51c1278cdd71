"""Edits: what an install or an uninstall would do to a cluster, as one value.

The law: each ConfigMap is one write, whole or not at all, so whoever is killed between two of them leaves a cluster
whose DNS answers; the order is that of writing. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from dnsproxy.cluster_dns.choice import Method
from dnsproxy.install.change.config_map import ConfigMapChange, Entry, format_change
from sidecar.values.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be installed."""

    addresses: tuple[Endpoint, ...]
    """Where dnsproxy is asked: one, or one for each family."""
    zones: tuple[str, ...] = ()
    """Empty: every name, where the method can have that."""


@dataclass(frozen=True, slots=True)
class Edits:
    """What is to be written, and what would be, were it not there already."""

    method: Method | None
    """None for an uninstall."""
    changes: tuple[ConfigMapChange, ...]
    zones: tuple[str, ...] = ()
    """Whose names dnsproxy is asked for; those that it was asked for, where it is taken out."""
    notes: tuple[str, ...] = ()
    """Sentences without their ends: what works differently than one may think."""
    refusals: tuple[str, ...] = ()
    """What stays because it must not be touched, and the way out. Only an uninstall goes on beside one."""

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return any(change.changed for change in self.changes)


def format_diffs(edits: Edits) -> str:
    """The unified diff of all of it."""
    return "".join(map(format_change, edits.changes))


def merge_changes(*groups: Iterable[ConfigMapChange]) -> tuple[ConfigMapChange, ...]:
    """One change for each ConfigMap, in the order in which these are met first."""
    merged: dict[str, ConfigMapChange] = {}
    for change in chain(*groups):
        name = str(change.source)
        before = merged.get(name)
        merged[name] = change if before is None else _merged(before, change)
    return tuple(merged.values())


def _merged(first: ConfigMapChange, second: ConfigMapChange) -> ConfigMapChange:
    return ConfigMapChange(
        first.source,
        _latest(first.data, second.data),
        _latest(first.annotations, second.annotations),
        removes=first.removes or second.removes,
    )


def _latest(first: tuple[Entry, ...], second: tuple[Entry, ...]) -> tuple[Entry, ...]:
    return tuple({entry.name: entry for entry in (*first, *second)}.values())

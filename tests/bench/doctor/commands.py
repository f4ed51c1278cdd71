"""The commands that are measured, and what each is to stay under. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from tests.bench.doctor.objects import ZONE, hostname_of

UNKNOWN: Final = f"nothing.{ZONE}"
"""A host that no object has."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a command finds the programs of the scene: `ADDRESS:PORT`."""

    dns: str
    admin: str


@dataclass(frozen=True, slots=True)
class MeasuredCommand:
    """A command line."""

    name: str
    about: str
    arguments: Callable[[Places], Sequence[str]]
    statuses: frozenset[int]
    """The exit statuses that say that it did its work."""
    asks_cluster: bool = True
    """Whether it reads the API server, so that it can be started with a kubeconfig, too."""


SECONDS: Final[Mapping[str, float]] = MappingProxyType({"status": 1.5, "host": 3.0, "outside": 3.0, "all": 30.0})
"""What a command is to stay under, by its name, with the default numbers of objects."""
PEAK: Final = 150.0
"""MiB resident, of every command."""

_HOST: Final = hostname_of(17)


def _probing(*arguments: str) -> Callable[[Places], Sequence[str]]:
    return lambda places: [*arguments, "--probe", "--dns", places.dns, "--public-dns", places.dns]


def _installing(*arguments: str) -> Callable[[Places], Sequence[str]]:
    return lambda places: [*arguments, "--dry-run", "--dns", places.dns]


COMMANDS: Final = (
    MeasuredCommand(
        "status",
        "dnsproxy status",
        lambda places: ["status", "--dns", places.dns, "--address", places.dns],
        frozenset({0}),
    ),
    MeasuredCommand("host", "dnsproxy doctor HOST, in a pod's place", _probing("doctor", _HOST), frozenset({0, 1})),
    MeasuredCommand(
        "outside",
        "dnsproxy doctor HOST, outside the cluster",
        lambda places: ["doctor", _HOST, "--no-probe", "--public-dns", places.dns],
        frozenset({1, 3}),
    ),
    MeasuredCommand(
        "unknown", "dnsproxy doctor HOST, of a host that no object has", _probing("doctor", UNKNOWN), frozenset({1})
    ),
    MeasuredCommand("all", "dnsproxy doctor of all hosts", _probing("doctor"), frozenset({0, 1})),
    MeasuredCommand("install", "dnsproxy install --dry-run", _installing("install"), frozenset({0})),
    MeasuredCommand("uninstall", "dnsproxy uninstall --dry-run", _installing("uninstall"), frozenset({0})),
    MeasuredCommand(
        "table", "dnsproxy table", lambda places: ["table", "--admin", places.admin], frozenset({0}), asks_cluster=False
    ),
    MeasuredCommand(
        "explain",
        "dnsproxy explain NAME",
        lambda places: ["explain", _HOST, "--admin", places.admin],
        frozenset({0}),
        asks_cluster=False,
    ),
)

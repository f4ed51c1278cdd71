"""Rounds: every server under every workload, one after the other, then all again.

The law: round robin, so that other work of the machine strikes all servers alike. A round in which the machine took the
processor from a server is measured again, whatever its figure was. A fault of one server ends its measurement alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from tests.bench.kit.faults import BadReport, CannotServe
from tests.kit.progress import Progress

NOISY: Final = 0.1
"""The share of the time in the queue above which a round says more about the machine than about the server."""
TRIES: Final = 3

Key = tuple[str, str]
"""The names of a workload and a server."""


class Named(Protocol):
    """A workload."""

    @property
    def name(self) -> str: ...


class Labelled(Protocol):
    """A server."""

    @property
    def label(self) -> str: ...


Sample = TypeVar("Sample")
Workload = TypeVar("Workload", bound=Named)
Peer = TypeVar("Peer", bound=Labelled)


@dataclass(slots=True)
class Measured(Generic[Sample]):
    """The samples, in the order of the workloads."""

    samples: dict[Key, list[Sample]] = field(default_factory=dict)
    faults: dict[Key, str] = field(default_factory=dict)
    """Why a server was not measured, or no further."""


def count_steps(pairs: Sequence[Any], *, rounds: int) -> int:
    """How often measure_rounds steps: a start with its warm-up and some rounds, for each server and workload."""
    return len(pairs) * (1 + rounds)


def measure_rounds(
    measured: Measured[Sample],
    pairs: Sequence[tuple[Workload, Peer]],
    *,
    warm_up: Callable[[Workload, Peer], object],
    measure: Callable[[Workload, Peer], Sample],
    rounds: int,
    progress: Progress,
) -> None:
    """Start and warm up all servers of `pairs`, then measure them in rounds."""
    measured.samples.update({(workload.name, peer.label): [] for workload, peer in pairs})
    for turn in range(rounds + 1):
        for workload, peer in pairs:
            key = workload.name, peer.label
            progress.step(f"{workload.name}: {peer.label}, {f'round {turn}' if turn else 'start and warm-up'}")
            if key in measured.faults:
                continue
            try:
                if turn:
                    measured.samples[key].append(measure(workload, peer))
                else:
                    warm_up(workload, peer)
            except (CannotServe, BadReport) as error:
                progress.note(f"{workload.name}: {peer.label} is not measured: {error}")
                measured.faults[key] = str(error)


def measure_quietly(measure: Callable[[], Sample], disturbed: Callable[[Sample], float]) -> Sample:
    """The first of a few tries that the machine left alone, or the try that it disturbed least."""
    tries: list[Sample] = []
    for _ in range(TRIES):
        tries.append(measure())
        if disturbed(tries[-1]) <= NOISY:
            break
    return min(tries, key=disturbed)

"""What one round of a measurement finds. Pure.

The law: each says how long the server was ready to run while others ran, so that a round that tells of the machine
rather than of the server can be taken again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from tests.bench.dns.prober import Probe
from tests.bench.kit.clock import CpuTime
from tests.bench.sync.memory import Memory

NOISY: Final = 0.1
"""The share of the time in the queue above which a round is taken again."""


class Sample(Protocol):
    """What a round has in any case."""

    @property
    def queued(self) -> float:
        """The share of the time in the queue."""
        ...


S = TypeVar("S", bound=Sample)


@dataclass(frozen=True, slots=True)
class Use:
    """Of the processor, over so many seconds."""

    seconds: float
    cpu: CpuTime

    @property
    def busy(self) -> float:
        """The share of the time on a processor."""
        return self.cpu.total / self.seconds

    @property
    def queued(self) -> float:
        """The share of the time in the queue."""
        return self.cpu.queued / self.seconds


@dataclass(frozen=True, slots=True)
class Start:
    """Of a server, from its start until it is ready."""

    use: Use
    memory: Memory
    proportional: float
    """As read_proportional()."""
    served: float
    """Seconds of processor time of the API server until then."""

    @property
    def queued(self) -> float:
        """The share of the time in the queue."""
        return self.use.queued


@dataclass(frozen=True, slots=True)
class Probed:
    """Of answers, while something else went on."""

    use: Use
    probe: Probe

    @property
    def queued(self) -> float:
        """The share of the time in the queue."""
        return self.use.queued


@dataclass(frozen=True, slots=True)
class Creation:
    """Of one object; seconds."""

    created: float
    """Until the API server had said yes."""
    answered: float
    """From then on until the first answer."""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Created:
    """Of many objects, one after the other."""

    use: Use
    creations: Sequence[Creation]

    @property
    def queued(self) -> float:
        """The share of the time in the queue."""
        return self.use.queued


@dataclass(frozen=True, slots=True)
class Changed:
    """Of answers while objects changed."""

    probed: Probed
    rate: float
    """Changes made a second."""
    lag: float
    """Seconds from the end of the changes to the answer for the last one."""
    memory: Sequence[Memory]
    """Evenly spaced, from the first change to the last."""

    @property
    def queued(self) -> float:
        """The share of the time in the queue."""
        return self.probed.queued


def take_rounds(take: Callable[[], S], *, rounds: int, tries: int) -> list[S]:
    """So many samples, each the first of some tries that was left alone, or the one that was disturbed least."""
    return [_take_quietly(take, tries) for _ in range(rounds)]


def _take_quietly(take: Callable[[], S], tries: int) -> S:
    taken: list[S] = []
    while not taken or (taken[-1].queued > NOISY and len(taken) < tries):
        taken.append(take())
    return min(taken, key=lambda sample: sample.queued)

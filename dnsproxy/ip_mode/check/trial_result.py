"""The result of a trial: the connections before, and those while ipMode was Proxy.

The law: a port counts as reached if its request was read; a trial that ended early shows nothing. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from dnsproxy.doctor.facts.probes import Probe
from dnsproxy.doctor.judge.header_mode import describe, is_understood
from dnsproxy.doctor.judge.short_circuit import Answer


@dataclass(frozen=True, slots=True)
class Trial:
    """What was seen in a trial."""

    before: tuple[Probe, ...]
    after: tuple[Probe, ...] = ()
    """The last connections to the same ports while ipMode was Proxy; empty if it was not written."""
    seconds: float = 0.0
    """Until all of them were answered, or the trial was over."""
    failure: str = ""
    """Why nothing was tried, or why it ended early."""
    left: str = ""
    """The command that restores the status, if the trial could not; otherwise empty."""

    @property
    def answer(self) -> Answer:
        """Whether every port was answered with ipMode Proxy."""
        if self.failure or not self.after:
            return Answer.UNKNOWN
        return Answer.YES if all(map(is_understood, self.after)) else Answer.NO

    @property
    def why(self) -> str:
        """What was seen, as a sentence without its full stop."""
        if self.failure:
            return self.failure
        seen = "; ".join(describe(self.after))
        if self.answer is Answer.YES:
            return f"after {self.seconds:.0f} s with ipMode Proxy every port answered: {seen}"
        return f"within {self.seconds:.0f} s with ipMode Proxy not every port answered: {seen}"

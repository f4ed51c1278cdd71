"""What --check saw of one Service and of the cluster, and what follows from it.

The law: one no is a no, and one unknown keeps the question open. An address that is Proxy already, on a data plane that
honours it, needs nothing. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dnsproxy.doctor.facts.model import Service
from dnsproxy.doctor.judge.ip_mode_judgement import IpModeJudgement, Open
from dnsproxy.doctor.judge.short_circuit import Answer
from dnsproxy.ip_mode.check.trial_result import Trial
from dnsproxy.ip_mode.check.unlisted_port import WayOut
from dnsproxy.ip_mode.results import Effect, Proof
from dnsproxy.ip_mode.status_writers import StatusWriter
from sidecar.values.exit_status import ExitStatus


@dataclass(frozen=True, slots=True)
class Cluster:
    """What holds for all Services."""

    plane: str
    """The data plane with its version."""
    plane_why: str
    server_version: str
    api_version: str
    """Of the policies' API; empty if the API server serves none."""
    why_no_policy: str = ""
    has_policy: bool = False
    unread: tuple[str, ...] = ()
    """What could not be read, and why."""


@dataclass(frozen=True, slots=True)
class Count:
    """The writes of a status that were seen in a time."""

    seconds: float
    writes: int


@dataclass(frozen=True, slots=True)
class Checked:
    """One Service."""

    service: Service
    hostnames: tuple[str, ...]
    provider: str
    judgement: IpModeJudgement
    takes_bare: bool = False
    """Whether its controller serves connections without the header."""
    selected: bool = False
    """Whether the policy in the cluster is for it."""
    proof: Proof = field(default_factory=lambda: Proof(Effect.UNASKED))
    writers: tuple[StatusWriter, ...] = ()
    count: Count | None = None
    ways: tuple[WayOut, ...] = ()
    """One for each address; empty if nothing was dialled."""
    trial: Trial | None = None

    @property
    def obstacles(self) -> tuple[str, ...]:
        """Why ipMode Proxy would not help."""
        bare = "the controller serves connections without the PROXY header, so pods reach it already"
        failed = [f"in a trial, {self.trial.why}"] if self.trial and self.trial.answer is Answer.NO else []
        return (*failed, *([bare] if self.takes_bare else []), *self.judgement.obstacles)

    @property
    def helps(self) -> Answer:
        """Whether it would help, or does already."""
        if self.obstacles:
            return Answer.NO
        return Answer.YES if self.trial and self.trial.answer is Answer.YES else self.judgement.helps

    @property
    def questions(self) -> tuple[Open, ...]:
        """What is open, if knowing it could change the answer."""
        return self.judgement.open if self.helps is Answer.UNKNOWN else ()

    @property
    def verdict(self) -> str:
        """One sentence without the full stop."""
        judgement = self.judgement
        if judgement.harms is Answer.YES:
            return f"no, it would harm: {judgement.why}"
        if self.obstacles:
            return f"no: {self.obstacles[0]}"
        done = "every address has ipMode Proxy already"
        if self.helps is Answer.UNKNOWN:
            return f"not known{f' ({done})' if judgement.already else ''}: {judgement.open[0].what}"
        if self.trial and self.trial.answer is Answer.YES:
            return f"yes: {self.trial.why}"
        return f"yes, and it does: {done}" if judgement.already else "yes"


def status_of(every: tuple[Checked, ...]) -> ExitStatus:
    """Of the run: 0 if it helps every Service, 1 if one gets no help, 3 if that is not known or there is none."""
    answers = {one.helps for one in every}
    if Answer.NO in answers:
        return ExitStatus.NO
    return ExitStatus.DONE if answers == {Answer.YES} else ExitStatus.UNKNOWN

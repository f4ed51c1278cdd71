"""Findings: what a diagnosis says, as values that are printed or become JSON.

The law: a finding has a stable id, says what was seen, and what to type next. One cause is one finding, however many
hosts it has. What could not be looked at is no finding: it is neither good nor bad. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

import msgspec

from sidecar.errors import ExitStatus


class Severity(StrEnum):
    """How bad it is."""

    OK = "ok"
    INFO = "info"
    """Worth to know; nothing has to be done."""
    WARNING = "warning"
    """It may fail, or fails for some."""
    PROBLEM = "problem"
    """It fails."""


ORDER: Final = (Severity.PROBLEM, Severity.WARNING, Severity.INFO, Severity.OK)
"""The worst first."""


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to do."""

    text: str
    """Why, and what comes of it."""
    lines: tuple[str, ...] = ()
    """Commands to type, or YAML to put somewhere, as they are."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a diagnosis says."""

    id: str
    severity: Severity
    text: str
    """One sentence without its end."""
    about: str = ""
    """The object that it is about: `Service ingress-nginx/controller`."""
    evidence: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    """What to do, the best first; a later one is for whom the earlier ones do not suit."""
    hosts: tuple[str, ...] = ()


class Unseen(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that would have to be known and could not be looked at."""

    what: str
    why: str = ""
    steps: tuple[Step, ...] = ()
    matters: bool = True
    """Whether the diagnosis would be another one if it were known."""


class Diagnosis(msgspec.Struct, frozen=True):
    """All that there is to say."""

    findings: tuple[Finding, ...]
    unseen: tuple[Unseen, ...]
    verdict: str
    """One sentence without its end."""
    road: tuple[str, ...] = ()
    """Through what the connections of the asked host go, a line each; empty where all hosts were meant."""

    @property
    def status(self) -> int:
        """The exit status: 0 healthy, 1 findings, 3 could not look."""
        if any(finding.severity in (Severity.PROBLEM, Severity.WARNING) for finding in self.findings):
            return ExitStatus.NO
        return ExitStatus.UNKNOWN if any(one.matters for one in self.unseen) else ExitStatus.DONE


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, the worst first; within a severity in the order in which they came."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: ORDER.index(finding.severity)))


def format_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as JSON values; texts as the cluster has them."""
    return {
        "status": diagnosis.status,
        "verdict": diagnosis.verdict,
        "road": list(diagnosis.road),
        "findings": msgspec.to_builtins(diagnosis.findings),
        "unseen": msgspec.to_builtins(diagnosis.unseen),
    }

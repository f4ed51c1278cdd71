"""The results of a run: whether the policy is in effect, and the outcome for each status that was written anew.

The law: a result is what the API server answered, not what was sent. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dnsproxy.cluster_dns.object_ref import ObjectRef


class Effect(Enum):
    """The answer."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    UNASKED = "not asked"
    """There is no Service to ask about."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The answer, and what it rests on."""

    effect: Effect
    service: ObjectRef | None = None
    text: str = ""
    """A sentence without its full stop."""
    refused: bool = False
    """Whether the API server refused the dry run: for want of a right, or because another policy denies the result."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The outcome for one Service."""

    service: ObjectRef
    before: tuple[str, ...]
    """The ipMode of each entry with an address."""
    after: tuple[str, ...]
    gone: bool = False
    """Whether the Service was deleted meanwhile."""
    failure: str = ""
    """Empty if the status is as wanted."""

    @property
    def result(self) -> str:
        """`rewritten`, `unchanged`, `deleted` or `failed`."""
        if self.gone:
            return "deleted"
        if self.failure:
            return "failed"
        return "unchanged" if self.before == self.after else "rewritten"

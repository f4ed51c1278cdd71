"""Why a backend cannot be reached, in the tokens that people and dashboards see, and when to say so.

The law: pure. An errno becomes a cause here and nowhere else; a state that does not change is not said again.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

RECOVERY_SECONDS: Final = 5.0
"""How long a backend must not fail before a success counts as recovery: one bad pod of many must not flood the log."""


class Cause(StrEnum):
    """Why a backend cannot be reached."""

    DNS_NXDOMAIN = "dns-nxdomain"
    DNS_TIMEOUT = "dns-timeout"
    DNS_ERROR = "dns-error"
    CONNECTION_REFUSED = "connection-refused"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    NO_ENDPOINTS = "no-endpoints"
    """A Service without an endpoint that takes connections, or no such Service or port."""
    NOT_SYNCED = "not-synced"
    """The API server has not told yet what a Service stands for."""
    OWN_LISTENER = "own-listener"
    """The backend is the relay itself: dialled, every connection would make another one, without end."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A cause with what the operating system said."""

    cause: Cause
    detail: str


def cause_of_connect(number: int) -> Cause:
    """The cause behind the errno of a connect."""
    if number == errno.ECONNREFUSED:
        return Cause.CONNECTION_REFUSED
    return Cause.TIMEOUT if number == errno.ETIMEDOUT else Cause.UNREACHABLE


class Transition(StrEnum):
    """A change that is worth a line in the log."""

    FAILED = "failed"
    RECOVERED = "recovered"


class Health:
    """What was last seen of one backend; tells which observation changes it."""

    def __init__(self) -> None:
        self._failure: Failure | None = None
        self._failed_at = float("-inf")
        self._succeeded_at = float("-inf")

    @property
    def failure(self) -> Failure | None:
        """The failure that was not yet followed by a lasting success."""
        return self._failure

    def succeeded_within(self, seconds: float, *, now: float) -> bool:
        """Whether the last observation is a success, and this fresh."""
        return self._succeeded_at > self._failed_at and now - self._succeeded_at <= seconds

    def observe(self, failure: Failure | None, *, now: float) -> Transition | None:
        """Take in one attempt (None is success); `now` in seconds. A changed cause is no transition."""
        if failure is not None:
            known = self._failure is not None
            self._failure, self._failed_at = failure, now
            return None if known else Transition.FAILED
        self._succeeded_at = now
        if self._failure is None or now - self._failed_at < RECOVERY_SECONDS:
            return None
        self._failure = None
        return Transition.RECOVERED


def describe(failures: Iterable[tuple[str, Failure]]) -> str:
    """One line for /readyz out of (backend, failure) pairs."""
    return "; ".join(f"backend unreachable ({failure.cause}): {name}: {failure.detail}" for name, failure in failures)

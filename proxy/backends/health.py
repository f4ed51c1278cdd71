"""The health of a backend: why it cannot be reached, and which changes are logged.

The law: pure. Only this module maps an errno to a cause. Users see the causes in logs, metrics and on the page.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

RECOVERY_SECONDS: Final = 5.0
"""Seconds without a failure before a success counts as recovery, so that one bad pod of many does not flood the log."""


class Cause(StrEnum):
    """Why a backend cannot be reached."""

    DNS_NXDOMAIN = "dns-nxdomain"
    DNS_TIMEOUT = "dns-timeout"
    DNS_ERROR = "dns-error"
    CONNECTION_REFUSED = "connection-refused"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    NO_ENDPOINTS = "no-endpoints"
    """A Service without an endpoint that accepts connections, or no such Service or port."""
    NOT_SYNCED = "not-synced"
    """The API server has not sent the endpoints of a Service yet."""
    OWN_LISTENER = "own-listener"
    """The address of the backend is the relay itself: each connection would make another one, without end."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A cause, with the operating system's message."""

    cause: Cause
    detail: str


def cause_of_connect(number: int) -> Cause:
    """The cause for an errno of connect."""
    if number == errno.ECONNREFUSED:
        return Cause.CONNECTION_REFUSED
    return Cause.TIMEOUT if number == errno.ETIMEDOUT else Cause.UNREACHABLE


class Transition(StrEnum):
    """A change that is logged."""

    FAILED = "failed"
    RECOVERED = "recovered"


class Health:
    """The health of one backend, from the results of connections and probes."""

    def __init__(self) -> None:
        self._failure: Failure | None = None
        self._failed_at = float("-inf")
        self._succeeded_at = float("-inf")

    @property
    def failure(self) -> Failure | None:
        """The last failure, until a lasting success."""
        return self._failure

    def succeeded_within(self, seconds: float, *, now: float) -> bool:
        """Whether the last result is a success of the last `seconds`."""
        return self._succeeded_at > self._failed_at and now - self._succeeded_at <= seconds

    def observe(self, failure: Failure | None, *, now: float) -> Transition | None:
        """Record the result of an attempt, None for success. A changed cause is no transition."""
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
    """One line for /readyz from (backend, failure) pairs."""
    return "; ".join(f"backend unreachable ({failure.cause}): {name}: {failure.detail}" for name, failure in failures)

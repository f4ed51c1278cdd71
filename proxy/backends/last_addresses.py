"""Whether a backend keeps its last addresses after a failed look-up.

The law: pure; times are seconds of a monotonic clock that the caller reads. A failure of the resolver says nothing
about the backend, so its addresses stay. A name that has vanished is believed when a later answer confirms it:
nameservers lose names for moments, while they load a zone or while a record is written anew.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from proxy.backends.health import Cause

CONFIRM_SECONDS: Final = 5.0
"""Between the first answer without the name and the one that confirms it."""

_RESOLVER_DOWN: Final = frozenset({Cause.DNS_TIMEOUT, Cause.DNS_ERROR})


class Decision(Enum):
    """What a failed look-up means for the last addresses."""

    KEEP_UNRESOLVED = "the resolver failed"
    KEEP_UNCONFIRMED = "the name has vanished, and no second answer has confirmed it"
    DROP = "the backend has no addresses"


class LastAddresses:
    """The failed look-ups since the last addresses were found."""

    def __init__(self) -> None:
        self._vanished_at: float | None = None

    def found(self) -> None:
        """A look-up has found addresses."""
        self._vanished_at = None

    def judge(self, cause: Cause, *, now: float) -> Decision:
        """Judge a failed look-up. A failure of the resolver neither confirms nor refutes that the name has vanished."""
        if cause in _RESOLVER_DOWN:
            return Decision.KEEP_UNRESOLVED
        if cause is not Cause.DNS_NXDOMAIN:
            return Decision.DROP
        if self._vanished_at is None:
            self._vanished_at = now
        return Decision.DROP if now - self._vanished_at >= CONFIRM_SECONDS else Decision.KEEP_UNCONFIRMED

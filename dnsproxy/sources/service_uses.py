"""Service uses: which hostnames point at which Services, by the targets that objects chose for themselves.

The law: pure; a Service is in use for exactly as long as a claim names it, and a change costs what it touches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dnsproxy.sources.target_service import service_keys


@dataclass(frozen=True, slots=True)
class Turn:
    """What a change brought, each by `NAMESPACE/NAME`."""

    named: frozenset[str] = frozenset()
    """Services that nobody named before."""
    left: frozenset[str] = frozenset()
    """Services that nobody names any more."""


_NOTHING = Turn()


class ServiceUses:
    """The Services that claims choose (`Claim.target`), by hostname and back."""

    def __init__(self) -> None:
        self._by_hostname: dict[str, frozenset[str]] = {}
        self._by_service: dict[str, dict[str, None]] = {}

    def put(self, hostname: str, targets: Iterable[str]) -> Turn:
        """The targets that the claims to a hostname choose are these now; others than Services are left out."""
        old, new = self._by_hostname.get(hostname, frozenset()), service_keys(targets)
        if old == new:
            return _NOTHING
        named = frozenset(key for key in new - old if self._link(key, hostname))
        left = frozenset(key for key in old - new if self._unlink(key, hostname))
        if new:
            self._by_hostname[hostname] = new
        else:
            del self._by_hostname[hostname]
        return Turn(named, left)

    def hostnames(self, key: str) -> list[str]:
        """The hostnames with a claim that chooses this Service."""
        return list(self._by_service.get(key, ()))

    def _link(self, key: str, hostname: str) -> bool:
        hostnames = self._by_service.setdefault(key, {})
        hostnames[hostname] = None
        return len(hostnames) == 1

    def _unlink(self, key: str, hostname: str) -> bool:
        hostnames = self._by_service[key]
        del hostnames[hostname]
        if not hostnames:
            del self._by_service[key]
        return not hostnames

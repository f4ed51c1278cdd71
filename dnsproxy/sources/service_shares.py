"""The shares of Service targets: which of the Services that objects name are followed, a share for each namespace.

The law: pure; the choice depends only on the claims, never on the order of their changes. Each Service costs the API
server a watch, so their number is bounded, and a namespace that names too many loses its own last ones by name.
Configured Services are always followed and never counted.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.fair_level import FairLevel
from dnsproxy.sources.target_service import ServiceUses, UseChange

MOST: Final = 100
"""Services followed because objects name them."""


class ServiceShares:
    """The Services that claims choose, by the namespaces of their objects."""

    def __init__(self, *, configured: Collection[str] = (), most: int = MOST) -> None:
        self._configured = frozenset(configured)
        self._most = most
        self._fair = FairLevel(ceiling=most, capacity=most)
        self._uses: dict[str, ServiceUses] = {}
        self._wanted: dict[str, list[str]] = {}
        """By namespace, sorted."""
        self._namespaces: dict[str, frozenset[str]] = {}
        """The namespaces whose claims to a hostname choose a Service."""
        self._chosen: frozenset[str] = frozenset()

    def put(self, hostname: str, claims: Iterable[Claim]) -> UseChange:
        """Set the claims to a hostname; returns the Services to follow from now on, and those to leave."""
        targets: dict[str, list[str]] = {}
        for claim in claims:
            if claim.terms.target:
                targets.setdefault(claim.origin.namespace, []).append(claim.terms.target)
        before = self._namespaces.pop(hostname, frozenset())
        if targets:
            self._namespaces[hostname] = frozenset(targets)
        changed = [self._put(name, hostname, targets.get(name, ())) for name in before.union(targets)]
        if not any(changed):
            return UseChange()
        last, self._chosen = self._chosen, frozenset(self._choose())
        return UseChange(self._chosen - last, last - self._chosen)

    def hostnames(self, key: str) -> list[str]:
        """The hostnames with a claim that chooses this Service."""
        return list(dict.fromkeys(name for uses in self._uses.values() for name in uses.hostnames(key)))

    @property
    def faults(self) -> Mapping[str, str]:
        """For each namespace that names too many Services, the first that is not followed, and why."""
        found: dict[str, str] = {}
        # Sorted: two namespaces may name the same Service, and the last one's reason stays.
        for name, wanted in sorted(self._wanted.items()):
            left = [key for key in wanted if key not in self._chosen]
            if left:
                more = f", nor are {len(left) - 1} others" if len(left) > 1 else ""
                found[left[0]] = f"it is not followed{more}: objects of namespace {name} name too many Services"
        return found

    def _choose(self) -> Iterator[str]:
        # If not even one for each fits, which takes as many namespaces as there are places, names decide.
        level = max(self._fair.level, 1)
        chosen: dict[str, None] = {}
        for name in sorted(self._wanted):
            chosen |= dict.fromkeys(self._wanted[name][:level])
            if len(chosen) >= self._most:
                break
        return iter(list(chosen)[: self._most])

    def _put(self, name: str, hostname: str, targets: Iterable[str]) -> bool:
        """Returns whether the namespace wants other Services than before."""
        change = self._uses.setdefault(name, ServiceUses()).put(hostname, targets)
        wanted = self._wanted.setdefault(name, [])
        before = len(wanted)
        added, removed = change.added - self._configured, change.removed - self._configured
        for key in added:
            insort(wanted, key)
        for key in removed:
            del wanted[bisect_left(wanted, key)]
        self._fair.change(before, len(wanted))
        if not wanted:
            del self._wanted[name]
        if self._uses[name].is_empty:
            del self._uses[name]
        return bool(added or removed)

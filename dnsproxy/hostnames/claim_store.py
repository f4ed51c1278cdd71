"""The claim store: the current claims of every source, by object, by hostname and by class.

The law: a change costs what it touches, never what the store holds. The store decides nothing: when two objects claim
one hostname, it holds both claims, and the verdict chooses.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from dnsproxy.hostnames.claim_map import ClaimMap
from dnsproxy.hostnames.claims import Claim, Rejection
from dnsproxy.hostnames.name_limits import distinct
from dnsproxy.hostnames.targets import OWN

_CLASSED_BY_STATUS: Final = frozenset({"Route"})
"""Kinds with their class in the status: its writer could pair any class with any load balancer."""

_SLICE: Final = 100
"""Objects forgotten in one slice, in less than a millisecond."""

_CHANGES: Final = 256
"""The number of changes remembered, for readers that keep an index of all names."""
BalancerKey = tuple[str, str | None]
"""A Gateway, `NAMESPACE/NAME`, empty without one; and a class, or CHOSEN."""
CHOSEN: Final = "*"
"""In place of the class of claims to whose Gateway its owner has given a target; no class has this name."""


class ClaimStore:
    """Claims and rejections under (source, key); `source` is `Ingress`, `hosts file` ..., `key` an object of it."""

    def __init__(self) -> None:
        self._claims: dict[str, ClaimMap] = {}
        """By source, then by object."""
        self._rejections: dict[tuple[str, str], tuple[Rejection, ...]] = {}
        self._rejected = 0
        self._rejections_version = 0
        self._by_hostname = ClaimMap()
        self._balancers: dict[BalancerKey, dict[tuple[str, ...], int]] = {}
        self._sharing: Counter[tuple[str, ...]] = Counter()
        """How many Gateways and classes have a status."""
        self.balancers_version = 0
        """Increases when the load balancers of any Gateway or class change."""
        self._restored: dict[str, dict[str, None]] = {}
        self._version = 0
        self._changed: deque[frozenset[str]] = deque(maxlen=_CHANGES)

    @property
    def version(self) -> int:
        """Increases with every change of a claim."""
        return self._version

    def changed_since(self, version: int) -> frozenset[str] | None:
        """The hostnames whose claims changed since that version; None if it is too old to tell."""
        changes = self._version - version
        if changes > len(self._changed):
            return None
        return frozenset().union(*islice(reversed(self._changed), changes))

    def replace(
        self, source: str, key: str, claims: Sequence[Claim], rejections: Sequence[Rejection] = ()
    ) -> frozenset[str]:
        """Replace the claims of an object; no claims remove it. Returns the hostnames whose claims changed.

        Most changes of an object (its status, its annotations) do not change its claims: those cost a comparison.
        """
        self._restored.get(source, {}).pop(key, None)
        self._reject((source, key), tuple(rejections))
        objects = self._claims.get(source)
        if objects is None:
            objects = self._claims[source] = ClaimMap()
        old, new = objects.get(key), distinct(claims)
        if old == new:
            return frozenset()
        objects.put(key, new)
        # In a first list all objects are new; hashing their claims would be half its cost.
        changed = set(old) ^ set(new) if old else frozenset()
        for claim in old:
            if claim in changed:
                self._drop(claim)
                self._count_balancer(claim, -1)
        for claim in new:
            if not old or claim in changed:
                self._by_hostname.put(claim.hostname, (*self._by_hostname.get(claim.hostname), claim))
                self._count_balancer(claim, 1)
        self._version += 1
        hostnames = frozenset(claim.hostname for claim in (changed if old else new))
        self._changed.append(hostnames)
        return hostnames

    def is_left_out(self, source: str, key: str) -> bool:  # noqa: ARG002  # the store keeps all that it is given
        """Never: see ClaimSink."""
        return False

    def restore(self, source: str, key: str, claims: Sequence[Claim]) -> frozenset[str]:
        """Like replace, from a snapshot: valid until the source reports the object, or until forget_restored."""
        changed = self.replace(source, key, claims)
        self._restored.setdefault(source, {})[key] = None
        return changed

    def restored(self, source: str) -> int:
        """How many objects of a source are known only from a snapshot."""
        return len(self._restored.get(source, {}))

    def forget_restored(
        self, source: str, *, replace: Callable[[str, str, Sequence[Claim]], frozenset[str]] | None = None
    ) -> Iterator[frozenset[str]]:
        """Remove restored objects that the source, which has reported all its objects by now, did not report.

        Yields the hostnames whose claims changed, in slices between which the store may change. `replace` is called in
        place of the store's own.
        """
        replace = replace or self.replace
        restored = self._restored.get(source, {})
        while restored:
            keys = [restored.popitem()[0] for _ in range(min(_SLICE, len(restored)))]
            yield frozenset().union(*(replace(source, key, ()) for key in keys))

    def keys(self, source: str) -> Collection[str]:
        """A copy of the objects of a source that claim something, to iterate while the store changes."""
        return self._claims[source].keys() if source in self._claims else ()

    def holds(self, sources: Iterable[str]) -> bool:
        """Whether any object of these sources claims anything."""
        return any(self._claims.get(source) for source in sources)

    def claims_at(self, source: str, key: str) -> tuple[Claim, ...]:
        """The claims of one object."""
        return self._claims[source].get(key) if source in self._claims else ()

    def claims(self) -> Iterator[Claim]:
        """Every claim, in no particular order."""
        for objects in self._claims.values():
            yield from objects.claims()

    def claims_for(self, hostname: str) -> tuple[Claim, ...]:
        """The claims to one hostname in normal form; `*.example.org` is a hostname of its own."""
        return self._by_hostname.get(hostname)

    def balancers(self) -> Mapping[BalancerKey, Mapping[tuple[str, ...], int]]:
        """The statuses of all objects, by Gateway and class, with how many claims have each."""
        return self._balancers

    def hostnames(self) -> int:
        """How many hostnames are claimed."""
        return len(self._by_hostname)

    def names(self) -> Collection[str]:
        """A copy of the claimed hostnames, to iterate while the store changes."""
        return self._by_hostname.keys()

    def names_now(self) -> Iterator[str]:
        """The same without the copy, which takes milliseconds; a change during the iteration raises RuntimeError."""
        return iter(self._by_hostname)

    def rejections(self) -> Iterator[Rejection]:
        """Every rejection, in no particular order."""
        for rejections in self._rejections.values():
            yield from rejections

    def rejected(self) -> list[tuple[str, str]]:
        """A copy of the objects with rejections, to iterate with rejections_at while they change."""
        return list(self._rejections)

    def rejected_now(self) -> Iterator[tuple[str, str]]:
        """The same without a copy; a change during the iteration raises RuntimeError."""
        return iter(self._rejections)

    def rejections_at(self, place: tuple[str, str]) -> tuple[Rejection, ...]:
        """What can't be served of one object, by source and key."""
        return self._rejections.get(place, ())

    @property
    def rejections_version(self) -> int:
        """Grows with every change of what can't be served."""
        return self._rejections_version

    @property
    def rejected_hosts(self) -> int:
        """How many hosts were rejected."""
        return self._rejected

    def _count_balancer(self, claim: Claim, step: int) -> None:
        terms = claim.terms
        status, name = terms.status, (terms.gateway, CHOSEN if terms.target_from else terms.ingress_class)
        is_own = terms.target == OWN or claim.origin.kind in _CLASSED_BY_STATUS or not terms.accepted
        if not status or is_own:
            return
        uses = self._balancers.setdefault(name, {})
        before = uses.get(status, 0)
        uses[status] = before + step
        if not before:
            self._sharing[status] += 1
        elif not uses[status]:
            del uses[status]
            self._sharing[status] -= 1
            if not uses:
                del self._balancers[name]
        # Most changes add a claim to many; which class has the most counts only where several have the status.
        if not before or status not in uses or self._sharing[status] > 1:
            self.balancers_version += 1
        if not self._sharing[status]:
            del self._sharing[status]

    def _drop(self, claim: Claim) -> None:
        left = list(self._by_hostname.get(claim.hostname))
        # Only one of them: another object may hold an equal claim.
        left.remove(claim)
        self._by_hostname.put(claim.hostname, tuple(left))

    def _reject(self, place: tuple[str, str], rejections: tuple[Rejection, ...]) -> None:
        known = self._rejections.get(place, ())
        if rejections == known:
            return
        self._rejections_version += 1
        self._rejected += len(rejections) - len(known)
        if rejections:
            self._rejections[place] = rejections
        else:
            self._rejections.pop(place, None)

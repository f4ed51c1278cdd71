"""The shares of names: which objects of the cluster may claim, so that no namespace uses up what is there for all.

The law: pure. Once settled, what is admitted depends only on the set of objects, never on the order of their changes,
and a change costs what it touches. Within a namespace the oldest objects are admitted, up to the fair level; the first
that does not fit is left out, and all that are younger. A namespace below the level loses nothing.

What the store has of these sources came through here: an object's age and size are read from its claims there. Nothing
but age and size is kept of an object that is left out, because a tenant can create any number of them. If there
is room again, it is wanted: its source has to report it once more.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Final

from dnsproxy.hostnames.age_order import AgeOrder, Entry
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Origin, Rejection
from dnsproxy.hostnames.fair_level import FairLevel
from dnsproxy.hostnames.name_limits import NameLimits, count_names, distinct, first_names, too_many
from dnsproxy.hostnames.rejection_shares import RejectionShares

NAMESPACE: Final = "Namespace"
"""The source of the rejections that say what a namespace loses, by its name."""

Place = tuple[str, str]
"""A source, and the key of an object in it."""


class NameShares:
    """Passes the claims of the cluster's objects on to a ClaimStore, as far as the limits allow.

    `on_work` is called when settle() or next_wanted() may have something to do.
    """

    def __init__(self, store: ClaimStore, *, limits: NameLimits, on_work: Callable[[], None] = lambda: None) -> None:
        self.limits = limits
        self.on_work = on_work
        self._store = store
        self._rejections = RejectionShares()
        self._absent: dict[Place, Entry] = {}
        """The objects that the store has no claims of: those that are left out, and those that are wanted."""
        self._namespaces: dict[str, AgeOrder] = {}
        self._fair = FairLevel(ceiling=limits.per_namespace, capacity=limits.total)
        self._level = self._fair.level
        self._unsettled: dict[str, None] = {}
        self._wanted: dict[str, dict[Place, None]] = {}
        """Admitted objects without their claims, by namespace."""
        self._reported: dict[str, None] = {}

    @property
    def level(self) -> int:
        """The most names for one namespace at present."""
        return self._level

    def replace(
        self, source: str, key: str, claims: Sequence[Claim], rejections: Sequence[Rejection] = ()
    ) -> frozenset[str]:
        """Like ClaimStore.replace; without claims and rejections, the object is gone."""
        claims = distinct(claims)
        kept = first_names(claims, self.limits.per_object)
        if len(kept) < len(claims):
            rejections = [*rejections, Rejection(claims[0].origin, too_many(self.limits.per_object))]
        admitted = self._put(source, key, kept)
        if kept and not admitted:
            rejections = [*rejections, _left_out(kept[0].origin, count_names(kept))]
        return self._store.replace(source, key, kept if admitted else (), self._bound((source, key), rejections))

    def restore(self, source: str, key: str, claims: Sequence[Claim]) -> frozenset[str]:
        """Like ClaimStore.restore."""
        kept = first_names(distinct(claims), self.limits.per_object)
        return self._store.restore(source, key, kept) if self._put(source, key, kept) else frozenset()

    def is_left_out(self, source: str, key: str) -> bool:
        """Whether the object claims names and is not admitted."""
        entry = self._absent.get((source, key))
        return entry is not None and not self._namespaces[_namespace_of(key)].admits(entry)

    def restored(self, source: str) -> int:
        """Like ClaimStore.restored."""
        return self._store.restored(source)

    def forget_restored(self, source: str) -> Iterator[frozenset[str]]:
        """Like ClaimStore.forget_restored."""
        return self._store.forget_restored(source, replace=self.replace)

    def settle(self) -> Iterator[frozenset[str]]:
        """Leave out and admit objects until every namespace has its share: one object a step.

        Yields the hostnames whose claims changed; the objects may change in between.
        """
        while self._unsettled:
            name = next(iter(self._unsettled))
            space = self._namespaces.get(name)
            step = space.step(self._level) if space else None
            if step is None:
                del self._unsettled[name]
                self._report(name)
                continue
            entry, admitted = step
            if admitted:
                self._wanted.setdefault(name, {})[entry.source, entry.key] = None
                yield frozenset()
            else:
                self._forget_wanted(name, (entry.source, entry.key))
                yield self._leave_out(entry)

    def next_wanted(self, without: Container[str] = ()) -> Place | None:
        """An object that is admitted again, and has to be reported by its source; of each namespace in turn.

        `without`: sources that cannot report at the moment.
        """
        for name in tuple(self._wanted):
            self._wanted[name] = places = self._wanted.pop(name)
            place = next((one for one in places if one[0] not in without), None)
            if place is not None:
                return place
        return None

    def is_wanted(self, source: str, key: str) -> bool:
        """Whether the object was not reported since it is wanted."""
        return (source, key) in self._wanted.get(_namespace_of(key), ())

    def left_out(self) -> tuple[int, int]:
        """How many objects are left out, and how many names; of all namespaces."""
        over = [self._namespaces[name] for name in self._reported if name in self._namespaces]
        return sum(one.left_out for one in over), sum(one.size - one.taken for one in over)

    def _leave_out(self, entry: Entry) -> frozenset[str]:
        place = entry.source, entry.key
        self._absent[place] = entry
        namespace, _, name = entry.key.rpartition("/")
        left_out = _left_out(Origin(entry.source, name, namespace, entry.created), entry.size)
        rejections = self._bound(place, [*self._store.rejections_at(place), left_out])
        return self._store.replace(*place, (), rejections)

    def _put(self, source: str, key: str, claims: Sequence[Claim]) -> bool:
        """Note the age and size of an object; returns whether it is admitted."""
        name = _namespace_of(key)
        self._forget_wanted(name, (source, key))
        before, after = self._entry(source, key), _entry_of(source, key, claims)
        self._absent.pop((source, key), None)
        if after is None and before is None:
            return False
        space = self._namespaces.setdefault(name, AgeOrder())
        if before is not None and before == after:
            admitted = space.admits(before)
        else:
            admitted = self._exchange(name, space, before, after)
        if after is not None and not admitted:
            self._absent[source, key] = after
        return admitted

    def _entry(self, source: str, key: str) -> Entry | None:
        """The entry of an object, made from its claims: to keep it beside them would take a tenth of their memory."""
        claims = self._store.claims_at(source, key)
        return _entry_of(source, key, claims) if claims else self._absent.get((source, key))

    def _exchange(self, name: str, space: AgeOrder, before: Entry | None, after: Entry | None) -> bool:
        size, admitted = space.size, False
        if before is not None:
            space.remove(before)
        if after is not None:
            admitted = space.put(after, self._level)
        self._fair.change(size, space.size)
        if not space.entries:
            del self._namespaces[name]
        self._follow_level()
        if name in self._reported or not space.is_settled(self._level) or space.left_out:
            self._unsettle([name])
        return admitted

    def _follow_level(self) -> None:
        before, self._level = self._level, self._fair.level
        if before != self._level:
            least = min(before, self._level)
            self._unsettle(name for name, space in self._namespaces.items() if space.size > least)

    def _unsettle(self, names: Iterable[str]) -> None:
        self._unsettled.update(dict.fromkeys(names))
        self.on_work()

    def _forget_wanted(self, name: str, place: Place) -> None:
        places = self._wanted.get(name)
        if places is not None and place in places:
            del places[place]
            if not places:
                del self._wanted[name]

    def _report(self, name: str) -> None:
        """Say on the namespace what it loses."""
        reasons = [*self._losses(name), *(["more is rejected than is shown"] if self._rejections.is_full(name) else [])]
        origin = Origin(NAMESPACE, name or "(none)")
        self._store.replace(NAMESPACE, name, (), [Rejection(origin, reason) for reason in reasons])
        if reasons:
            self._reported[name] = None
        else:
            self._reported.pop(name, None)

    def _losses(self, name: str) -> Iterator[str]:
        space = self._namespaces.get(name)
        if space is not None and space.left_out:
            first = space.entries[space.admitted]
            objects = f"{space.left_out:,} of {len(space.entries):,} objects"
            yield f"{objects} are left out, the youngest, from {first.source} {first.key} on: {self._share()}"

    def _bound(self, place: Place, rejections: Sequence[Rejection]) -> Sequence[Rejection]:
        name = _namespace_of(place[1])
        full = self._rejections.is_full(name)
        kept = self._rejections.bound(name, rejections, known=len(self._store.rejections_at(place)))
        if self._rejections.is_full(name) is not full:
            self._unsettle([name])
        return kept

    def _share(self) -> str:
        if self._level == self.limits.per_namespace:
            return f"a namespace may claim {self._level:,} names (--max-names-per-namespace)"
        return f"its share of {self.limits.total:,} names (--max-names) is {self._level:,} at present"


def _entry_of(source: str, key: str, claims: Sequence[Claim]) -> Entry | None:
    return Entry(claims[0].origin.created, source, key, count_names(claims)) if claims else None


def _left_out(origin: Origin, names: int) -> Rejection:
    return Rejection(origin, f"its {names:,} names are left out: older objects use up the share of its namespace")


def _namespace_of(key: str) -> str:
    """Empty for all objects of a kind without namespaces, which have one share together."""
    return key.rpartition("/")[0]

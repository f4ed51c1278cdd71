"""The source of DNSEndpoints: from changes of objects and of the table to changes of claims.

The law: pure; once settled, the claims depend only on the objects and on how the table answers the names that they
stand for, never on the order of the changes. An alias of a name outside of the table claims nothing: its name is
forwarded. Nothing is kept of an object without aliases, nor of an object that is left out (name_shares.py). Of a
namespace, MOST_UNCLAIMED aliases without a claim are kept: of too many, the first that come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any

from msgspec.structs import replace

from dnsproxy.answers.table import Host, HostTable
from dnsproxy.hostnames.claim_sink import ClaimSink
from dnsproxy.hostnames.claims import Claim, Origin, Rejection, Terms, share_terms
from dnsproxy.hostnames.verdict import Verdict
from dnsproxy.hostnames.wildcards import reach_in_dns
from dnsproxy.sources.annotations import rejections_of
from dnsproxy.sources.external_dns.alias_chains import Chain, claim_like, follow_aliases
from dnsproxy.sources.external_dns.alias_index import MOST_UNCLAIMED, AliasIndex
from dnsproxy.sources.external_dns.dns_endpoint import SOURCE, DnsEndpoint, Records, read_records
from dnsproxy.sources.unreadable import rejection_of_unreadable
from sidecar.kubernetes.objects import Unreadable
from sidecar.values.text import cut_list


class DnsEndpointSource:
    """Feeds one ClaimSink with the claims of DNSEndpoints.

    `answering`: the claim by which the table answers a name.
    """

    def __init__(
        self,
        store: ClaimSink,
        *,
        most: int | None = None,
        answering: Callable[[str], Claim | None] = lambda _: None,
    ) -> None:
        self._store = store
        self._most = most
        self._answering = answering
        self._records: dict[str, Records] = {}
        self._index = AliasIndex()
        self._touched: dict[str, None] = {}

    @property
    def is_settled(self) -> bool:
        """Whether the claims match the reported objects and the table."""
        return not self._touched

    def is_empty(self) -> bool:
        """Whether no trace of any reported object is left."""
        return not (self._records or self._touched) and self._index.is_empty

    def change(self, kind: str, changes: Mapping[str, Any]) -> frozenset[str]:  # noqa: ARG002  # there is only one
        """Apply changes, by `NAMESPACE/NAME`. Returns the hostnames whose claims changed at once."""
        hostnames: set[str] = set()
        for key, one in changes.items():
            hostnames |= self._change(key, one)
        return frozenset(hostnames)

    def settle(self, limit: int) -> frozenset[str]:
        """Evaluate at most this many objects. Returns the hostnames whose claims changed."""
        hostnames: set[str] = set()
        while self._touched and limit > 0:
            key, _ = self._touched.popitem()
            hostnames |= self._evaluate(key, self._records[key])
            limit -= 1
        return frozenset(hostnames)

    def is_affected(self, name: str) -> bool:
        """Whether the table's row of a name or wildcard decides anything."""
        return bool(self._index.watchers(name))

    def note_table(self, hostnames: Iterable[str]) -> bool:
        """Note that the table's rows of these names have changed. Returns whether that affects any object."""
        touched = dict.fromkeys(key for name in hostnames for key in self._index.watchers(name))
        self._touched |= touched
        return bool(touched)

    def _change(self, key: str, one: DnsEndpoint | Unreadable | None) -> frozenset[str]:
        self._touched.pop(key, None)
        if not isinstance(one, DnsEndpoint):
            self._forget(key)
            unreadable = [rejection_of_unreadable(SOURCE, one)] if one else []
            return self._store.replace(SOURCE, key, [], unreadable)
        records = read_records(one, most=self._most)
        if not records.aliases or records.annotations.target is not None or records.annotations.exclusion is not None:
            self._forget(key)
            return self._store.replace(SOURCE, key, *_contribution(records, {}))
        self._records[key] = records
        self._spread(key, self._index.put(key, records.origin.created, records.aliases))
        return self._evaluate(key, records)

    def _evaluate(self, key: str, records: Records) -> frozenset[str]:
        """Follow the aliases of an object, and replace its claims."""
        self._touched.pop(key, None)
        namespace = records.origin.namespace
        # Each name once: aliases may be a chain, of which each one would be followed to its end.
        own, answering = cache(partial(self._index.own, namespace)), cache(partial(self._answer, namespace))
        chains: Mapping[str, Chain] = {
            name: follow_aliases(name, alias, own=own, answering=answering) for name, alias in records.aliases.items()
        }
        records, chains = self._bound(key, records, chains)
        self._index.watch(key, (name for chain in chains.values() for name in chain.path))
        hostnames = self._store.replace(SOURCE, key, *_contribution(records, chains))
        if not chains or self._store.is_left_out(SOURCE, key):
            # One that is left out will be reported once more; until then nothing of it must take up memory.
            self._forget(key)
        return hostnames

    def _bound(self, key: str, records: Records, chains: Mapping[str, Chain]) -> tuple[Records, Mapping[str, Chain]]:
        """Drop the aliases without a claim that are too many for the namespace, until the object is reported again."""
        unclaimed = [name for name, chain in chains.items() if chain.claim is None]
        dropped = dict.fromkeys(unclaimed[self._index.note_unclaimed(key, len(unclaimed)) :])
        if not dropped:
            return records, chains
        others = f"its namespace has {MOST_UNCLAIMED:,} aliases that claim nothing"
        fault = f"{others}: {len(dropped):,} of this object are left out until it changes"
        aliases = {name: alias for name, alias in records.aliases.items() if name not in dropped}
        self._records[key] = records = replace(records, aliases=aliases, faults=(*records.faults, fault))
        self._spread(key, self._index.put(key, records.origin.created, aliases))
        return records, {name: chains[name] for name in aliases}

    def _answer(self, namespace: str, name: str) -> Claim | None:
        """The claim by which the table answers a name, unless it is an alias or an alias of the namespace may win.

        Otherwise two aliases of each other below a wildcard would take each other's end away and give it back for ever.
        """
        claim = self._answering(name)
        if claim is None or _is_as_narrow(self._index.own_name(namespace, name), claim.hostname):
            return None
        if claim.origin.kind != SOURCE:
            return claim
        place = f"{claim.origin.namespace}/{claim.origin.name}"
        return claim if self._index.alias_of(place, claim.hostname) is None else None

    def _forget(self, key: str) -> None:
        self._touched.pop(key, None)
        if self._records.pop(key, None) is not None:
            self._spread(key, self._index.put(key, "", {}))
            self._index.watch(key, ())
            self._index.note_unclaimed(key, 0)

    def _spread(self, key: str, names: Iterable[str]) -> None:
        """What these names stand for in their namespace has changed."""
        self.note_table(names)
        self._touched.pop(key, None)


class AliasObserver:
    """An observer of the table. `wake` has the source settled soon (SourceFollower.wake)."""

    def __init__(self, source: DnsEndpointSource, *, wake: Callable[[], None]) -> None:
        self._source = source
        self._wake = wake
        self._judged: dict[str, None] = {}

    def judged(self, host: Host, verdict: Verdict, *, before: tuple[str, ...]) -> None:  # noqa: ARG002
        """See TableObserver: its row is read when it is needed."""
        if self._source.is_affected(host.hostname):
            self._judged[host.hostname] = None

    def begin_whole(self) -> None:
        """See TableObserver: what is judged from now on includes every change."""

    def published(self, table: HostTable) -> None:  # noqa: ARG002
        """See TableObserver."""
        judged, self._judged = self._judged, {}
        if self._source.note_table(judged):
            self._wake()


def _contribution(records: Records, chains: Mapping[str, Chain]) -> tuple[list[Claim], list[Rejection]]:
    origin, annotations = records.origin, records.annotations
    rejections = [Rejection(origin, fault) for fault in records.faults]
    rejections += [Rejection(origin, reason, deliberate=True) for reason in records.ignored]
    if annotations.exclusion is not None:
        return [], rejections + rejections_of(origin, annotations, records.names)
    if annotations.target is not None:
        return [_claim(records, name, annotations.target) for name in records.names], rejections
    claims = [_claim(records, name, ",".join(found)) for name, found in records.addresses.items()]
    for name, chain in chains.items():
        if chain.claim is not None:
            claims.append(claim_like(chain.claim, name, origin, alias=records.aliases[name]))
        elif chain.fault:
            rejections.append(Rejection(origin, f"{name}: {chain.fault}"))
    return claims, [*rejections, *_forwarded(origin, chains)]


def _forwarded(origin: Origin, chains: Mapping[str, Chain]) -> Iterator[Rejection]:
    """One for all names of the object: it may have a thousand."""
    outside = [f"{name} -> {chain.path[-1]}" for name, chain in chains.items() if chain.is_outside]
    if outside:
        where = "the name is forwarded, and public DNS answers it"
        reason = f"its alias is in no row of the table: without another claim {where}"
        yield Rejection(origin, f"{cut_list(outside)}: {reason}", deliberate=True)


def _is_as_narrow(name: str | None, other: str) -> bool:
    """Whether the first of two names that cover a third is the narrower one, or both are the same."""
    return name is not None and len(name.removeprefix("*.")) >= len(other.removeprefix("*."))


def _claim(records: Records, name: str, target: str) -> Claim:
    return Claim(name, reach_in_dns(name), records.origin, share_terms(Terms(target=target)))

"""The source of DNSEndpoints: from changes of objects, of the table and of looked-up names to changes of claims.

The law: pure; once settled, the claims depend only on the objects, on how the table answers the names that they stand
for and on what was looked up, never on the order of the changes. Nothing is kept of an object without aliases, nor of
an object that is left out (name_shares.py). So the claims bound the number of kept objects and of names to look up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any

from msgspec.structs import replace

from dnsproxy.dns.addresses import PublicRecord
from dnsproxy.hostnames.claim_sink import ClaimSink
from dnsproxy.hostnames.claims import Claim, Rejection, Terms, share_terms
from dnsproxy.hostnames.targets import OWN
from dnsproxy.hostnames.wildcards import reach_in_dns
from dnsproxy.sources.annotations import rejections_of
from dnsproxy.sources.external_dns.alias_chains import Chain, claim_like, follow_aliases
from dnsproxy.sources.external_dns.alias_index import AliasIndex
from dnsproxy.sources.external_dns.dns_endpoint import MOST_ADDRESSES, SOURCE, DnsEndpoint, Records, read_records
from dnsproxy.sources.unreadable import rejection_of_unreadable
from sidecar.kubernetes.objects import Unreadable


class DnsEndpointSource:
    """Feeds one ClaimSink with the claims of DNSEndpoints.

    `answering`: the claim by which the table answers a name; `known`: the present claims of an object, by key, which
    may be from a snapshot.
    """

    def __init__(
        self,
        store: ClaimSink,
        *,
        most: int | None = None,
        answering: Callable[[str], Claim | None] = lambda _: None,
        known: Callable[[str], Iterable[Claim]] = lambda _: (),
    ) -> None:
        self.on_sought: Callable[[set[str], set[str]], None] = lambda _new, _old: None
        """Gets names to look up, and names that need no look-up any more."""
        self._store = store
        self._most = most
        self._answering = answering
        self._known = known
        self._records: dict[str, Records] = {}
        self._index = AliasIndex()
        self._looked: dict[str, PublicRecord | None] = {}
        """Of the names that are sought: what the upstreams have; None if they gave no answer yet, absent before."""
        self._touched: dict[str, None] = {}

    @property
    def is_settled(self) -> bool:
        """Whether the claims match the reported objects, the table and what was looked up."""
        return not self._touched

    def is_empty(self) -> bool:
        """Whether no trace of any reported object is left."""
        return not (self._records or self._looked or self._touched) and self._index.is_empty

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

    def note_record(self, name: str, record: PublicRecord | None) -> bool:
        """Set what a look-up found; without an answer, the last one stays. Returns whether that affects any object."""
        seekers = self._index.seekers(name)
        if not seekers or (record is None and self._looked.get(name) is not None):
            return False
        found = record._replace(ttl=None) if record is not None else None
        if name in self._looked and self._looked[name] == found:
            return False
        self._looked[name] = found
        self._touched |= dict.fromkeys(seekers)
        return True

    def namespaces(self, name: str) -> Iterator[str]:
        """The namespaces of the objects that need a name looked up."""
        return self._index.namespaces(name)

    def _change(self, key: str, one: DnsEndpoint | Unreadable | None) -> frozenset[str]:
        self._touched.pop(key, None)
        if not isinstance(one, DnsEndpoint):
            self._forget(key)
            unreadable = [rejection_of_unreadable(SOURCE, one)] if one else []
            return self._store.replace(SOURCE, key, [], unreadable)
        records = read_records(one, most=self._most)
        if not records.aliases or records.annotations.target is not None or records.annotations.exclusion is not None:
            self._forget(key)
            return self._store.replace(SOURCE, key, *self._contribution(key, records, {}))
        self._records[key] = records
        self._spread(key, self._index.put(key, records.origin.created, records.aliases))
        return self._evaluate(key, records)

    def _evaluate(self, key: str, records: Records) -> frozenset[str]:
        """Follow the aliases of an object, and replace its claims."""
        self._touched.pop(key, None)
        namespace = records.origin.namespace
        # Each name once: aliases may be a chain, of which each one would be followed to its end.
        own, answering = cache(partial(self._index.own, namespace)), cache(partial(self._answer, namespace))
        chains = {
            name: follow_aliases(name, alias, own=own, answering=answering) for name, alias in records.aliases.items()
        }
        sought = [chain.lookup for chain in chains.values() if chain.lookup is not None]
        self._watch(key, (name for chain in chains.values() for name in chain.path), sought)
        hostnames = self._store.replace(SOURCE, key, *self._contribution(key, records, chains))
        if self._store.is_left_out(SOURCE, key):
            # It will be reported once more; until then nothing of it must take up memory or look-ups.
            self._forget(key)
        return hostnames

    def _contribution(
        self, key: str, records: Records, chains: Mapping[str, Chain]
    ) -> tuple[list[Claim], list[Rejection]]:
        origin, annotations = records.origin, records.annotations
        rejections = [Rejection(origin, fault) for fault in records.faults]
        rejections += [Rejection(origin, reason, deliberate=True) for reason in records.ignored]
        if annotations.exclusion is not None:
            return [], rejections + rejections_of(origin, annotations, records.names)
        if annotations.target is not None:
            return [_claim(records, name, annotations.target) for name in records.names], rejections
        claims = [_claim(records, name, ",".join(found)) for name, found in records.addresses.items()]
        for name, chain in chains.items():
            fault = chain.fault
            if not fault:
                claims.append(self._alias_claim(key, records, name, chain))
                fault = self._fault_of(chain.lookup) if claims[-1].terms.target == OWN else ""
            if fault:
                rejections.append(Rejection(origin, f"{name}: {fault}"))
        return claims, rejections

    def _alias_claim(self, key: str, records: Records, name: str, chain: Chain) -> Claim:
        """Also without an address: so the claim counts in the share of its namespace."""
        alias = records.aliases[name]
        if chain.claim is not None:
            return claim_like(chain.claim, name, records.origin, alias=alias)
        record = self._looked.get(chain.lookup or "")
        if record is not None and record.addresses:
            return _claim(records, name, ",".join(record.addresses[:MOST_ADDRESSES]), declared=(alias,))
        if record is None:
            # Not looked up yet, or the upstreams give no answer: the addresses of the last look-up stay.
            for claim in self._known(key):
                if claim.hostname == name and claim.terms.declared == (alias,) and not claim.terms.annotated:
                    return replace(claim, origin=records.origin)
        return _claim(records, name, OWN, declared=(alias,))

    def _fault_of(self, name: str | None) -> str:
        """Why a looked-up name gives no address; empty if that is not known yet."""
        if name is None or name not in self._looked:
            return ""
        record = self._looked[name]
        if record is None:
            return f"the upstreams do not answer for its alias {name}"
        return f"its alias {name} has no address" if record.exists else f"its alias {name} does not exist"

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

    def _watch(self, key: str, names: Iterable[str], sought: Iterable[str]) -> None:
        new, old = self._index.watch(key, names, sought)
        for name in old:
            self._looked.pop(name, None)
        if new or old:
            self.on_sought(new, old)

    def _forget(self, key: str) -> None:
        self._touched.pop(key, None)
        if self._records.pop(key, None) is not None:
            self._spread(key, self._index.put(key, "", {}))
            self._watch(key, (), ())

    def _spread(self, key: str, names: Iterable[str]) -> None:
        """What these names stand for in their namespace has changed."""
        self.note_table(names)
        self._touched.pop(key, None)


def _is_as_narrow(name: str | None, other: str) -> bool:
    """Whether the first of two names that cover a third is the narrower one, or both are the same."""
    return name is not None and len(name.removeprefix("*.")) >= len(other.removeprefix("*."))


def _claim(records: Records, name: str, target: str, *, declared: tuple[str, ...] = ()) -> Claim:
    return Claim(name, reach_in_dns(name), records.origin, share_terms(Terms(target=target, declared=declared)))

"""Ownership: in which rows of the table public DNS has a say, and which load balancers lead here.

Any tenant can create an Ingress for `login.example.com`, and would receive that name's traffic from every pod. Public
DNS shows where a name leads, so a name that an object claims is answered where it leads here. The law: pure. Static
names, and those of annotations, which count only where the operator gave the right, are the owner's word: nobody is
asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from ipaddress import ip_network
from typing import Final

from dnsproxy.answers.answer_records import Claimed
from dnsproxy.dns.addresses import is_address
from dnsproxy.dns.names import BadName, is_within_any, parse_zone
from dnsproxy.hostnames.claim_store import CHOSEN, BalancerKey
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.targets import Targets
from dnsproxy.replace.balancers import Balancers, Network
from sidecar.values.text import quoted

LINGER: Final = 600.0
"""Seconds for which a replaced address still leads here after it has left the last status: records that are kept longer
are rare, and a cloud gives an address to another customer after some time."""


class Mode(Enum):
    """What public DNS has to say about a name that an object claims (`--ownership`)."""

    OFF = "off"
    WARN = "warn"
    VERIFY = "verify"
    ENFORCE = "enforce"


_CLAIMED = {
    Mode.OFF: Claimed.NO,
    Mode.WARN: Claimed.REPORTED,
    Mode.VERIFY: Claimed.VERIFIED,
    Mode.ENFORCE: Claimed.ENFORCED,
}


class Replace(Enum):
    """Whether replies that lead to a steered controller are replaced, whatever the name (`--replace`)."""

    AUTO = "auto"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class OwnershipSettings:
    """The mode, and what is replaced or trusted whatever the objects say."""

    mode: Mode = Mode.WARN
    zones: tuple[str, ...] = ()
    """Names at or below these are answered without a look: they use a CDN or split-horizon DNS (`--trust ZONE`)."""
    networks: tuple[Network, ...] = ()
    """Addresses that lead here but are in no object's status, such as a NAT router's (`--trust NETWORK`)."""
    replace: bool = False
    """Whether what leads to a steered controller is replaced in every reply (`--replace auto`)."""
    replaced: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What else is, by address (`--replace ADDRESS=TARGET`)."""

    def claimed(self, claim: Claim) -> Claimed:
        """Whether public DNS has a say in the row of a claim that has the name."""
        terms = claim.terms
        # Annotations count only in the operator's right; the target of one has nothing to do with the class's. That of
        # a Gateway is no word on the names of routes: a tenant may attach one for any name.
        if terms.addresses or terms.annotated or (terms.target is not None and not terms.target_from):
            return Claimed.NO
        return Claimed.NO if is_within_any(claim.hostname.removeprefix("*."), self.zones) else _CLAIMED[self.mode]


def find_balancers(
    settings: OwnershipSettings, statuses: Mapping[BalancerKey, Mapping[tuple[str, ...], int]], targets: Targets
) -> Balancers:
    """What leads here: the load balancers in the statuses of objects, by their Gateway and class, and what is set.

    `statuses`: how many claims have each. What several classes and Gateways have, as those that share a load balancer,
    leads here for the names of each, to what they are answered with; for all other names it leads to what the Service
    that names it answers for, then to that with the most claims: an object whose class was edited keeps the status of
    the class before. If that one is not steered, or its Service is not ready, it leads nowhere: pods could reach it, or
    fail as they did. A hostname in the status of
    a Gateway leads nowhere either: its owner may choose it, and `example.com` would lead to him. What a Gateway with a
    target of its own has leads here for claimed names, to what their rows have.
    """
    replaced: dict[str, tuple[str, ...]] = {}
    known: dict[str, tuple[str, ...]] = {}
    named = {one for subject, addresses in targets.balancers.items() if targets.steers(subject) for one in addresses}
    for subject, addresses in sorted(targets.balancers.items()) if settings.replace else ():
        steered = targets.addresses_of_subject(subject) if targets.steers(subject) else ()
        replaced |= {one: steered for one in addresses if steered and one not in replaced}
    for point, owners in _owners(statuses).items():
        rows = [(targets.answers_of(*key), targets.is_automatic(key[1])) for key in owners if key[1] != CHOSEN]
        answers = [(addresses, is_automatic) for addresses, is_automatic in rows if addresses or not is_automatic]
        chosen = {() for key in owners if key[1] == CHOSEN}
        if not answers and not chosen:
            continue
        addresses = answers[0][0] if answers else ()
        # That with the most claims decides: while it has no target, the next one must not get its names.
        first, is_automatic = rows[0] if rows else ((), False)
        if settings.replace and is_automatic and first and point not in named:
            replaced[point] = first
        if settings.mode is not Mode.OFF:
            several = {one for one, _ in answers} | chosen | ({replaced[point]} if point in replaced else set())
            if len(several) > 1:
                known[point] = ()
            elif point not in replaced:
                known[point] = addresses
    known |= {str(network): () for network in settings.networks if settings.mode is not Mode.OFF}
    return Balancers({**replaced, **dict(settings.replaced)}, known)


def with_addresses(balancers: Balancers, addresses: Mapping[str, tuple[str, ...]]) -> Balancers:
    """The same, with the addresses of hostnames; an address that is there already keeps what it has."""
    return Balancers(
        {**_resolved(balancers.replaced, addresses), **balancers.replaced},
        {**_resolved(balancers.known, addresses), **balancers.known},
    )


class LeavingBalancers:
    """Addresses that have left the statuses of objects: records of public DNS, and caches, have them for a while."""

    def __init__(self) -> None:
        self._replaced = _Leaving()
        self._known = _Leaving()

    @property
    def due(self) -> float | None:
        """When the time of the next one is over; None if there is none."""
        return min((until for rows in (self._replaced, self._known) for until in rows.until.values()), default=None)

    def keep(self, found: Balancers, *, now: float) -> Balancers:
        """What leads here, with what did so LINGER ago, as long as its target answers for anything."""
        return Balancers(self._replaced.keep(found.replaced, now), self._known.keep(found.known, now))


class _Leaving:
    """The rows of Balancers.replaced or of Balancers.known."""

    def __init__(self) -> None:
        self.until: dict[str, float] = {}
        self._before: dict[str, tuple[str, ...]] = {}

    def keep(self, found: dict[str, tuple[str, ...]], now: float) -> dict[str, tuple[str, ...]]:
        in_use = set(found.values())
        gone = {one: target for one, target in self._before.items() if one not in found and target in in_use}
        self.until = {one: self.until.get(one, now + LINGER) for one in gone}
        left = {one: target for one, target in gone.items() if self.until[one] > now}
        self.until = {one: self.until[one] for one in left}
        self._before = {**left, **found}
        return self._before


def _resolved(
    rows: Mapping[str, tuple[str, ...]], addresses: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    return {address: target for point, target in rows.items() for address in addresses.get(point, ())}


def _owners(statuses: Mapping[BalancerKey, Mapping[tuple[str, ...], int]]) -> dict[str, list[BalancerKey]]:
    """The Gateways and classes of each load balancer: those with the most claims first, then by name."""
    counts: dict[str, Counter[BalancerKey]] = {}
    for key, several in statuses.items():
        for status, count in several.items():
            for point in status:
                if is_address(point) or not key[0]:
                    counts.setdefault(point, Counter())[key] += count
    return {point: sorted(found, key=partial(_rank, found)) for point, found in counts.items()}


def _rank(found: Counter[BalancerKey], key: BalancerKey) -> tuple[int, str, str]:
    return -found[key], key[0], key[1] or ""


def parse_trust(text: str) -> str | Network:
    """A zone in normal form, or an address or network. Raises ValueError."""
    text = text.strip()
    if "/" in text or is_address(text):
        try:
            network = ip_network(text)
        except ValueError as error:
            raise ValueError(f"{quoted(text)} is not a network: {error}") from None
        if getattr(network.network_address, "ipv4_mapped", None):
            raise ValueError(f"{quoted(text)} has IPv4 addresses in IPv6 form, which no record has; write them as IPv4")
        return network
    zone = parse_zone(text)
    if zone.rpartition(".")[2].isdigit():
        raise BadName(f"{quoted(text)} is neither a zone nor a network such as 192.0.2.0/24")
    return zone

"""A ruleset: our nftables table as a value, and how one becomes another.

The law: only addresses and numbers that Python made are written into it; applying the changes between two rulesets to
the first gives the second, in one transaction; and mappings that mean the same give equal rulesets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, collapse_addresses, ip_network
from itertools import chain
from typing import Final

from wholeip.mappings.mapping import Mapping
from wholeip.ruleset.chains import CHAINS, COLLECTIONS, Chain, Collection, static_part

TABLE: Final = "switchback_wholeip"
"""Of the family inet, which has IPv4 and IPv6 in one table."""
PROTOCOLS: Final = {"tcp": 6, "udp": 17, "sctp": 132}
"""Numbers, for an image may lack /etc/protocols, by which nft reads some names."""
_NEVER_OUTSIDE: Final = tuple(
    ip_network(text) for text in ("169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32", "fe80::/10", "ff00::/8")
)
"""Links and groups: what is sent there is answered here or not at all (RFC 3927, 5771, 4291)."""
_TABLE_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,63}")

Network = IPv4Network | IPv6Network
Elements = MappingOf[str, MappingOf[str, str]]
"""By set or map: each key, and its value or nothing, as nft writes them."""


class BadMapping(ValueError):
    """A mapping that cannot be a rule, or two that contradict each other. A plan must not have any."""


@dataclass(frozen=True)
class Ruleset:
    """All of our table. `static` identifies sets, maps, chains and rules; one that was read may have another."""

    table: str
    elements: Elements
    static: frozenset[str] = field(default_factory=static_part)


@dataclass(frozen=True)
class Transaction:
    """What makes one ruleset of another. With `whole`, the table is made anew and the rest is empty."""

    table: str
    whole: Ruleset | None = None
    deletes: Elements = field(default_factory=dict)
    adds: Elements = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.whole or self.deletes or self.adds)


def make_ruleset(mappings: Iterable[Mapping], *, cluster: Iterable[Network] = (), table: str = TABLE) -> Ruleset:
    """The table for these mappings.

    `cluster` are the networks of pods, Services and nodes: what a pod begins towards them keeps the pod's address, and
    who comes from them keeps its own. Where it is empty, nothing tells the cluster from the rest of the world.

    Raises BadMapping where an address has a scope, families differ, one address and port (or ICMP, or everything)
    belongs to two pods, a pod has two addresses to leave with, or the address of one mapping is the pod of another.
    """
    if not _TABLE_NAME.fullmatch(table):
        raise ValueError(f"{table!r} is no name for a table")
    elements: dict[str, dict[str, str]] = {collection.name: {} for collection in COLLECTIONS}
    known = tuple(mappings)
    pods = {_add_mapping(elements, mapping) for mapping in known}
    for version in ("v4", "v6"):
        if both := elements[f"addresses_{version}"].keys() & pods:
            raise BadMapping(f"{min(both)} is an address of one Service and the pod of another")
    _add_pods_here(elements, (mapping for mapping in known if mapping.here))
    _add_cluster(elements, (*cluster, *_NEVER_OUTSIDE))
    return Ruleset(table, elements)


def format_ruleset(ruleset: Ruleset) -> str:
    """The table for `nft -f -`, in place of the one that may be there, in one transaction."""
    return "".join(f"{line}\n" for line in _table_lines(ruleset))


def changes(current: Ruleset | None, desired: Ruleset) -> Transaction:
    """What is to be done: by element, or the whole table where it is missing or its static part is not ours."""
    if current is None or current.static != desired.static or current.table != desired.table:
        return Transaction(desired.table, whole=desired)
    return Transaction(
        desired.table,
        deletes=_missing_from(desired.elements, current.elements),
        adds=_missing_from(current.elements, desired.elements),
    )


def format_transaction(transaction: Transaction) -> str:
    """For `nft -f -`, which applies all of it or nothing.

    Deletes go first: a bare add of a key that has another value is refused (EEXIST).
    """
    if transaction.whole is not None:
        return format_ruleset(transaction.whole)
    lines = [
        *_element_lines("delete", transaction.table, transaction.deletes, lambda key, _: key),
        *_element_lines("add", transaction.table, transaction.adds, format_element),
    ]
    return "".join(f"{line}\n" for line in lines)


def format_element(key: str, value: str) -> str:
    """An element of a set or, with a value, of a map."""
    return f"{key} : {value}" if value else key


def _add_mapping(elements: dict[str, dict[str, str]], mapping: Mapping) -> str:
    """Add all but what is of this node; give the pod."""
    address, endpoint = _format_address(mapping.address), _format_address(mapping.endpoint)
    version = f"v{mapping.address.version}"
    if mapping.endpoint.version != mapping.address.version:
        raise BadMapping(f"{mapping.service}: {address} and {endpoint} are of two families")
    elements[f"addresses_{version}"][address] = ""
    for name, key in _translated(mapping, address):
        _add(elements[f"{name}_{version}"], key, endpoint, mapping)
    if mapping.egress:
        _add(elements[f"egress_{version}"], endpoint, address, mapping)
    return endpoint


def _add_pods_here(elements: dict[str, dict[str, str]], here: Iterable[Mapping]) -> None:
    # The address that a pod leaves with is also the one that it meets itself with.
    for mapping in sorted(here, key=lambda one: (not one.egress, one.address.version, int(one.address))):
        endpoint, version = str(mapping.endpoint), f"v{mapping.address.version}"
        elements[f"here_{version}"][endpoint] = ""
        elements[f"itself_{version}"].setdefault(f"{endpoint} . {endpoint}", str(mapping.address))


def _translated(mapping: Mapping, address: str) -> Iterator[tuple[str, str]]:
    if mapping.opened is None:
        yield "whole", address
        return
    for port in mapping.opened:
        yield "ports", f"{address} . {PROTOCOLS[port.protocol]} . {int(port.number)}"
    if mapping.icmp:
        yield "icmp", address


def _add(elements: dict[str, str], key: str, value: str, mapping: Mapping) -> None:
    if elements.setdefault(key, value) != value:
        raise BadMapping(f"{mapping.service}: {key} belongs to {elements[key]} and to {value}")


def _format_address(address: IPv4Address | IPv6Address) -> str:
    # A scope (RFC 4007) may hold any text, rules included, and says nothing about an address of a Service.
    if getattr(address, "scope_id", None) is not None:
        raise BadMapping(f"{str(address)!r} has a scope")
    return str(address)


def _add_cluster(elements: dict[str, dict[str, str]], networks: Iterable[Network]) -> None:
    known = tuple(networks)
    collapsed: Iterator[Network] = chain(
        collapse_addresses(network for network in known if isinstance(network, IPv4Network)),
        collapse_addresses(network for network in known if isinstance(network, IPv6Network)),
    )
    for network in collapsed:
        elements[f"cluster_v{network.version}"][_format_network(network)] = ""


def _format_network(network: Network) -> str:
    """As nft lists it: a network of one address is an address."""
    text = _format_address(network.network_address)
    return text if network.prefixlen == network.max_prefixlen else f"{text}/{network.prefixlen}"


def _missing_from(some: Elements, others: Elements) -> Elements:
    """What others have and some lack, or have with another value; sets without any are left out."""
    missing: dict[str, dict[str, str]] = {}
    for name, elements in others.items():
        kept = some.get(name, {})
        # Most are equal, which costs a tenth of a look at each element.
        if elements != kept and (lacking := [item for item in elements.items() if kept.get(item[0]) != item[1]]):
            missing[name] = dict(sorted(lacking))
    return missing


def _table_lines(ruleset: Ruleset) -> Iterator[str]:
    # Only a table that is there can be deleted, and adding one that is there changes nothing.
    yield f"add table inet {ruleset.table}"
    yield f"delete table inet {ruleset.table}"
    yield f"table inet {ruleset.table} {{"
    for collection in COLLECTIONS:
        yield from _collection_lines(collection, ruleset.elements[collection.name])
    for described in CHAINS:
        yield from _chain_lines(described)
    yield "}"


def _collection_lines(collection: Collection, elements: MappingOf[str, str]) -> Iterator[str]:
    yield f"\t{'map' if collection.value else 'set'} {collection.name} {{"
    yield f"\t\ttype {collection.key}{f' : {collection.value}' if collection.value else ''}"
    if collection.interval:
        yield "\t\tflags interval"
    if elements:
        listed = ",\n\t\t\t".join(format_element(key, value) for key, value in sorted(elements.items()))
        yield f"\t\telements = {{\n\t\t\t{listed}\n\t\t}}"
    yield "\t}"


def _chain_lines(described: Chain) -> Iterator[str]:
    yield f"\tchain {described.name} {{"
    if described.hook:
        yield f"\t\ttype {described.kind} hook {described.hook} priority {described.priority}; policy accept;"
    for rule in described.rules:
        yield f'\t\t{rule.text} comment "{rule.comment()}"'
    yield "\t}"


def _element_lines(verb: str, table: str, collections: Elements, write: Callable[[str, str], str]) -> Iterator[str]:
    for name, elements in collections.items():
        yield f"{verb} element inet {table} {name} {{ {', '.join(write(*item) for item in elements.items())} }}"

"""A ruleset: our nftables table as a value, and the changes from one to another.

The law: only addresses and numbers formatted by Python are written into it. The changes between two rulesets, applied
to the first, give the second in one transaction. Equivalent mappings give equal rulesets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final

from wholeip.mappings.mapping import Mapping
from wholeip.ruleset.joined_networks import join_networks
from wholeip.ruleset.static_rules import CHAINS, COLLECTIONS, Chain, Collection, static_part
from wholeip.ruleset.steps import at_once

TABLE: Final = "switchback_wholeip"
"""In the family inet, which has IPv4 and IPv6 in one table."""
PROTOCOLS: Final = {"tcp": 6, "udp": 17, "sctp": 132}
"""Numbers, because an image may lack /etc/protocols, where nft looks up some names."""
NEVER_OUTSIDE: Final = tuple(
    ip_network(text) for text in ("169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32", "fe80::/10", "ff00::/8")
)
"""Link-local and multicast networks: traffic to them never leaves the network (RFC 3927, 5771, 4291)."""
_TABLE_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,63}")

Network = IPv4Network | IPv6Network
Elements = MappingOf[str, MappingOf[str, str]]
"""By set or map: each key, and its value or an empty text, in nft's notation."""


class BadMapping(ValueError):
    """A mapping that cannot be a rule, or two mappings that contradict each other. A plan must not have them."""


@dataclass(frozen=True)
class Ruleset:
    """Our whole table. `static` identifies sets, maps, chains and rules; that of a table that was read may differ."""

    table: str
    elements: Elements
    static: frozenset[str] = field(default_factory=static_part)


@dataclass(frozen=True)
class Transaction:
    """The changes from one ruleset to another. With `whole`, the table is replaced and the rest is empty."""

    table: str
    whole: Ruleset | None = None
    deletes: Elements = field(default_factory=dict)
    adds: Elements = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.whole or self.deletes or self.adds)

    @property
    def size(self) -> int:
        """How many elements its script has."""
        parts = (self.whole.elements,) if self.whole is not None else (self.deletes, self.adds)
        return sum(len(elements) for part in parts for elements in part.values())


def has_mappings(ruleset: Ruleset) -> bool:
    """Whether there is a mapping in it."""
    return any(
        ruleset.elements.get(f"{name}_{version}") for name in ("addresses", "egress") for version in ("v4", "v6")
    )


def make_ruleset(mappings: Iterable[Mapping], *, cluster: Iterable[Network] = (), table: str = TABLE) -> Ruleset:
    """The table for these mappings.

    `cluster` has the networks of pods, Services and nodes: traffic from pods to them keeps the pod's address, and
    traffic from them keeps its source. If it is empty, no network counts as the cluster.

    Raises BadMapping if an address has a scope, families differ, one address and port (or ICMP, or everything) has two
    pods, a pod has two egress addresses, or the address of one mapping is the pod of another.
    """
    return at_once(ruleset_steps(mappings, cluster=cluster, table=table))


def ruleset_steps(
    mappings: Iterable[Mapping], *, cluster: Iterable[Network] = (), table: str = TABLE
) -> Generator[None, None, Ruleset]:
    """The same in steps of a mapping or of a network; a step takes some ten microseconds at most."""
    if not _TABLE_NAME.fullmatch(table):
        raise ValueError(f"{table!r} is not the name of a table")
    elements: dict[str, dict[str, str]] = {collection.name: {} for collection in COLLECTIONS}
    pods: dict[str, Mapping] = {}
    here: dict[str, Mapping] = {}
    for mapping in mappings:
        endpoint = _add_mapping(elements, mapping)
        pods[endpoint] = mapping
        # A pod that reaches itself gets its egress address as the source.
        if mapping.here and (endpoint not in here or _precedence(mapping) < _precedence(here[endpoint])):
            here[endpoint] = mapping
        yield
    for version in ("v4", "v6"):
        if both := elements[f"addresses_{version}"].keys() & pods:
            raise BadMapping(f"{min(both)} is an address of one Service and the pod of another")
    for endpoint, mapping in pods.items():
        _add_pod(elements, endpoint, mapping.endpoint.version, here.get(endpoint))
        yield
    for family, networks in (yield from join_networks((*cluster, *NEVER_OUTSIDE))).items():
        elements[f"cluster_v{family}"] = dict.fromkeys(networks, "")
    return Ruleset(table, elements)


def format_ruleset(ruleset: Ruleset) -> str:
    """The script for `nft -f -` that replaces the table, if there is one, in one transaction."""
    return "".join(f"{line}\n" for line in _table_lines(ruleset))


def changes(current: Ruleset | None, desired: Ruleset) -> Transaction:
    """The changes by element, or the whole table if it is missing or its static part is not ours."""
    if current is None or current.static != desired.static or current.table != desired.table:
        return Transaction(desired.table, whole=desired)
    return Transaction(
        desired.table,
        deletes=_missing_from(desired.elements, current.elements),
        adds=_missing_from(current.elements, desired.elements),
    )


def format_transaction(transaction: Transaction) -> str:
    """The script for `nft -f -`, which applies all of it or nothing.

    Deletes go first: adding a key that has another value is refused (EEXIST).
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
    """Add the elements that are the same on all nodes; returns the pod."""
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


def _precedence(mapping: Mapping) -> tuple[bool, int]:
    return not mapping.egress, int(mapping.address)


def _add_pod(elements: dict[str, dict[str, str]], endpoint: str, version: int, here: Mapping | None) -> None:
    """Add the elements that depend on the node; `here` is the first mapping of a pod of this node."""
    if here is None:
        elements[f"elsewhere_v{version}"][endpoint] = ""
    else:
        elements[f"here_v{version}"][endpoint] = ""
        elements[f"itself_v{version}"][f"{endpoint} . {endpoint}"] = str(here.address)


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
    # A scope (RFC 4007) may hold any text, rules included, and has no meaning for a Service.
    if getattr(address, "scope_id", None) is not None:
        raise BadMapping(f"{str(address)!r} has a scope")
    return str(address)


def _missing_from(some: Elements, others: Elements) -> Elements:
    """The elements of `others` that `some` lacks or has with another value; without empty sets."""
    missing: dict[str, dict[str, str]] = {}
    for name, elements in others.items():
        kept = some.get(name, {})
        # Most sets are equal, and comparing them whole costs a tenth of comparing each element.
        if elements != kept and (lacking := [item for item in elements.items() if kept.get(item[0]) != item[1]]):
            missing[name] = dict(sorted(lacking))
    return missing


def _table_lines(ruleset: Ruleset) -> Iterator[str]:
    # Only an existing table can be deleted, and adding an existing one changes nothing.
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

"""Parses the output of `nft -j list table` (libnftables-json(5)) into a ruleset.

The law: anything that is not understood makes the static part differ, so that the table is replaced. Only a text that
is not a listing raises an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final

from wholeip.ruleset.ruleset import PROTOCOLS, Ruleset
from wholeip.ruleset.static_rules import Chain, Collection, rule_identity

_UNKNOWN: Final = "unknown"


class NoListing(ValueError):
    """The text is not a listing of nft."""


def parse_listing(text: str, table: str) -> Ruleset:
    """The ruleset of this table. Raises NoListing if the text is not JSON or not a list of nftables objects."""
    try:
        objects = json.loads(text)["nftables"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise NoListing(f"not a listing of nft: {text[:80]!r}") from error
    if not isinstance(objects, list):
        raise NoListing("not a list of objects of nftables")
    return _Reading(table).read(objects)


class _Reading:
    """The part that is parsed so far; the rules of a chain arrive in order."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.static: set[str] = set()
        self.elements: dict[str, dict[str, str]] = {}
        self.rules_of: dict[str, int] = {}

    def read(self, objects: list[Any]) -> Ruleset:
        for item in objects:
            try:
                self._read_object(item)
            except (LookupError, ValueError, TypeError, AttributeError):
                # We did not write it, or a newer nft lists it in another form.
                self.static.add(_UNKNOWN)
        return Ruleset(self.table, self.elements, frozenset(self.static))

    def _read_object(self, item: Mapping[str, Any]) -> None:
        ((kind, value),) = item.items()
        if kind == "metainfo" or (kind == "table" and not value.get("flags")):
            return
        if kind == "chain":
            self.static.add(_chain(value))
        elif kind == "rule":
            self._read_rule(value)
        elif kind in {"set", "map"}:
            self._read_collection(value)
        else:
            # Also our table itself if it has a flag: a dormant table does nothing.
            self.static.add(f"{kind} {value.get('name')}")

    def _read_rule(self, value: Mapping[str, Any]) -> None:
        chain = str(value["chain"])
        index = self.rules_of.get(chain, 0)
        self.rules_of[chain] = index + 1
        self.static.add(rule_identity(chain, index, str(value.get("comment", ""))))

    def _read_collection(self, value: Mapping[str, Any]) -> None:
        flags = value.get("flags", [])
        collection = Collection(
            str(value["name"]), _type(value["type"]), _type(value.get("map", "")), interval="interval" in flags
        )
        odd = set(flags) - {"interval"} or "timeout" in value
        self.static.add(f"{collection.identity()} {_UNKNOWN}" if odd else collection.identity())
        self.elements[collection.name] = dict(_element(item, collection) for item in value.get("elem", ()))


def _chain(value: Mapping[str, Any]) -> str:
    chain = Chain(value["name"], (), value.get("type", ""), value.get("hook", ""), int(value.get("prio", 0)))
    return chain.identity() if value.get("policy", "accept") == "accept" else f"{chain.identity()} {value['policy']}"


def _type(value: str | list[str]) -> str:
    return value if isinstance(value, str) else " . ".join(value)


def _element(item: Any, collection: Collection) -> tuple[str, str]:
    if collection.value:
        key, value = item
        return _key(key), _address(value)
    return _key(item), ""


def _key(item: Any) -> str:
    if isinstance(item, str):
        return _address(item)
    if "prefix" in item:
        return f"{_address(item['prefix']['addr'])}/{int(item['prefix']['len'])}"
    if "range" in item:
        first, last = item["range"]
        return f"{_address(first)}-{_address(last)}"
    first, *rest = item["concat"]
    if len(rest) == 1:
        return f"{_address(first)} . {_address(rest[0])}"
    protocol, port = rest
    return f"{_address(first)} . {_number(protocol)} . {int(port)}"


def _number(protocol: str | int) -> int:
    return protocol if isinstance(protocol, int) else PROTOCOLS[protocol]


def _address(text: str) -> str:
    """In normal form: an IPv6 address has several notations (RFC 5952), an IPv4 address one."""
    return text if text[0].isdigit() and ":" not in text else str(ip_address(text))

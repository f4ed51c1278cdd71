"""Writes the requests to read our table from the kernel, and reads its static part (linux/netfilter/nf_tables.h).

The law: a static part that is found to be ours is ours; anything that is not understood makes it differ.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterable, Iterator
from typing import Final

from wholeip.ruleset.netlink import (
    GENERIC_SIZE,
    family_of,
    format_attribute,
    format_message,
    parse_attributes,
    parse_messages,
)
from wholeip.ruleset.static_rules import Chain, Collection, rule_identity

_NFTABLES: Final = 10 << 8  # NFNL_SUBSYS_NFTABLES
_INET: Final = 1  # NFPROTO_INET
_REQUEST, _DUMP = 0x001, 0x300  # NLM_F_*
# NFT_MSG_*; an answer has the number of what makes such an object.
_TABLE, _GET_TABLE, _CHAIN, _GET_CHAIN, _RULE, _GET_RULE, _SET, _GET_SET = 0, 1, 3, 4, 6, 7, 9, 10
_GET_ELEMENTS, _NEW_GENERATION, _GET_GENERATION, _OBJECT, _GET_OBJECT, _FLOWTABLE, _GET_FLOWTABLE = (
    *(13, 15, 16),
    *(18, 19, 22, 23),
)
_TABLE_NAME: Final = 1
"""NFTA_TABLE_NAME, NFTA_CHAIN_TABLE and so on: attribute 1 of each kind."""
_TABLE_FLAGS: Final = 2
_CHAIN_NAME, _CHAIN_HOOK, _CHAIN_POLICY, _CHAIN_TYPE, _CHAIN_FLAGS = 3, 4, 5, 7, 10
_HOOK_NUMBER, _HOOK_PRIORITY = 1, 2
_RULE_CHAIN, _RULE_USER_DATA = 2, 7
_SET_NAME, _SET_FLAGS, _SET_KEY_TYPE, _SET_DATA_TYPE, _SET_TIMEOUT = 2, 3, 4, 6, 11
_GENERATION_ID: Final = 1
_ANONYMOUS, _INTERVAL, _MAP = 0x1, 0x4, 0x8  # NFT_SET_*
_SET_CONSTANT: Final = 0x2
_BASE_CHAIN: Final = 0x1  # NFT_CHAIN_BASE
_ACCEPT: Final = 1  # NF_ACCEPT
_HOOKS: Final = {0: "prerouting", 1: "input", 2: "forward", 3: "output", 4: "postrouting"}
_TYPES: Final = {7: "ipv4_addr", 8: "ipv6_addr", 12: "inet_proto", 13: "inet_service"}
"""nft's numbers of types (enum datatypes); the kernel keeps them for nft. A concatenation has six bits for each."""
_TYPE_BITS: Final = 6
_UNKNOWN: Final = "unknown"
_COMMENT: Final = 0  # NFTNL_UDATA_RULE_COMMENT


def format_static_requests(table: str) -> Iterator[bytes]:
    """The requests for all but the elements; each answer ends with DONE."""
    for kind in (_GET_TABLE, _GET_SET, _GET_CHAIN, _GET_RULE, _GET_OBJECT, _GET_FLOWTABLE):
        yield format_message(_NFTABLES | kind, _REQUEST | _DUMP, _INET, _name(_TABLE_NAME, table))


def format_elements_request(table: str, collection: str) -> bytes:
    """The request for the elements of a set or map; the answer ends with DONE."""
    names = _name(_TABLE_NAME, table) + _name(_SET_NAME, collection)
    return format_message(_NFTABLES | _GET_ELEMENTS, _REQUEST | _DUMP, _INET, names)


def format_element_request(table: str, collection: str, element: bytes) -> bytes:
    """The request for one element (format_element) of a set or map; the answer is it, or an error."""
    names = _name(_TABLE_NAME, table) + _name(_SET_NAME, collection)
    return format_message(_NFTABLES | _GET_ELEMENTS, _REQUEST, _INET, names + element)


def format_generation_request() -> bytes:
    """The request for the number of the last transaction with any table; the answer is one message."""
    return format_message(_NFTABLES | _GET_GENERATION, _REQUEST, 0, b"")


def parse_generation(datagram: bytes) -> int:
    """That number. Raises struct.error or KeyError."""
    for kind, _, body in parse_messages(datagram):
        if kind == _NFTABLES | _NEW_GENERATION:
            return _number(dict(parse_attributes(body[GENERIC_SIZE:]))[_GENERATION_ID])
    raise KeyError("no number of a transaction")


def parse_static(datagrams: Iterable[bytes], table: str) -> Generator[None, None, frozenset[str]]:
    """What identifies the static part, in the form of static_rules.static_part(), in steps of a message.

    The kernel also tells the chains of other tables, and there may be thousands. Raises struct.error.
    """
    reading = _Reading(table)
    for datagram in datagrams:
        for kind, _, body in parse_messages(datagram):
            if kind & ~0xFF == _NFTABLES and family_of(body) == _INET:
                reading.read(kind & 0xFF, dict(parse_attributes(body[GENERIC_SIZE:])))
            yield
    return frozenset(reading.static)


class _Reading:
    """The part that is parsed so far; the rules of a chain arrive in order."""

    def __init__(self, table: str) -> None:
        self.table = table.encode()
        self.static: set[str] = set()
        self.rules_of: dict[str, int] = {}

    def read(self, kind: int, attributes: dict[int, bytes]) -> None:
        if attributes.get(_TABLE_NAME, b"").rstrip(b"\0") != self.table:
            return
        try:
            self.static.update(self._identities(kind, attributes))
        except (LookupError, ValueError, struct.error):
            self.static.add(_UNKNOWN)

    def _identities(self, kind: int, attributes: dict[int, bytes]) -> Iterator[str]:
        if kind == _CHAIN:
            yield _chain(attributes)
        elif kind == _RULE:
            chain = _text(attributes[_RULE_CHAIN])
            index = self.rules_of.get(chain, 0)
            self.rules_of[chain] = index + 1
            yield rule_identity(chain, index, _comment(attributes.get(_RULE_USER_DATA, b"")))
        elif kind == _SET:
            yield from _set(attributes)
        elif kind != _TABLE or _number(attributes.get(_TABLE_FLAGS, bytes(4))):
            # Also our table itself if it has a flag: a dormant table does nothing.
            yield _UNKNOWN


def _chain(attributes: dict[int, bytes]) -> str:
    name = _text(attributes[_CHAIN_NAME])
    if _number(attributes.get(_CHAIN_FLAGS, bytes(4))) & ~_BASE_CHAIN:
        return _UNKNOWN
    if _CHAIN_HOOK not in attributes:
        return Chain(name, ()).identity()
    hook = dict(parse_attributes(attributes[_CHAIN_HOOK]))
    if hook.keys() != {_HOOK_NUMBER, _HOOK_PRIORITY} or _number(attributes[_CHAIN_POLICY]) != _ACCEPT:
        return _UNKNOWN
    (priority,) = struct.unpack("!i", hook[_HOOK_PRIORITY])
    return Chain(name, (), _text(attributes[_CHAIN_TYPE]), _HOOKS[_number(hook[_HOOK_NUMBER])], priority).identity()


def _set(attributes: dict[int, bytes]) -> Iterator[str]:
    flags = _number(attributes.get(_SET_FLAGS, bytes(4)))
    if flags & _ANONYMOUS and not flags & ~(_ANONYMOUS | _SET_CONSTANT | _INTERVAL | _MAP):
        return  # a part of a rule
    if flags & ~(_INTERVAL | _MAP) or _SET_TIMEOUT in attributes:
        yield _UNKNOWN
        return
    value = _type(_number(attributes[_SET_DATA_TYPE])) if flags & _MAP else ""
    key = _type(_number(attributes[_SET_KEY_TYPE]))
    yield Collection(_text(attributes[_SET_NAME]), key, value, interval=bool(flags & _INTERVAL)).identity()


def _type(number: int) -> str:
    parts: list[str] = []
    while number:
        number, last = divmod(number, 1 << _TYPE_BITS)
        parts.insert(0, _TYPES[last])
    return " . ".join(parts)


def _comment(user_data: bytes) -> str:
    """The comment among nft's notes on a rule: each has a type, a length and a value of an octet, an octet and more."""
    offset = 0
    while offset + 2 <= len(user_data):
        kind, length = user_data[offset : offset + 2]
        if kind == _COMMENT:
            return _text(user_data[offset + 2 : offset + 2 + length])
        offset += 2 + length
    return ""


def _name(kind: int, text: str) -> bytes:
    return format_attribute(kind, text.encode() + b"\0")


def _text(octets: bytes) -> str:
    return octets.rstrip(b"\0").decode()


def _number(octets: bytes) -> int:
    (number,) = struct.unpack("!I", octets)
    return int(number)

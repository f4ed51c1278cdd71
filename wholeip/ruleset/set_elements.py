"""Reads the elements of a set or map from the kernel's messages (linux/netfilter/nf_tables.h), in nft's notation.

The law: an element that is not fully understood raises NotUnderstood, so that nft is asked instead. Long work is a
generator that yields after a few elements.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, summarize_address_range
from typing import Final, NamedTuple

from wholeip.ruleset.netlink import (
    GENERIC_SIZE,
    NESTED,
    aligned,
    format_attribute,
    parse_attributes,
    parse_messages,
)
from wholeip.ruleset.static_rules import Collection

NEW_ELEMENTS: Final = 10 << 8 | 12  # NFNL_SUBSYS_NFTABLES, NFT_MSG_NEWSETELEM
_ELEMENTS: Final = 3  # NFTA_SET_ELEM_LIST_ELEMENTS
_ELEMENT: Final = 1  # NFTA_LIST_ELEM
_KEY, _DATA, _FLAGS, _USER_DATA = 1, 2, 3, 6  # NFTA_SET_ELEM_*
_VALUE: Final = 1  # NFTA_DATA_VALUE
_INTERVAL_END: Final = struct.pack("!I", 1)  # NFT_SET_ELEM_INTERVAL_END
_OPEN_END: Final = struct.pack("=BBI", 1, 4, 1)
"""nft's own mark of an interval that ends with the address space (NFTNL_UDATA_SET_ELEM_FLAGS of libnftnl)."""
_ATTRIBUTE_HEADER: Final = struct.Struct("=HH")
_STEP: Final = 16
"""Elements between two yields."""
_LENGTHS: Final = {"ipv4_addr": 4, "ipv6_addr": 16, "inet_proto": 1, "inet_service": 2}
"""By nft's name of a type, its octets."""


class NotUnderstood(ValueError):
    """The kernel answered something that only nft may understand."""


class _Element(NamedTuple):
    key: bytes
    value: bytes | None = None
    """Of a map."""
    ends: bool = False
    """Whether an interval ends before this key."""


class _Layout(NamedTuple):
    """Where an element has its key and its value; most elements of a set have the same layout."""

    fields: struct.Struct
    """Octets, the key, octets, the value, octets."""
    rest: tuple[bytes, bytes, bytes]
    """What is not key and value."""
    is_map: bool


def parse_elements(datagrams: Iterable[bytes], collection: Collection) -> Generator[None, None, dict[str, str]]:
    """The elements of a collection, as in Ruleset.elements. Raises NotUnderstood or struct.error."""
    read = _parse_values(datagrams)
    if collection.interval:
        found = []
        for element in read:
            found.append(element)
            yield
        return (yield from _intervals(found, collection))
    format_key, format_value = _format_of(collection.key), _format_of(collection.value)
    elements = {}
    for number, element in enumerate(read):
        if (element.value is None) is not (collection.value == "") or element.ends:
            raise NotUnderstood("an element of another kind of set")
        elements[format_key(element.key)] = "" if element.value is None else format_value(element.value)
        if number % _STEP == 0:
            yield
    return elements


def format_element(collection: Collection, key: str) -> bytes:
    """The attribute that names an element by its key in nft's notation, of a set or map without intervals.

    Raises ValueError.
    """
    names, parts = collection.key.split(" . "), key.split(" . ")
    packed = [_pack(text, _LENGTHS[name]) for name, text in zip(names, parts, strict=True)]
    whole = packed[0] if len(packed) == 1 else b"".join(one.ljust(aligned(len(one)), b"\0") for one in packed)
    element = format_attribute(_KEY | NESTED, format_attribute(_VALUE, whole))
    return format_attribute(_ELEMENTS | NESTED, format_attribute(_ELEMENT | NESTED, element))


def _pack(text: str, length: int) -> bytes:
    return int(text).to_bytes(length, "big") if text.isdigit() else ip_address(text).packed


def _parse_values(datagrams: Iterable[bytes]) -> Iterator[_Element]:
    for datagram in datagrams:
        for kind, _, body in parse_messages(datagram):
            if kind == NEW_ELEMENTS:
                for name, octets in parse_attributes(body[GENERIC_SIZE:]):
                    if name == _ELEMENTS:
                        yield from _parse_list(octets)


def _parse_list(octets: bytes) -> Iterator[_Element]:
    offset, layout = 0, None
    while offset < len(octets):
        if layout is not None and offset + layout.fields.size <= len(octets):
            before, key, between, value, after = layout.fields.unpack_from(octets, offset)
            if (before, between, after) == layout.rest:
                yield _Element(key, value if layout.is_map else None)
                offset += layout.fields.size
                continue
        length, _ = _ATTRIBUTE_HEADER.unpack_from(octets, offset)
        if length < _ATTRIBUTE_HEADER.size or offset + length > len(octets):
            raise struct.error("an element of an impossible length")
        whole = octets[offset : offset + aligned(length)]
        found = _parse_element(whole[_ATTRIBUTE_HEADER.size : length])
        layout = _layout_of(whole, found)
        yield found
        offset += aligned(length)


def _parse_element(octets: bytes) -> _Element:
    attributes = dict(parse_attributes(octets))
    if not {_KEY} <= attributes.keys() <= {_KEY, _DATA, _FLAGS, _USER_DATA}:
        raise NotUnderstood(f"an element with the attributes {sorted(attributes)}")
    if attributes.get(_FLAGS, _INTERVAL_END) != _INTERVAL_END or attributes.get(_USER_DATA, _OPEN_END) != _OPEN_END:
        raise NotUnderstood("an element with flags or a comment")
    value = _value(attributes[_DATA]) if _DATA in attributes else None
    return _Element(_value(attributes[_KEY]), value, ends=_FLAGS in attributes)


def _value(octets: bytes) -> bytes:
    ((kind, value),) = parse_attributes(octets)
    if kind != _VALUE:
        raise NotUnderstood("an element that is no value")
    return value


def _layout_of(octets: bytes, element: _Element) -> _Layout | None:
    """The layout of an element that has key and value alone; each is in an attribute in an attribute."""
    header = _ATTRIBUTE_HEADER.size
    kinds = [kind for kind, _ in parse_attributes(octets[header:])]
    if kinds != ([_KEY] if element.value is None else [_KEY, _DATA]):
        return None
    key, value = len(element.key), len(element.value or b"")
    between = 0 if element.value is None else aligned(key) - key + 2 * header
    after = len(octets) - 3 * header - key - between - value
    fields = struct.Struct(f"{3 * header}s{key}s{between}s{value}s{after}s")
    rest = fields.unpack(octets)
    return _Layout(fields, (rest[0], rest[2], rest[4]), is_map=element.value is not None)


def _format_of(types: str) -> Callable[[bytes], str]:
    """How octets of these types are written; a part of a concatenation is padded to four octets."""
    parts, place = [], 0
    names = types.split(" . ") if types else []
    for name in names:
        parts.append((slice(place, place + _LENGTHS[name]), _FORMATS[name]))
        place += _LENGTHS[name] if len(names) == 1 else aligned(_LENGTHS[name])

    def format_parts(octets: bytes) -> str:
        if len(octets) != place:
            raise NotUnderstood(f"{len(octets)} octets for {types}")
        return " . ".join([write(octets[part]) for part, write in parts])

    return format_parts


def _format_ipv4(octets: bytes) -> str:
    first, second, third, fourth = octets  # several times as fast as IPv4Address
    return f"{first}.{second}.{third}.{fourth}"


def _format_ipv6(octets: bytes) -> str:
    return str(IPv6Address(octets))


def _format_number(octets: bytes) -> str:
    return str(int.from_bytes(octets, "big"))


_FORMATS: Final[dict[str, Callable[[bytes], str]]] = {
    "ipv4_addr": _format_ipv4,
    "ipv6_addr": _format_ipv6,
    "inet_proto": _format_number,
    "inet_service": _format_number,
}


def _intervals(elements: Iterable[_Element], collection: Collection) -> Generator[None, None, dict[str, str]]:
    """An interval ends before an end, or with the address space. An end that begins the space ends none."""
    length = _LENGTHS[collection.key]
    found, begun = {}, None
    for element in sorted(elements, key=lambda one: (one.key, not one.ends)):
        yield
        if len(element.key) != length or element.value is not None:
            raise NotUnderstood("an interval of another kind of set")
        place = int.from_bytes(element.key, "big")
        if element.ends and begun is not None:
            found[_format_interval(begun, place - 1, length)] = ""
        if not element.ends and begun is not None:
            raise NotUnderstood("an interval in another")
        begun = None if element.ends else place
    if begun is not None:
        found[_format_interval(begun, (1 << 8 * length) - 1, length)] = ""
    return found


def _format_interval(first: int, last: int, length: int) -> str:
    make = IPv4Address if length == _LENGTHS["ipv4_addr"] else IPv6Address
    if first == last:
        return str(make(first))
    networks = list(summarize_address_range(make(first), make(last)))
    return str(networks[0]) if len(networks) == 1 else f"{make(first)}-{make(last)}"

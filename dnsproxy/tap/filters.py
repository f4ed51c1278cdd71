"""The filter of a listener: which queries it wants to see, by name, client, type and outcome.

The law: an empty field wants everything, several values of one field are alternatives, and all fields must match. The
same filter is made from the options of the command and from the fields of `GET /tap`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final

import dns.exception
import dns.rdatatype
import msgspec

from dnsproxy.dns.names import BadName, format_wire, parse_hostname
from dnsproxy.dns.wire import HEADER, question_end
from dnsproxy.tap.seen import Outcome
from sidecar.values.text import quoted

_KNOWN: Final = 4_096  # names whose verdict is remembered; random names must not fill the memory
_LONGEST: Final = 1_000


class BadFilter(ValueError):
    """A field of a filter is not usable; the message says which and why."""


class TapFilter(msgspec.Struct, frozen=True, array_like=True):
    """Which queries to show."""

    names: tuple[str, ...] = ()
    """Lower case, without the final dot; `*` stands for any characters, dots included."""
    clients: tuple[str, ...] = ()
    """Networks, `192.0.2.0/24`; an address is one with its full length."""
    types: tuple[int, ...] = ()
    outcomes: tuple[str, ...] = ()
    """Values of seen.Outcome."""

    @property
    def is_everything(self) -> bool:
        """Whether it wants every query."""
        return not (self.names or self.clients or self.types or self.outcomes)


def parse_name_pattern(text: str) -> str:
    """A hostname, or one with `*` anywhere: `app.example.org`, `*.example.org`, `app-*.example.*`. Raises BadFilter."""
    pattern = text.strip().removesuffix(".")
    if not pattern or len(pattern) > _LONGEST:
        raise BadFilter(f"{quoted(text)} is not a name; try app.example.org or *.example.org")
    if "*" in pattern and pattern.isascii():
        return pattern.lower()
    try:
        return parse_hostname(pattern)
    except BadName as error:
        if pattern.isascii():
            return pattern.lower()  # DNS names may have any octets, and showing them does no harm
        raise BadFilter(str(error)) from None


def parse_client(text: str) -> str:
    """An address or a network. Raises BadFilter."""
    try:
        return str(ip_network(text.strip(), strict=False))
    except ValueError:
        raise BadFilter(f"{quoted(text)} is not an address or network; try 192.0.2.10 or 2001:db8::/32") from None


def parse_type(text: str) -> int:
    """A query type by name or number: `A`, `https`, `TYPE65`, `65`. Raises BadFilter."""
    name = text.strip().upper()
    try:
        return int(dns.rdatatype.from_text(f"TYPE{name}" if name.isascii() and name.isdecimal() else name))
    except (dns.exception.DNSException, ValueError):
        raise BadFilter(f"{quoted(text)} is not a query type; try A, AAAA or TYPE65") from None


def parse_outcome(text: str) -> str:
    """The value of an Outcome. Raises BadFilter."""
    try:
        return Outcome(text.strip().lower()).value
    except ValueError:
        known = ", ".join(one.value for one in Outcome)
        raise BadFilter(f"{quoted(text)} is not an outcome; it is one of {known}") from None


_FIELDS: Final = ("name", "client", "type", "outcome")


def parse_filter(fields: Mapping[str, str]) -> TapFilter:
    """The filter of `GET /tap?name=…&client=…&type=…&outcome=…`; a comma separates values. Raises BadFilter."""
    unknown = sorted(fields.keys() - set(_FIELDS))
    if unknown:
        raise BadFilter(f"{quoted(unknown[0])} is not a field; there are {', '.join(_FIELDS)}")
    values = {field: [part for part in fields.get(field, "").split(",") if part.strip()] for field in _FIELDS}
    return TapFilter(
        names=tuple(map(parse_name_pattern, values["name"])),
        clients=tuple(map(parse_client, values["client"])),
        types=tuple(map(parse_type, values["type"])),
        outcomes=tuple(map(parse_outcome, values["outcome"])),
    )


def format_filter(wanted: TapFilter) -> dict[str, str]:
    """The fields that parse_filter reads."""
    fields = {
        "name": ",".join(wanted.names),
        "client": ",".join(wanted.clients),
        "type": ",".join(dns.rdatatype.to_text(dns.rdatatype.RdataType.make(one)) for one in wanted.types),
        "outcome": ",".join(wanted.outcomes),
    }
    return {field: text for field, text in fields.items() if text}


def merge_filters(wanted: Iterable[TapFilter]) -> TapFilter:
    """A filter that wants at least what each of these wants; there is one or more."""
    filters = list(wanted)

    def merge(field: str) -> tuple[Any, ...]:
        values = [getattr(one, field) for one in filters]
        return tuple(dict.fromkeys(value for each in values for value in each)) if all(values) else ()

    return TapFilter(*map(merge, TapFilter.__struct_fields__))


class Matcher:
    """A filter made ready for many queries."""

    def __init__(self, wanted: TapFilter) -> None:
        self._types = frozenset(wanted.types)
        self._outcomes = frozenset(wanted.outcomes)
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(one) for one in wanted.clients]
        self._names = [name.split("*") for name in wanted.names]
        self._known: dict[bytes, bool] = {}

    def wants_query(self, query: bytes, outcome: Outcome) -> bool:
        """Whether question and outcome match; the cheap part."""
        if self._outcomes and outcome.value not in self._outcomes:
            return False
        if not self._types and not self._names:
            return True
        end = question_end(query)
        if not end or (self._types and int.from_bytes(query[end - 4 : end - 2], "big") not in self._types):
            return False
        return not self._names or self._wants_name(query[HEADER : end - 4].lower())

    def wants_client(self, client: str) -> bool:
        """Whether the address matches."""
        if not self._networks:
            return True
        address = ip_address(client)
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network or address in network for network in self._networks)

    def _wants_name(self, name: bytes) -> bool:
        known = self._known.get(name)
        if known is None:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            text = format_wire(name).removesuffix(".")
            known = self._known[name] = any(_is_like(text, parts) for parts in self._names)
        return known


def _is_like(text: str, parts: Sequence[str]) -> bool:
    """Whether the parts, with any characters between them, make the text. A regular expression could take for ever."""
    first, *between = parts
    if not between:
        return text == first
    last = between.pop()
    position, end = len(first), len(text) - len(last)
    if not (text.startswith(first) and text.endswith(last)) or position > end:
        return False
    for part in between:
        found = text.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True

"""The listing: the rows of the table, as JSON on the admin port and as text, JSON or a hosts file for users.

The law: a received document is a Listing or a ValueError, and none of its characters reaches a terminal unescaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Final

import msgspec

from dnsproxy.dns.names import Reach, is_within_any
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.verdict import LedElsewhere, Verdict
from dnsproxy.hostnames.wildcards import reaches
from sidecar.values.text import align_columns, escape_controls, escaped_json

_SLICE: Final = 50
"""Hostnames encoded in one piece, in less than a millisecond."""
_HEADINGS: Final = ("NAME", "ADDRESSES", "ORIGIN", "CLASS")
_WIDEST: Final = 60
"""Characters of a column; one long name must not push the others off the screen."""


@dataclass(frozen=True, slots=True)
class Row:
    """One hostname of the table, and the claim that has it. The field names are keys of the JSON document."""

    hostname: str
    reach: Reach
    addresses: tuple[str, ...]
    origin: Origin
    class_name: str | None = None
    """The ingress class whose target applied."""
    leads: str = ""
    """Where the public record of the name leads, if that is known to be elsewhere; for a wildcard empty."""
    forwarded: bool = False
    """Whether queries for it are forwarded for that."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The whole table."""

    ttl: int
    """Seconds."""
    notes: tuple[str, ...]
    """Notes on the data: a source that is not synced, the age of a snapshot."""
    names: tuple[Row, ...]


_DECODER: Final = msgspec.json.Decoder(Listing)


def row_of(claim: Claim, verdict: Verdict, elsewhere: LedElsewhere | None = None) -> Row:
    """The row of the winning claim of a name; `elsewhere`: where the name leads, if not here."""
    shown = elsewhere or LedElsewhere(claim.hostname, claim, (), answered=True)
    return Row(
        claim.hostname,
        claim.reach,
        verdict.addresses,
        claim.origin,
        claim.terms.ingress_class,
        shown.reason if elsewhere is not None else "",
        forwarded=not shown.answered,
    )


def format_listing(registry: Registry, *, ttl: int, notes: Sequence[str]) -> Iterator[bytes]:
    """The listing as JSON, in pieces. The registry may change in between: each row is as it is when it is reached."""
    encoder = msgspec.json.Encoder()
    yield b'{"ttl":%d,"notes":%b,"names":[' % (ttl, encoder.encode(list(notes)))
    separator = b"\n"
    hostnames = iter(registry.store.names())
    while part := list(islice(hostnames, _SLICE)):
        rows = [encoder.encode(row) for hostname in part for row in _rows_of(registry, hostname)]
        if rows:
            yield separator + b",\n".join(rows)
            separator = b",\n"
        else:
            yield b""
    yield b"\n]}\n"


def parse_listing(octets: bytes) -> Listing:
    """The listing. Raises ValueError for any other document."""
    try:
        return _DECODER.decode(octets)
    except RecursionError as error:
        raise ValueError(str(error)) from None


def select_rows(rows: Iterable[Row], *, zones: Sequence[str]) -> list[Row]:
    """The rows at or below one of the zones, or all without zones, sorted by labels from the right."""
    chosen = [row for row in rows if not zones or is_within_any(row.hostname.removeprefix("*."), zones)]
    return sorted(chosen, key=lambda row: (row.hostname.split(".")[::-1], row.reach.value, row.addresses))


def format_columns(rows: Sequence[Row]) -> Iterator[str]:
    """Lines of text, the headings first."""
    headings = (*_HEADINGS, "LEADS") if any(row.leads for row in rows) else _HEADINGS
    return align_columns([headings, *(_cells(row)[: len(headings)] for row in rows)], widest=_WIDEST)


def format_json(listing: Listing, rows: Sequence[Row]) -> Iterator[str]:
    """A document in ASCII, one row per line."""
    yield f'{{"ttl": {listing.ttl}, "notes": {escaped_json(list(listing.notes))}, "names": ['
    for number, row in enumerate(rows, 1):
        yield f"  {escaped_json(asdict(row))}{',' if number < len(rows) else ''}"
    yield "]}"


def format_hosts(rows: Iterable[Row]) -> Iterator[str]:
    """Lines of a hosts file that `--hosts-file` reads.

    A wildcard in a hosts file covers any number of labels; a wildcard for one label only becomes a comment.
    """
    for row in rows:
        prefix = "# covers one label only: " if row.reach is Reach.ONE_LABEL else ""
        for address in row.addresses:
            yield escape_controls(f"{prefix}{address} {row.hostname}")


def _rows_of(registry: Registry, hostname: str) -> Iterator[Row]:
    for reach in reaches(hostname):
        verdict = registry.verdict(hostname, reach)
        if verdict.winner is not None:
            yield row_of(verdict.winner, verdict, registry.outcomes.elsewhere_at((hostname, reach)))


def _cells(row: Row) -> tuple[str, ...]:
    cells = (row.hostname, ",".join(row.addresses), str(row.origin), row.class_name or "-", row.leads)
    return tuple(map(escape_controls, cells))

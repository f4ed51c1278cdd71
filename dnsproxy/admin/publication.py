"""The publication: the names of a table and their addresses, as one small document for any number of readers.

The law: pure; the same names give the same tag, in any order and from any replica. A received document is a Publication
or a ValueError, and each name and address in it is in normal form, because they go into files of a node.
"""

from __future__ import annotations

import hashlib
import ipaddress
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import msgspec

from dnsproxy.answers.answer_records import Answers
from dnsproxy.answers.table import HostTable
from dnsproxy.dns.names import Reach, hostname_of, is_wildcard, parse_hostname

LARGEST: Final = 64 << 20
"""Octets of a document, unpacked; 100,000 names are 5 MB."""

_STEP: Final = 40
"""Names written in one step, in a tenth of a millisecond."""
_GZIP: Final = 16 + zlib.MAX_WBITS
_SUMMANDS: Final = 1 << 256


class Name(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One row of the table."""

    hostname: str
    """In normal form, `*.` in front of a wildcard."""
    addresses: tuple[str, ...]
    reach: Reach = Reach.NAME


@dataclass(frozen=True, slots=True)
class Publication:
    """All rows, sorted by labels from the right."""

    ttl: int
    """Seconds."""
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A publication as it is sent."""

    tag: str
    """Equal for equal names; the octets may differ in their order."""
    octets: bytes
    """JSON, gzipped."""
    names: int


class _Parsed(msgspec.Struct):
    ttl: int
    names: list[Name]


_DECODER: Final = msgspec.json.Decoder(_Parsed)


def rows_of(table: HostTable) -> Iterator[Name | None]:
    """The rows of a table that are answered, in no particular order; None for each that is forwarded."""
    for wire, answers in table.exact.items():
        yield Name(hostname_of(wire), answers.addresses) if _is_answered(answers, table) else None
    for wire, wildcard in table.wildcards.items():
        for reach, one in ((Reach.ONE_LABEL, wildcard.one_label), (Reach.ANY_LABELS, wildcard.any_labels)):
            if one is not None:
                yield Name(f"*.{hostname_of(wire)}", one.addresses, reach) if _is_answered(one, table) else None


def names_of(table: HostTable) -> Iterator[Name]:
    """The same without None."""
    return (name for name in rows_of(table) if name is not None)


def write_document(names: Iterable[Name | None], *, ttl: int) -> Generator[None, None, Document]:
    """The document, in steps of a tenth of a millisecond, so that no query waits for it; None is not in it."""
    encoder, packer = msgspec.json.Encoder(), zlib.compressobj(wbits=_GZIP)
    head = b'{"ttl":%d,"names":[' % ttl
    packed, tags, count = [packer.compress(head)], 0, 0
    left = iter(names)
    while rows := list(islice(left, _STEP)):
        part = [encoder.encode(name) for name in rows if name is not None]
        if not part:
            yield
            continue
        tags += sum(int.from_bytes(hashlib.sha256(row).digest()) for row in part)
        packed.append(packer.compress((b",\n" if count else b"\n") + b",\n".join(part)))
        count += len(part)
        yield
    packed += (packer.compress(b"\n]}\n"), packer.flush())
    # A sum, because replicas have the same rows in different orders, and sorting them would be one long step.
    tag = hashlib.sha256(b"%b%d %d" % (head, count, tags % _SUMMANDS)).hexdigest()[:32]
    return Document(tag, b"".join(packed), count)


def format_document(publication: Publication) -> Document:
    """The document in one go, always the same for the same names."""
    steps = write_document(publication.names, ttl=publication.ttl)
    try:
        while True:
            next(steps)
    except StopIteration as done:
        document: Document = done.value
        return document


def parse_document(octets: bytes) -> Publication:
    """The publication. Raises ValueError for any other or an incomplete document."""
    try:
        parsed = _DECODER.decode(_unpacked(octets))
    except (zlib.error, RecursionError) as error:
        raise ValueError(str(error)) from None
    parsed.names.sort(key=sort_key)
    _check(parsed.names)
    return Publication(parsed.ttl, tuple(parsed.names))


def sort_key(name: Name) -> str:
    """By labels from the right, so that the names of a domain are adjacent.

    One text, because lists of labels took half of the memory of a reader of 500,000 names.
    """
    # The empty label puts a name in front of the names below it.
    return "\0".join((*reversed(name.hostname.split(".")), "", name.reach.value))


def _is_answered(answers: Answers, table: HostTable) -> bool:
    return bool(answers.by_type) and answers.service not in table.unready


def _unpacked(octets: bytes) -> bytes:
    inflater = zlib.decompressobj(wbits=_GZIP)
    unpacked = inflater.decompress(octets, LARGEST)
    if not inflater.eof or inflater.unused_data:
        raise ValueError(f"it is cut, or larger than {LARGEST >> 20} MiB")
    return unpacked


def _check(names: Sequence[Name]) -> None:
    """Names in order. Raises ValueError."""
    addresses: set[str] = set()
    for before, name in zip([None, *names], names, strict=False):
        if parse_hostname(name.hostname) != name.hostname:
            raise ValueError(f"{name.hostname!a} is not in normal form")
        if is_wildcard(name.hostname) != (name.reach is not Reach.NAME):
            raise ValueError(f"{name.hostname!a} does not reach {name.reach.value}")
        if not name.addresses:
            raise ValueError(f"{name.hostname!a} has no address")
        if before and (before.hostname, before.reach) == (name.hostname, name.reach):
            raise ValueError(f"{name.hostname!a} comes twice")
        addresses.update(name.addresses)
    for address in addresses:
        if "%" in address or str(ipaddress.ip_address(address)) != address:
            raise ValueError(f"{address!a} is not an address in normal form")

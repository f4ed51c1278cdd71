"""Hypothesis strategies: queries for a small zone in every variant, and octets that are mutated queries."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st

from tests.kit.messages import (
    AAAA,
    ANY,
    HTTPS,
    IXFR,
    MX,
    SVCB,
    TXT,
    A,
    opt_record,
    option,
    query,
    table_of,
    tsig_record,
    wire_name,
)

LONG_NAME: Final = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])
"""255 octets in wire form."""

MANY_A: Final = tuple(f"192.0.2.{number}" for number in range(1, 41))
HUNDREDS: Final = tuple(f"198.51.{number % 100}.{number % 250 + 1}" for number in range(200))

ZONE: Final = {
    "app.example.org": ("192.0.2.10",),
    "both.example.org": ("192.0.2.11", "2001:db8::11"),
    "six.example.org": ("2001:db8::12",),
    "many.example.org": MANY_A,
    "hundreds.example.org": HUNDREDS,
    "example.net": ("192.0.2.13", "192.0.2.14", "2001:db8::13", "2001:db8::14"),
    LONG_NAME: ("192.0.2.15",),
    "*.one.example.org": ("192.0.2.16",),
    "**.any.example.org": ("192.0.2.17", "2001:db8::17"),
}
"""Rows of a table in the notation of messages.parse_host, and their addresses."""

TABLE: Final = table_of(*(f"{name} {' '.join(addresses)}" for name, addresses in ZONE.items()))

OUR_TYPES: Final = (A, AAAA, HTTPS, SVCB, ANY)

hostname_labels = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=63)
octet_labels = st.binary(min_size=1, max_size=63)


def case_of(name: bytes, bits: int) -> bytes:
    """The name with upper case letters at the set bits (0x20)."""
    return bytes(
        octet - 32 if 0x61 <= octet <= 0x7A and bits >> index & 1 else octet for index, octet in enumerate(name)
    )


def long_name(size: int) -> str:
    """A name of this many octets in wire form."""
    labels = []
    left = size - 1
    while left:
        taken = min(left, 64) - (left == 65)
        labels.append("a" * (taken - 1))
        left -= taken
    return ".".join(labels)


@dataclass(frozen=True)
class Asked:
    """A query for a name of ZONE, and the facts about it."""

    message: bytes
    question: bytes
    qtype: int
    flags: int
    addresses: tuple[str, ...]
    edns: tuple[int, int] | None
    """UDP size and flags of the OPT."""
    stream: bool


@st.composite
def table_names(draw: st.DrawFn, labels: st.SearchStrategy[str] = hostname_labels) -> tuple[str, tuple[str, ...]]:
    """A name that ZONE answers, and its addresses."""
    row, addresses = draw(st.sampled_from(sorted(ZONE.items())))
    stars, _, parent = row.rpartition("*.")
    if row == parent:
        return row, addresses
    count = draw(st.integers(1, 3)) if stars else 1
    above = draw(st.lists(labels, min_size=count, max_size=count))
    return ".".join([*above, parent]), addresses


plain_options = st.lists(st.tuples(st.integers(0, 0xFFFF), st.binary(max_size=8)), max_size=3).map(
    lambda pairs: b"".join(option(code, data) for code, data in pairs)
)

udp_sizes = st.sampled_from((0, 1, 511, 512, 513, 1220, 1232, 1233, 4096, 65535)) | st.integers(0, 0xFFFF)


@st.composite
def table_queries(draw: st.DrawFn) -> Asked:
    """A well-formed query for a name and type of ours: any flags, case, EDNS of version 0, transport."""
    name, addresses = draw(table_names())
    qtype = draw(st.sampled_from(OUR_TYPES))
    # Any bits but QR and the opcode.
    flags = draw(st.integers(0, 0xFFFF)) & 0x07FF
    asked_name = case_of(wire_name(name), draw(st.integers(0, 2**64 - 1)))
    edns = draw(st.none() | st.tuples(udp_sizes, st.sampled_from((0, 0x8000)) | st.integers(0, 0xFFFF)))
    additional: tuple[bytes, ...] = ()
    if edns is not None:
        additional = (opt_record(edns[0], flags=edns[1], options=draw(st.just(b"") | plain_options)),)
    message = query(asked_name, qtype, flags=flags, ident=draw(st.integers(0, 0xFFFF)), additional=additional)
    echoed = asked_name + struct.pack("!HH", qtype, 1)
    return Asked(message, echoed, qtype, flags, addresses, edns, draw(st.booleans()))


@st.composite
def near_queries(draw: st.DrawFn) -> bytes:
    """A query for a name of ours, or a mutated one: lengthened, cut or with a few changed octets."""
    message = bytearray(draw(table_queries()).message)
    for _ in range(draw(st.integers(0, 3))):
        message[draw(st.integers(0, len(message) - 1))] = draw(st.integers(0, 255))
    cut = draw(st.integers(0, len(message)) | st.just(len(message)))
    return bytes(message[:cut]) + draw(st.just(b"") | st.binary(max_size=20))


SEEDS: Final = (
    query("app.example.org"),
    query("ExAmPlE.nEt", AAAA, additional=(opt_record(),)),
    query("w.one.example.org", HTTPS, additional=(opt_record(4096, flags=0x8000),)),
    query("x.y.any.example.org", additional=(opt_record(1232, options=option(10, bytes(8)) + option(12, bytes(9))),)),
    query("many.example.org", additional=(opt_record(512),)),
    query(LONG_NAME, ANY),
    query("other.example.com", MX, additional=(opt_record(), tsig_record())),
    query("", 2),
    query("app.example.org", TXT, klass=3),
    query("app.example.org", IXFR),
    query("app.example.org", additional=(opt_record(version=1),)),
)
"""Valid queries to mutate: one for each path through the decision."""


def mutate(message: bytes, chance: random.Random, others: Sequence[bytes] = SEEDS) -> bytes:
    """A message with a few faults of networks and attackers; the same random source gives the same octets."""
    mutated = bytearray(message)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        position = chance.randrange(len(mutated) + 1)
        match chance.randrange(7):
            case 0 | 1 if mutated:
                mutated[position % len(mutated)] = chance.randrange(256)
            case 2 if mutated:
                mutated[position % len(mutated)] ^= 1 << chance.randrange(8)
            case 3:
                del mutated[position:]
            case 4:
                mutated[position:position] = chance.randbytes(chance.choice((1, 2, 11, 64)))
            case 5:
                # The counts are wrong far more often than at random.
                mutated[4:12] = struct.pack("!HHHH", *(chance.choice((0, 0, 1, 1, 2, 3, 0xFFFF)) for _ in range(4)))
            case _:
                mutated[position:] = chance.choice(others)[position:]
    return bytes(mutated)

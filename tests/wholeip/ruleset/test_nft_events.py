"""Notifications of the kernel: who made a change; an unreadable message counts as a change. netlink.py too."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholeip.ruleset.nft_events import is_change, parse_events

INET, IP = 1, 2
NEW_TABLE, NEW_SET_ELEMENT, NEW_GENERATION = 0x0A00, 0x0A0C, 0x0A0F
OURS, OTHERS = 4711, 4712


def attribute(kind: int, value: bytes) -> bytes:
    padded = value + bytes(-len(value) % 4)
    return struct.pack("=HH", 4 + len(value), kind) + padded


def event(table: bytes, *, kind: int = NEW_TABLE, family: int = INET, port: int = OTHERS, more: bytes = b"") -> bytes:
    body = struct.pack("=BBH", family, 0, 0) + more + attribute(1, table + b"\0")
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, port) + body


@pytest.mark.parametrize(
    ("datagram", "expected"),
    [
        pytest.param(event(b"ours"), True, id="our table"),
        pytest.param(
            event(b"ours", kind=NEW_SET_ELEMENT, more=attribute(2, b"set\0")), True, id="after another attribute"
        ),
        pytest.param(event(b"other") + event(b"ours"), True, id="the second of a datagram"),
        pytest.param(event(b"ours", port=OURS) + event(b"ours"), True, id="after one of our own"),
        pytest.param(event(b"ours", port=OURS), False, id="our own"),
        pytest.param(event(b"other"), False, id="another table"),
        pytest.param(event(b"ours_too"), False, id="a table that begins like ours"),
        pytest.param(event(b"ours", family=IP), False, id="another family"),
        pytest.param(event(b"ours", kind=NEW_GENERATION), False, id="the end of a transaction"),
        pytest.param(event(b"ours", kind=0x0100), False, id="another subsystem"),
        pytest.param(b"", False, id="nothing"),
        pytest.param(b"\0", True, id="one octet"),
        pytest.param(event(b"other")[:-1], True, id="cut off"),
        pytest.param(struct.pack("=IHHII", 4, NEW_TABLE, 0, 0, 0), True, id="shorter than its header"),
        pytest.param(struct.pack("=IHHII", 16, NEW_TABLE, 0, 0, 0), True, id="without a family"),
        pytest.param(struct.pack("=IHHII", 0, 0, 0, 0, 0), True, id="no length, which never ends"),
        pytest.param(
            struct.pack("=IHHIIBBHHH", 24, NEW_TABLE, 0, 0, 0, INET, 0, 0, 0, 0),
            True,
            id="an attribute without a length",
        ),
        pytest.param(event(b"\xff\xfe"), True, id="a name that is no text"),
    ],
)
def test_a_change_is_of_our_table_and_by_somebody_else(datagram: bytes, expected: bool) -> None:
    assert is_change(datagram, "ours", frozenset({OURS})) is expected


def test_an_event_of_no_table_of_this_family_has_none() -> None:
    (told,) = parse_events(event(b"ours", family=IP))
    assert (told.by, told.table) == (OTHERS, None)


@given(st.binary(max_size=200))
def test_whatever_comes_is_judged(datagram: bytes) -> None:
    assert is_change(datagram, "ours", frozenset()) in {True, False}


@given(st.binary(max_size=60))
def test_whatever_an_event_holds_is_judged(body: bytes) -> None:
    datagram = struct.pack("=IHHII", 16 + len(body), NEW_TABLE, 0, 0, OTHERS) + body
    assert is_change(datagram, "ours", frozenset()) in {True, False}

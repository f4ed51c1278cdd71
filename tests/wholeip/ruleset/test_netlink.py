"""Netlink messages; test_ctnetlink.py, test_nft_events.py and test_rtnetlink.py have those of the kernel's parts."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholeip.ruleset.netlink import DONE, format_attribute, is_interrupted, parse_answer, parse_attributes


def message(body: bytes, *, kind: int = 0xA0C, flags: int = 2) -> bytes:
    padded = body + bytes(-len(body) % 4)
    return struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + padded


@pytest.mark.parametrize(
    ("datagram", "expected"),
    [
        pytest.param(b"", False, id="nothing"),
        pytest.param(message(b"abc"), False, id="a whole dump"),
        pytest.param(message(b"abc", flags=0x12), True, id="its first message"),
        pytest.param(message(b"abc") + message(b"abcd", flags=0x12), True, id="its second"),
        pytest.param(message(b"abc") + message(bytes(4), kind=DONE, flags=0x12), True, id="its end"),
    ],
)
def test_an_interrupted_dump_says_so(datagram: bytes, expected: bool) -> None:
    assert is_interrupted(datagram) is expected


@pytest.mark.parametrize(
    ("datagram", "expected"),
    [
        pytest.param(message(b"", kind=DONE), 0, id="an end without a number"),
        pytest.param(message(struct.pack("=i", -4), kind=DONE), 4, id="an end that is an error"),
    ],
)
def test_a_dump_may_end_with_an_error(datagram: bytes, expected: int) -> None:
    assert parse_answer(datagram) == expected


@given(st.lists(st.tuples(st.integers(0, 100), st.binary(max_size=9)), min_size=1, max_size=3))
def test_attributes_are_read_as_they_were_written_and_refused_if_the_last_is_cut_off(
    attributes: list[tuple[int, bytes]],
) -> None:
    octets = b"".join(format_attribute(*one) for one in attributes)
    assert [*parse_attributes(octets)] == attributes
    *_, (_, last) = attributes
    padding = -len(last) % 4
    assert [*parse_attributes(octets[: len(octets) - padding])] == attributes
    for missing in range(padding + 1, padding + len(last) + 4):
        with pytest.raises(struct.error):
            list(parse_attributes(octets[:-missing]))


@given(st.binary(max_size=100))
def test_any_octets_are_read_or_refused(datagram: bytes) -> None:
    with contextlib.suppress(struct.error):
        is_interrupted(datagram)
    with contextlib.suppress(struct.error):
        parse_answer(datagram)
    with contextlib.suppress(struct.error):
        list(parse_attributes(datagram))

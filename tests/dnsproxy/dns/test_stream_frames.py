"""Messages in a stream: whole, octet by octet, and followed by the next one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.stream_frames import format_message, is_whole, take_message
from tests.kit.messages import query

SIZES = (0, 1, 11, 12, 255, 256, 257, 65534, 65535)


@pytest.mark.parametrize("size", SIZES)
def test_a_message_of_every_length_comes_out_as_it_went_in(size: int) -> None:
    message = bytes(size)
    received = bytearray(format_message(message))
    assert len(received) == size + 2
    assert is_whole(received)
    assert take_message(received) == message
    assert received == b""


@pytest.mark.parametrize("message", [b"", b"a", query("app.example.org")], ids=len)
def test_nothing_is_whole_before_its_last_octet(message: bytes) -> None:
    received = bytearray()
    for octet in format_message(message):
        assert not is_whole(received)
        received.append(octet)
    assert is_whole(received)


@given(st.lists(st.binary(max_size=300), max_size=5), st.binary(max_size=1))
def test_messages_come_out_in_order_and_the_rest_stays(messages: list[bytes], rest: bytes) -> None:
    received = bytearray(b"".join(map(format_message, messages)) + rest)
    taken = []
    while is_whole(received):
        taken.append(take_message(received))
    assert taken == messages
    assert received == rest


@given(st.binary(max_size=64))
def test_any_octets_are_messages_and_a_rest(octets: bytes) -> None:
    received = bytearray(octets)
    again = b""
    while is_whole(received):
        again += format_message(take_message(received))
    assert again + received == octets


def test_a_message_too_long_for_its_prefix_is_an_error_of_ours() -> None:
    with pytest.raises(OverflowError):
        format_message(bytes(65536))

from __future__ import annotations

import struct

import pytest

from dnsproxy.answers.decide import Drop, Refuse, decide
from tests.bench.dns import bombs
from tests.kit.messages import query, question, table_of

OURS = "app.example.org"
SIZES = pytest.mark.parametrize("size", [*bombs.SIZES, bombs.STREAM_SIZE])


@SIZES
def test_every_pointer_leads_to_the_next_until_they_cannot_reach_further(size: int) -> None:
    octets = bombs.chain(12, size - 12)
    pointers = struct.unpack(f"!{len(octets) // 2}H", octets)
    for position, pointer in enumerate(pointers):
        expected = 12 + 2 * position + 2
        assert pointer == 0xC000 | (expected if expected < 0x4000 else 12)


@SIZES
def test_bombs_have_the_size_that_was_asked_for_but_for_half_a_pointer(size: int) -> None:
    sizes = [
        len(bombs.query_bomb(size)),
        len(bombs.masked_bomb(question(OURS), size)),
        len(bombs.reply_bomb(query(OURS), size)),
    ]
    assert all(size - 1 <= found <= size for found in sizes)


@SIZES
def test_a_bomb_is_refused_or_dropped(size: int) -> None:
    table = table_of(f"{OURS} 192.0.2.80")
    for message in (bombs.query_bomb(size), bombs.masked_bomb(question(OURS), size)):
        assert isinstance(decide(message, table, stream=True), Refuse | Drop)


def test_a_reply_bomb_begins_like_a_reply_to_its_query() -> None:
    message = query("random.example.net", ident=0xABCD)
    reply = bombs.reply_bomb(message, 512)
    assert reply[:4] == b"\xab\xcd\x81\x80"
    assert reply[12 : len(message)] == message[12:]

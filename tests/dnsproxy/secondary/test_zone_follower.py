"""A replica and a primary that does everything wrong: the last table stays, the fault is logged once, and it recovers.

fetch.py is tested here too.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Final

import pytest
import structlog.testing
import trio

from dnsproxy.dns import wire
from dnsproxy.secondary import fetch, progress
from dnsproxy.zone import reading
from dnsproxy.zone.content import Piece
from dnsproxy.zone.requests import format_notify
from dnsproxy.zone.signing import Signer, _parse_rdata, find_tsig
from dnsproxy.zone.table_zone import APEX, owner_of
from dnsproxy.zone.tsig_keys import TsigKey
from dnsproxy.zone.zone_records import format_zone_addresses, format_zone_record
from tests.kit.dns_server import wait_until
from tests.kit.faulty_upstream import Close, Part, Pause, Reset, Step, faulty_upstream
from tests.kit.messages import record, wire_name
from tests.kit.zone_replicas import (
    APP,
    CONTROL,
    NEW,
    following,
    increment,
    is_axfr,
    piece_of,
    replies,
    row_piece,
    soa,
    whole,
)
from tests.kit.zone_sides import TABLE_ZONE, ZONE

Script = Callable[[bytes], list[Step]]
KEY: Final = TsigKey("transfer", "hmac-sha256", b"0123456789abcdef")
LOST: Final = "no primary gives the table; the last one stays"
AGAIN: Final = "a primary answers again"
OWNER: Final = owner_of("new.example.org", TABLE_ZONE)


def steps(messages: list[bytes], *more: Step) -> list[Step]:
    return [*messages, *more]


def first(asked: bytes) -> list[Step]:
    return steps(whole(asked, 1, CONTROL, APP))


def second(asked: bytes) -> list[Step]:
    """Version 2, by a difference or whole."""
    if is_axfr(asked):
        return steps(whole(asked, 2, CONTROL, NEW))
    return steps(increment(asked, 1, 2, deleted=[APP], added=[NEW]))


def newer(asked: bytes) -> list[Step]:
    """Over UDP the SOA alone: the client is to ask over TCP."""
    return steps(replies(asked, [soa(2)]))


def at_2(*pieces: Piece, last: int = 2) -> Script:
    return lambda asked: steps(whole(asked, 2, *pieces, last=last))


def rcode(code: int) -> Script:
    return lambda asked: [asked[:2] + struct.pack("!HHHHH", 0x8000 | code, 1, 0, 0, 0) + question(asked)]


def question(asked: bytes) -> bytes:
    return asked[12 : wire.question_end(asked)]


def answer(*records: bytes, count: int = 1) -> Script:
    return lambda asked: [
        asked[:2] + struct.pack("!HHHHH", 0x8400, 1, count, 0, 0) + question(asked) + b"".join(records)
    ]


def chain(asked: bytes) -> list[Step]:
    """A name with thousands of pointers."""
    head = asked[:2] + struct.pack("!HHHHH", 0x8400, 1, 3, 0, 0) + question(asked) + SOA_2
    start = len(head) + 12
    pointers = b"".join(struct.pack("!H", 0xC000 | (start + 2 * max(0, number - 1))) for number in range(7_000))
    owner = struct.pack("!H", 0xC000 | (start + 2 * 6_999))
    return [head + record(16, b"\xc0\x0c" + pointers[2:]) + record(16, b"\0", owner=owner)]


def after(found: list[Step], position: int) -> bytes:
    """The first message from an offset on."""
    message = found[0]
    assert isinstance(message, bytes)
    return message[position:]


A_RECORD: Final = Piece(1, format_zone_addresses(b"\x03app", ("192.0.2.1",), ttl=5)[0])
OUTSIDE: Final = record(16, b"\2{}", owner=wire_name("other.example.net"))
SOA_2: Final = soa(2).octets

FAULTS: Final = [
    pytest.param(lambda _: [Close()], "closed the connection", id="closes at once"),
    pytest.param(lambda _: [Reset()], "cannot be reached", id="resets at once"),
    pytest.param(lambda asked: [Part(b"\x40\0" + asked[:2]), Close()], "closed the connection", id="half a message"),
    pytest.param(
        lambda asked: [replies(asked, [soa(2), CONTROL])[0], Close()], "closed the connection", id="amid the zone"
    ),
    pytest.param(lambda _: [b""], "another question", id="an empty message"),
    pytest.param(lambda _: [bytes(40)], "another question", id="zeros"),
    pytest.param(lambda _: [b"\xff" * 100], "another question", id="ones"),
    pytest.param(lambda asked: [bytes([asked[0] ^ 1]) + after(second(asked), 1)], "another question", id="another ID"),
    pytest.param(
        lambda asked: steps(replies(asked, [soa(2), CONTROL, soa(2)], zone=ZONE)), "another question", id="another zone"
    ),
    pytest.param(lambda asked: [asked], "no answer to a query", id="the request itself"),
    pytest.param(
        lambda asked: [asked[:2] + b"\xa4\0" + after(second(asked), 4)], "no answer to a query", id="another opcode"
    ),
    pytest.param(lambda asked: [asked[:2] + b"\x86\0" + after(second(asked), 4)], "it is truncated", id="truncated"),
    pytest.param(rcode(5), "REFUSED", id="REFUSED"),
    pytest.param(rcode(9), "NOTAUTH", id="NOTAUTH"),
    pytest.param(rcode(2), "no table yet", id="SERVFAIL"),
    pytest.param(rcode(1), "FORMERR", id="FORMERR"),
    pytest.param(rcode(14), "RCODE14", id="a code without a name"),
    pytest.param(rcode(0), "no records", id="no records"),
    pytest.param(
        lambda asked: steps(replies(asked, [CONTROL, soa(2)])), "does not begin with a SOA", id="no SOA first"
    ),
    pytest.param(at_2(CONTROL, last=3), "serials do not lead", id="another SOA at the end"),
    pytest.param(at_2(CONTROL, A_RECORD), "it is another zone", id="addresses"),
    pytest.param(at_2(A_RECORD, A_RECORD), "it is another zone", id="a policy zone"),
    pytest.param(answer(SOA_2, OUTSIDE, SOA_2, count=3), "outside the zone", id="a record of another zone"),
    pytest.param(answer(SOA_2, count=9), "cut short", id="more records counted than there are"),
    pytest.param(answer(SOA_2, b"\0\0\0", count=1), "octets after", id="octets after the records"),
    pytest.param(answer(SOA_2[:-4], count=1), "cut short", id="a SOA that is cut"),
    pytest.param(answer(record(6, b"\0\0\0\0"), count=1), "malformed", id="a SOA without a serial"),
    pytest.param(chain, "pointers", id="a name of pointers"),
    pytest.param(at_2(), "nothing but its SOA", id="a zone of nothing"),
    pytest.param(at_2(NEW), "no control record", id="no control record"),
    pytest.param(at_2(CONTROL, piece_of(OWNER, b"{}")), "a row is not readable", id="a row that is none"),
    pytest.param(at_2(CONTROL, piece_of(b"\x03app", b'["new.example.org",[]]')), "another owner", id="another's row"),
    pytest.param(at_2(piece_of(APEX, b'{"format":99,"ttl":5}')), "format 99", id="a later format"),
    pytest.param(at_2(CONTROL, row_piece("new.example.org", "nowhere")), "a row is not readable", id="a bad address"),
    pytest.param(
        at_2(CONTROL, Piece(1, format_zone_record(OWNER, 16, 5, b"\xff{}"))), "cut short", id="a string that is cut"
    ),
]


@pytest.mark.parametrize(("fault", "reason"), FAULTS)
async def test_the_table_stays_and_the_fault_is_logged_once(fault: Script, reason: str) -> None:
    with structlog.testing.capture_logs() as logged:
        async with faulty_upstream(newer, first) as primary, following(primary.endpoint) as replica:
            await replica.wait_for(1)
            await wait_until(lambda: replica.keeper.waiting_for == ())
            primary.streams = fault
            for _ in range(3):
                assert reason in await replica.fail_again()
            assert replica.addresses("app.example.org") == ("192.0.2.1",)
            assert replica.replica.status.serial == 1
            assert [one["event"] for one in logged].count(LOST) == 1
            primary.streams = second
            replica.notify(2)
            await replica.wait_for(2)
            assert replica.addresses("new.example.org") == ("192.0.2.2",)
            assert replica.addresses("app.example.org") is None
            await wait_until(lambda: not replica.replica.status.fault)
    assert [one["event"] for one in logged].count(AGAIN) == 1


async def test_an_endless_zone_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST", 3 << 20)
    filler = [piece_of(owner_of(f"n{number}.example.org", TABLE_ZONE), b"x" * 15_000) for number in range(3)]

    def endless(asked: bytes) -> list[Step]:
        return [*replies(asked, [soa(2), *filler]), *(replies(asked, filler) * 100)]

    async with faulty_upstream(newer, first) as primary, following(primary.endpoint) as replica:
        await replica.wait_for(1)
        primary.streams = endless
        assert "larger than 3 MiB" in await replica.fail_again()
        assert replica.addresses("app.example.org") == ("192.0.2.1",)


async def test_a_primary_that_says_nothing_is_left_after_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_QUIET_SECONDS", 0.05)
    monkeypatch.setattr(fetch, "_DATAGRAM_SECONDS", 0.05)
    async with faulty_upstream(newer, first) as primary, following(primary.endpoint) as replica:
        await replica.wait_for(1)
        primary.streams = primary.datagrams = lambda _: []
        assert "did not answer in time" in await replica.fail_again()
        primary.streams = lambda asked: steps(replies(asked, [soa(2), CONTROL]))
        assert "did not answer in time" in await replica.fail_again()
        assert replica.addresses("app.example.org") == ("192.0.2.1",)


async def test_a_primary_that_drips_is_left_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "WINDOW", 0.1)

    def dripping(asked: bytes) -> list[Step]:
        drops = [step for message in replies(asked, [APP]) * 1_000 for step in (*steps([message]), Pause(0.02))]
        return [*steps(replies(asked, [soa(2)])), *drops]

    async with (
        faulty_upstream(newer, dripping) as first_one,
        faulty_upstream(newer, first) as second_one,
        following(first_one.endpoint, second_one.endpoint) as replica,
    ):
        await replica.wait_for(1)
        assert replica.addresses("app.example.org") == ("192.0.2.1",)
        assert str(second_one.endpoint) in replica.replica.status.primary


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"deleted": [NEW], "added": []}, id="deletes what is not there"),
        pytest.param({"deleted": [CONTROL], "added": []}, id="deletes the control record"),
        pytest.param({"added": [piece_of(OWNER, b"{}")]}, id="adds what is no row"),
    ],
)
@pytest.mark.parametrize("datagram", [False, True], ids=["over TCP", "over UDP"])
async def test_a_difference_that_does_not_fit_is_followed_by_the_whole_zone(
    fault: dict[str, list[Piece]], datagram: bool
) -> None:
    def damaged(asked: bytes) -> list[Step]:
        return second(asked) if is_axfr(asked) else steps(increment(asked, 1, 2, **fault))

    with structlog.testing.capture_logs() as logged:
        async with (
            faulty_upstream(damaged if datagram else newer, first) as primary,
            following(primary.endpoint) as replica,
        ):
            await replica.wait_for(1)
            primary.streams = damaged
            replica.notify(2)
            await replica.wait_for(2)
            assert (replica.addresses("app.example.org"), replica.addresses("new.example.org")) == (
                None,
                ("192.0.2.2",),
            )
    assert LOST not in [one["event"] for one in logged]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([soa(4), soa(9), soa(4)], id="from another serial"),
        pytest.param([soa(4), soa(1), APP, soa(3), NEW, soa(5), soa(4)], id="from one serial and on with another"),
        pytest.param([soa(4), soa(1), APP, soa(3), NEW, soa(4)], id="that ends before its serial"),
    ],
)
async def test_a_chain_of_differences_with_a_gap_is_not_followed(pieces: list[Piece]) -> None:
    async with faulty_upstream(newer, first) as primary, following(primary.endpoint) as replica:
        await replica.wait_for(1)
        primary.streams = lambda asked: (
            steps(whole(asked, 4, CONTROL, NEW)) if is_axfr(asked) else steps(replies(asked, pieces))
        )
        replica.notify(4)
        await replica.wait_for(4)
        assert any(is_axfr(asked.message) for asked in primary.asked_streams[1:])
        assert replica.addresses("app.example.org") is None


async def test_differences_one_after_another_are_followed_together() -> None:
    other = row_piece("app.example.org", "192.0.2.7")
    chained = [soa(4), soa(1), APP, soa(2), other, NEW, soa(2), other, soa(4), APP, soa(4)]
    async with faulty_upstream(newer, first) as primary, following(primary.endpoint) as replica:
        await replica.wait_for(1)
        primary.streams = lambda asked: steps(replies(asked, chained))
        replica.notify(4)
        await replica.wait_for(4)
        assert not any(is_axfr(asked.message) for asked in primary.asked_streams[1:])
        assert replica.addresses("app.example.org") == ("192.0.2.1",)
        assert replica.addresses("new.example.org") == ("192.0.2.2",)


async def test_an_older_serial_is_a_fault_until_it_is_over() -> None:
    with structlog.testing.capture_logs() as logged:
        async with faulty_upstream(newer, at_2(CONTROL, APP)) as primary, following(primary.endpoint) as replica:
            await replica.wait_for(2)
            primary.datagrams = lambda asked: steps(replies(asked, [soa(1)]))
            for _ in range(2):
                assert "older than 2" in await replica.fail_again()
            assert replica.addresses("app.example.org") == ("192.0.2.1",)
            primary.datagrams = lambda asked: steps(increment(asked, 2, 3, added=[NEW]))
            replica.notify(3)
            await replica.wait_for(3)
            await wait_until(lambda: not replica.replica.status.fault)
    assert [one["event"] for one in logged if one["event"] in (LOST, AGAIN)] == [LOST, AGAIN]


@pytest.mark.parametrize("first_is", ["older", "dead", "damaged"])
async def test_of_two_primaries_the_next_one_is_asked(first_is: str) -> None:
    async with (
        faulty_upstream(newer, at_2(CONTROL, APP)) as one,
        faulty_upstream(newer, first) as other,
        following(one.endpoint, other.endpoint) as replica,
    ):
        await replica.wait_for(2)
        if first_is == "older":
            one.datagrams = lambda asked: steps(replies(asked, [soa(1)]))
        elif first_is == "damaged":
            one.datagrams = lambda asked: [asked[:2] + b"\x80\2\0\1\0\0\0\0\0\0" + question(asked)]
            one.streams = rcode(2)
        else:
            await one.die()
        other.datagrams = lambda asked: steps(increment(asked, 2, 3, added=[NEW]))
        replica.notify(3)
        await replica.wait_for(3)
        assert replica.addresses("new.example.org") == ("192.0.2.2",)
        assert replica.replica.status.fault == ""


def signed(asked: bytes, messages: list[bytes], key: TsigKey = KEY, *, leave: int = 0) -> list[Step]:
    """Messages that are signed as the answer to a signed request; the last `leave` are not."""
    found = find_tsig(asked)
    assert found is not None
    signer = Signer(key, request_mac=_parse_rdata(asked, found).mac)
    sealed: list[Step] = [
        signer.sign(message, now=int(time.time()), several=len(messages) > 1)
        for message in messages[: len(messages) - leave]
    ]
    return [*sealed, *messages[len(messages) - leave :]]


def in_three(asked: bytes) -> list[bytes]:
    """Version 2 in messages of their own."""
    return [message for piece in (soa(2), CONTROL, NEW, soa(2)) for message in replies(asked, [piece])]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        pytest.param(lambda asked: steps(in_three(asked)), "not signed", id="no signature"),
        pytest.param(
            lambda asked: signed(asked, in_three(asked), leave=1), "last message is not signed", id="not the last"
        ),
        pytest.param(
            lambda asked: signed(asked, in_three(asked), TsigKey(KEY.name, KEY.algorithm, b"other")),
            "signature is wrong",
            id="another secret",
        ),
        pytest.param(
            lambda asked: signed(asked, in_three(asked), TsigKey("other", KEY.algorithm, KEY.secret)),
            "another key",
            id="another key",
        ),
        pytest.param(
            lambda asked: signed(asked, in_three(asked))[::-1], "signature is wrong", id="messages in another order"
        ),
        pytest.param(
            lambda asked: [signed(asked, in_three(asked))[0], *signed(asked, in_three(asked))[2:]],
            "signature is wrong",
            id="a message is missing",
        ),
        pytest.param(rcode(9), "rcode 9", id="NOTAUTH without a signature"),
    ],
)
async def test_with_a_key_nothing_counts_that_is_not_signed(fault: Script, reason: str) -> None:
    def good(asked: bytes) -> list[Step]:
        return signed(asked, whole(asked, 1, CONTROL, APP))

    def hint(asked: bytes) -> list[Step]:
        return signed(asked, replies(asked, [soa(2)]))

    async with faulty_upstream(hint, good) as primary, following(primary.endpoint, key=KEY) as replica:
        await replica.wait_for(1)
        primary.streams = fault
        assert reason in await replica.fail_again()
        assert replica.addresses("app.example.org") == ("192.0.2.1",)
        primary.streams = lambda asked: signed(asked, in_three(asked))
        replica.notify(2)
        await replica.wait_for(2)


async def test_datagrams_that_are_no_answer_are_passed_over() -> None:
    """Spoofed ones have another ID or question; the true one comes after them."""

    def spoofed(asked: bytes) -> list[Step]:
        good = increment(asked, 1, 2, added=[NEW])[0]
        other = bytes([asked[0] ^ 0xFF]) + good[1:]
        return [b"", b"\0", other, good[:2] + replies(asked, [soa(9)], zone=ZONE)[0][2:], good]

    async with faulty_upstream(spoofed, first) as primary, following(primary.endpoint) as replica:
        await replica.wait_for(1)
        replica.notify(2)
        await replica.wait_for(2)
        assert len(primary.asked_streams) == 1


async def test_a_flood_of_notifies_brings_few_looks() -> None:
    def current(asked: bytes) -> list[Step]:
        return steps(replies(asked, [soa(1)]))

    async with faulty_upstream(current, first) as primary, following(primary.endpoint) as replica:
        await replica.wait_for(1)
        for number in range(2_000):
            replica.notify(number + 2)
            await trio.lowlevel.checkpoint()
        await primary.wait_asked(datagrams=5)
        for number in range(2_000):
            replica.notify(number + 2)
            await trio.lowlevel.checkpoint()
        assert len(primary.asked_datagrams) < 15
        # A NOTIFY for what is known brings none.
        replica.notify(1)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        pytest.param(format_notify(TABLE_ZONE, serial=2, ttl=5, ident=1), 0, id="our zone"),
        pytest.param(format_notify(ZONE, serial=2, ttl=5, ident=1), 9, id="the policy zone"),
        pytest.param(
            format_notify(wire_name("example.net"), serial=2, ttl=5, ident=1), 9, id="a zone of somebody else"
        ),
        pytest.param(format_notify(TABLE_ZONE, serial=2, ttl=5, ident=1)[:20], None, id="a NOTIFY that is cut"),
        pytest.param(b"", None, id="nothing"),
        pytest.param(bytes(12), None, id="a query"),
        pytest.param(b"\0\0\xa4" + format_notify(TABLE_ZONE, serial=2, ttl=5, ident=1)[3:], None, id="an answer"),
    ],
)
async def test_a_notify_is_answered_for_the_replicas_own_zone(message: bytes, code: int | None) -> None:
    async with faulty_upstream(newer, first) as primary, following(primary.endpoint) as replica:
        reply = replica.replica.notify(message)
        assert (None if reply is None else wire.rcode_of(reply)) == code
        if reply is not None:
            assert reply[:2] == message[:2]
            assert reply[2] & 0x80

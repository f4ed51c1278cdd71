from __future__ import annotations

import pytest

from dnsproxy.dns.names import to_wire
from dnsproxy.dns.wire import Type
from dnsproxy.zone.content import Difference, Piece
from dnsproxy.zone.transfer import ZoneVersion, incremental, messages, one_record, reply_head, whole
from dnsproxy.zone.zone_records import format_zone_addresses
from tests.bench.fleet.scan import NotATransfer, TransferScan, read_first

ZONE = to_wire("rpz.example.org")
SERIAL = 4_000_000_000


def version() -> ZoneVersion:
    return ZoneVersion(ZONE, SERIAL, ttl=5)


def piece(number: int, size: int = 1) -> Piece:
    records = [format_zone_addresses(b"\x03app", (f"192.0.2.{number}",), ttl=5)[0]] * size
    return Piece(size, b"".join(records))


def framed(bodies: list[bytes]) -> bytes:
    return b"".join((len(body) + 2).to_bytes(2, "big") + b"\0\1" + body for body in bodies)


def axfr(pieces: list[Piece]) -> bytes:
    records = whole(version(), pieces)
    return framed(list(messages(version(), records, rtype=Type.AXFR, reply=reply_head(0))))


def read(octets: bytes, *, most: int = 1 << 20, incremental: bool = False) -> tuple[TransferScan, int]:
    """A scan that got at most so many octets at once, and how many of all were looked at."""
    scan, position, seen = TransferScan(incremental=incremental), 0, 0
    while not scan.is_done:
        count, discard = scan.wanted()
        part = octets[position : position + min(count, most)]
        assert part, "it wants more than there is"
        position += len(part)
        if discard:
            scan.skipped(len(part))
        else:
            seen += len(part)
            scan.received(part)
    assert position == len(octets)
    assert scan.octets == len(octets)
    return scan, seen


SIZES = [
    pytest.param([], id="an empty zone"),
    pytest.param([piece(1)], id="one message"),
    pytest.param([piece(1, 40)], id="a message as long as the head"),
    pytest.param([piece(one, 1000) for one in range(20)], id="several messages"),
    pytest.param([piece(1, 2830), piece(2, 1)], id="a last message with the SOA and one record"),
]


@pytest.mark.parametrize("most", [1, 7, 1 << 20])
@pytest.mark.parametrize("pieces", SIZES)
def test_a_whole_transfer_is_read_to_its_end_however_it_arrives(pieces: list[Piece], most: int) -> None:
    scan, _ = read(axfr(pieces), most=most)
    assert scan.first is not None
    assert scan.first.serial == SERIAL


@pytest.mark.parametrize("count", range(30, 50))
def test_a_message_may_end_anywhere_near_the_end_of_its_head(count: int) -> None:
    read(axfr([piece(1, count)]))


def test_of_a_large_transfer_nearly_nothing_is_looked_at() -> None:
    octets = axfr([piece(one, 1000) for one in range(50)])
    scan, seen = read(octets)
    assert scan.messages > 10
    assert seen < 1024 + 30 * scan.messages


def test_a_difference_ends_with_the_new_soa() -> None:
    records = incremental(version(), Difference((piece(1),), (piece(2),)), since=SERIAL - 3)
    octets = framed(list(messages(version(), records, rtype=Type.IXFR, reply=reply_head(0))))
    scan, _ = read(octets, incremental=True)
    assert scan.first is not None
    assert scan.first.serial == SERIAL


def test_an_soa_alone_ends_an_ixfr_and_begins_an_axfr() -> None:
    body = one_record(version(), version().soa, rtype=Type.IXFR, reply=reply_head(0))
    octets = framed([body])
    assert read(octets, incremental=True)[0].is_done
    scan = TransferScan(incremental=False)
    scan.received(octets[:2])
    scan.received(octets[2:])
    assert not scan.is_done
    rest = framed([one_record(version(), version().soa, rtype=Type.AXFR, reply=reply_head(0))])
    scan.received(rest[:2])
    count, discard = scan.wanted()
    assert discard
    scan.skipped(count)
    scan.received(rest[-20:])
    assert scan.is_done


REFUSED = reply_head(0, rcode=5).to_bytes(2, "big")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        pytest.param(b"", "without a header", id="nothing"),
        pytest.param(b"\0\1\x80", "without a header", id="a part of a header"),
        pytest.param(b"\0\1" + REFUSED + b"\0\1\0\0\0\0\0\0" + ZONE + b"\0\6\0\1", "rcode 5", id="a refusal"),
        pytest.param(b"\0\1\x84\0\0\1\0\0\0\0\0\0" + ZONE + b"\0\6\0\1", "does not begin", id="no answer"),
        pytest.param(b"\0\1\x84\0\0\1\0\1\0\0\0\0" + ZONE + b"\0\6\0\1" + piece(1).octets, "does not begin", id="an A"),
        pytest.param(
            b"\0\1\x84\0\0\1\0\1\0\0\0\0" + ZONE + b"\0\6\0\1" + version().soa.octets[:-1],
            "cut short",
            id="half an SOA",
        ),
        pytest.param(b"\0\1\x84\0\0\1\0\1\0\0\0\0" + b"\xff" * 30, "does not begin", id="garbage"),
    ],
)
def test_what_is_no_transfer_is_refused_with_the_reason(message: bytes, reason: str) -> None:
    with pytest.raises(NotATransfer, match=reason):
        read_first(message)


def test_a_message_too_short_for_a_header_ends_a_transfer() -> None:
    with pytest.raises(NotATransfer, match="without a header"):
        TransferScan(incremental=False).received(b"\0\4")

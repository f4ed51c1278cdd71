"""The addresses in a reply, compared with dnspython, and octets that are not a reply."""

from __future__ import annotations

import struct
from ipaddress import ip_address
from typing import Final

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.addresses import AddressReply, PublicRecord, join_replies, parse_address_reply
from dnsproxy.dns.names import parse_hostname
from tests.kit import messages, upstream_replies
from tests.kit.messages import AAAA, A, record, wire_name

NAME: Final = "app.example.org"


def reply_of(*rrsets: str, rcode: int = 0) -> bytes:
    """A reply written by dnspython, with compressed names; each text: OWNER TYPE DATA."""
    message = dns.message.make_response(dns.message.make_query(NAME, "A"))
    message.set_rcode(dns.rcode.Rcode(rcode))
    for text in rrsets:
        owner, rtype, *data = text.split()
        message.answer.append(dns.rrset.from_text(owner, 60, "IN", rtype, *data))
    return message.to_wire()


def raw(*records: bytes, answers: int | None = None) -> bytes:
    count = len(records) if answers is None else answers
    head = struct.pack("!HHHHHH", 0x1234, 0x8180, 1, count, 0, 0)
    return head + messages.question(NAME) + b"".join(records)


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        pytest.param(reply_of(f"{NAME}. A 192.0.2.1 192.0.2.2"), (("192.0.2.1", "192.0.2.2"), ()), id="addresses"),
        pytest.param(reply_of(f"{NAME}. AAAA 2001:db8::1"), (("2001:db8::1",), ()), id="IPv6"),
        pytest.param(
            reply_of(f"{NAME}. CNAME Shop.b.org.", "shop.b.org. CNAME lb.a.org.", "lb.a.org. A 192.0.2.1"),
            (("192.0.2.1",), ("shop.b.org", "lb.a.org")),
            id="two aliases",
        ),
        pytest.param(reply_of(), ((), ()), id="NODATA"),
        pytest.param(reply_of(f"{NAME}. TXT x", f"{NAME}. A 192.0.2.1"), (("192.0.2.1",), ()), id="other types"),
        pytest.param(raw(record(A, bytes([192, 0, 2, 1]), klass=3)), ((), ()), id="another class"),
        pytest.param(raw(record(A, bytes(5)), record(AAAA, bytes(4))), ((), ()), id="addresses of a wrong size"),
        pytest.param(raw(record(5, wire_name("a_b.example.org"))), ((), ("a_b.example.org",)), id="underscore"),
        pytest.param(raw(record(5, b"\x03a.b\x03org\0")), ((), ()), id="an alias with a dot in a label"),
        pytest.param(raw(record(5, b"\x02\xff\xfe\x03org\0")), ((), ()), id="an alias that is no text"),
        pytest.param(raw(record(5, b"\xc0\x0c")), ((), (NAME,)), id="an alias that points at the question"),
        pytest.param(raw(record(5, b"\0")), ((), ()), id="an alias of the root"),
        pytest.param(raw(record(5, b"\xc0\x2d")), ((), ()), id="an alias that points at itself"),
        pytest.param(raw(record(5, b"\xc0\xff")), ((), ()), id="an alias that points behind the end"),
        pytest.param(raw(record(5, b"\xc0")), ((), ()), id="half a pointer"),
        pytest.param(raw(record(5, b"\x40x\0")), ((), ()), id="a label of a type that does not exist"),
        pytest.param(raw(record(5, b"\x05abc")), ((), ()), id="a label that goes on behind the end"),
        pytest.param(raw(record(5, b"")), ((), ()), id="an empty alias"),
    ],
)  # fmt: skip
def test_addresses_and_aliases_are_read(octets: bytes, expected: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
    reply = parse_address_reply(octets)
    assert reply is not None
    # dnspython shuffles the records of a set.
    assert (reply.rcode, tuple(sorted(reply.addresses)), reply.aliases) == (0, *expected)


def test_the_ttl_is_the_least_of_all_records_of_the_class() -> None:
    """That of the alias counts too: it ends first when a name moves."""
    answer = reply_of(f"{NAME}. CNAME lb.a.org.", "lb.a.org. A 192.0.2.1")
    reply = parse_address_reply(answer)
    assert reply is not None
    assert reply.ttl == 60
    other = parse_address_reply(raw(record(A, bytes([192, 0, 2, 1]), klass=3)))
    assert other is not None
    assert other.ttl is None


def test_the_error_code_is_read() -> None:
    for rcode in (2, 3, 5):
        reply = parse_address_reply(reply_of(rcode=rcode))
        assert reply is not None
        assert reply.rcode == rcode


ASKED: Final = messages.query(NAME)


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"", id="empty"),
        pytest.param(reply_of()[:11], id="half a header"),
        pytest.param(ASKED, id="a query"),
        pytest.param(upstream_replies.truncated(ASKED), id="cut"),
        pytest.param(upstream_replies.header_only(ASKED, 2), id="no question"),
        pytest.param(reply_of()[:-1], id="half a question"),
        pytest.param(raw(answers=1), id="fewer records than said"),
        pytest.param(raw(record(A, bytes(4))[:-1]), id="half a record"),
        pytest.param(raw(b"\x40x" + record(A, bytes(4))), id="an owner of a type that does not exist"),
        pytest.param(raw(b"\x3fabc"), id="an owner that goes on behind the end"),
    ],
)
def test_what_is_no_whole_reply_is_none(octets: bytes) -> None:
    assert parse_address_reply(octets) is None


@pytest.mark.parametrize(
    ("octets", "is_read"),
    [
        pytest.param(b"\x3f" + b"a" * 63, False, id="four labels of 63, and one more"),
        pytest.param(b"", True, id="of 255 octets"),
        pytest.param(b"\1a", False, id="of 257 octets"),
    ],
)
def test_an_owner_name_has_at_most_255_octets(octets: bytes, is_read: bool) -> None:
    owner = (b"\x3f" + b"a" * 63) * 3 + b"\x3d" + b"a" * 61 + octets + b"\0"
    answer = owner + struct.pack("!HHIH", A, 1, 60, 4) + bytes([192, 0, 2, 1])
    expected = AddressReply(0, ("192.0.2.1",), ttl=60) if is_read else None
    assert parse_address_reply(raw(answer)) == expected


def test_a_huge_reply_is_read_in_part() -> None:
    reply = parse_address_reply(raw(*(record(A, struct.pack("!I", 0xC6336400 + n)) for n in range(200))))
    assert reply is not None
    assert len(reply.addresses) == 64


def test_a_circle_of_pointers_has_an_end() -> None:
    """Each alias points back to the previous one, and the first to the last."""
    start = len(raw())
    chain = [record(5, b"\x01a" + struct.pack("!H", 0xC000 | (start + 12 + 16 * ((n - 1) % 40)))) for n in range(40)]
    reply = parse_address_reply(raw(*chain))
    assert reply is not None


@given(st.binary(max_size=300))
def test_any_octets_are_a_reply_or_none(octets: bytes) -> None:
    for message in (octets, raw() + octets, raw(answers=3) + octets, raw(record(5, octets))):
        reply = parse_address_reply(message)
        if reply is not None:
            assert [str(ip_address(text)) for text in reply.addresses] == list(reply.addresses)
            assert all(parse_hostname(alias) == alias for alias in reply.aliases)


GOOD = AddressReply(0, ("192.0.2.1",), ("lb.example.net",))
EMPTY = AddressReply(0)


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        pytest.param([GOOD, EMPTY], PublicRecord(("192.0.2.1",), ("lb.example.net",), exists=True), id="one family"),
        pytest.param(
            [GOOD, AddressReply(0, ("2001:db8::1", "192.0.2.0"), ("a.example.net", "lb.example.net"))],
            PublicRecord(("192.0.2.0", "192.0.2.1", "2001:db8::1"), ("a.example.net", "lb.example.net"), exists=True),
            id="both, sorted",
        ),
        pytest.param([EMPTY, EMPTY], PublicRecord(exists=True), id="NODATA"),
        pytest.param([AddressReply(3), AddressReply(3)], PublicRecord(), id="NXDOMAIN"),
        pytest.param([AddressReply(3), None], PublicRecord(), id="NXDOMAIN is for every type"),
        pytest.param(
            [AddressReply(3, (), ("gone.example.net",)), None],
            PublicRecord((), ("gone.example.net",), exists=True),
            id="an alias of nothing",
        ),
        pytest.param(
            [GOOD._replace(ttl=300), EMPTY._replace(ttl=30)],
            PublicRecord(("192.0.2.1",), ("lb.example.net",), exists=True, ttl=30),
            id="for the shorter time",
        ),
        pytest.param(
            [AddressReply(0, ttl=5), AddressReply(3, ttl=7)], PublicRecord(ttl=5), id="NXDOMAIN of one with a time"
        ),
        pytest.param([GOOD, None], None, id="one that is not answered"),
        pytest.param([None, None], None, id="none answered"),
        pytest.param([GOOD, AddressReply(2)], None, id="SERVFAIL"),
        pytest.param([AddressReply(5), AddressReply(5)], None, id="REFUSED"),
        pytest.param(
            [AddressReply(0, ("0.0.0.0", "127.0.0.1", "127.8.8.8")), AddressReply(0, ("::", "::1", "ff02::1"))],
            PublicRecord(exists=True),
            id="a name that the resolver blocks",
        ),
    ],
)
def test_both_families_make_one_record(replies: list[AddressReply | None], expected: PublicRecord | None) -> None:
    assert join_replies(replies) == expected
    assert join_replies(reversed(replies)) == expected

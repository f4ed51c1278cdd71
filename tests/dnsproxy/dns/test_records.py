"""Records and heads of replies: octets that dnspython and dnslib read as intended."""

from __future__ import annotations

import struct

import pytest

from dnsproxy.dns import records
from dnsproxy.dns.wire import Rcode, Type
from tests.kit.messages import AAAA, HINFO, SOA, A, Opt, header, question, read_both
from tests.kit.strategies import LONG_NAME


def reply(octets: bytes, counts: tuple[int, int, int, int], *, name: str = "app.example.org") -> bytes:
    return header(0x8580, counts) + question(name) + octets


@pytest.mark.parametrize("ttl", [0, 1, 5, 3600, 2**31 - 1])
def test_an_address_record_belongs_to_the_question(ttl: int) -> None:
    count, octets = records.format_addresses(["192.0.2.1", "192.0.2.2"], rtype=Type.A, ttl=ttl)
    reading = read_both(reply(octets, (1, count, 0, 0)))
    assert {(kind, seconds, str(address)) for _, kind, seconds, address in reading.answers} == {
        (A, ttl, "192.0.2.1"),
        (A, ttl, "192.0.2.2"),
    }


@pytest.mark.parametrize(
    ("addresses", "rtype", "kept"),
    [
        ((), Type.A, []),
        (("2001:db8::1",), Type.A, []),
        (("192.0.2.1",), Type.AAAA, []),
        (("192.0.2.1", "2001:db8::1"), Type.A, ["192.0.2.1"]),
        (("192.0.2.1", "2001:db8::1"), Type.AAAA, ["2001:db8::1"]),
    ],
    ids=["none", "A of IPv6", "AAAA of IPv4", "A of both", "AAAA of both"],
)
def test_only_addresses_of_the_family_are_records(addresses: tuple[str, ...], rtype: Type, kept: list[str]) -> None:
    count, octets = records.format_addresses(addresses, rtype=rtype, ttl=5)
    assert count == len(kept)
    reading = read_both(reply(octets, (1, count, 0, 0)))
    assert [str(address) for *_, address in reading.answers] == kept
    assert {kind for _, kind, _, _ in reading.answers} <= {A, AAAA}


@pytest.mark.parametrize("name", ["org", "app.example.org", LONG_NAME], ids=["short", "usual", "255 octets"])
def test_the_soa_of_an_empty_answer_says_how_long_to_remember_it(name: str) -> None:
    reading = read_both(reply(records.format_soa(7), (1, 0, 1, 0), name=name))
    ((owner, kind, ttl, content),) = reading.authorities
    assert (owner, kind, ttl) == (question(name)[:-4], SOA, 7)
    assert content == (owner, b"\x06nobody\x07invalid\0", 7)


def test_the_answer_to_any_is_one_small_record() -> None:
    octets = records.format_any(5)
    ((_, kind, _, content),) = read_both(reply(octets, (1, 1, 0, 0))).answers
    assert (kind, content) == (HINFO, b"\x07RFC8482\0")
    assert len(octets) < 32


@pytest.mark.parametrize("rcode", Rcode)
@pytest.mark.parametrize("do", [False, True], ids=["no DO", "DO"])
def test_our_opt_holds_the_upper_part_of_the_rcode(rcode: Rcode, do: bool) -> None:
    octets = records.format_opt(do=do, rcode=rcode)
    head = header(0x8180 | rcode & 0xF, (1, 0, 0, 1))
    reading = read_both(head + question("app.example.org") + octets)
    assert reading.opt == Opt(0, 1232, do, 0, 0)
    assert reading.rcode == rcode


def test_an_extended_error_is_one_option_without_text() -> None:
    octets = records.format_opt(do=False, rcode=Rcode.SERVFAIL, extended_error=22)
    assert octets.endswith(struct.pack("!HHHH", 6, 15, 2, 22))
    reading = read_both(header(0x8182, (1, 0, 0, 1)) + question("app.example.org") + octets)
    assert reading.opt == Opt(0, 1232, do=False, other_flags=0, options=1)


@pytest.mark.parametrize(
    ("seconds", "units"), [(0, 0), (0.05, 0), (0.1, 1), (30.0, 300), (6553.5, 65535), (10_000, 65535)], ids=str
)
def test_a_keepalive_is_in_tenths_of_a_second(seconds: float, units: int) -> None:
    octets = records.format_opt(do=True, keepalive=seconds)
    assert octets.endswith(struct.pack("!HHHH", 6, 11, 2, units))
    reading = read_both(header(0x8180, (1, 0, 0, 1)) + question("app.example.org") + octets)
    assert reading.opt == Opt(0, 1232, do=True, other_flags=0, options=1)


@pytest.mark.parametrize("authoritative", [False, True], ids=["error", "answer"])
@pytest.mark.parametrize("rcode", Rcode)
def test_of_all_flags_of_a_query_a_reply_copies_rd_and_cd(rcode: Rcode, authoritative: bool) -> None:
    for flags in range(0x10000):
        reply_flags = records.reply_flags(flags, rcode=rcode, authoritative=authoritative)
        assert reply_flags == 0x8080 | (0x0400 if authoritative else 0) | flags & 0x0110 | rcode & 0xF


def test_a_quick_head_exists_for_every_plain_query_head_and_no_other() -> None:
    heads = records.quick_heads(2, 0)
    for flags in range(0x10000):
        for additional in (0, 1, 2):
            head = struct.pack("!HHHHH", flags, 1, 0, 0, additional)
            if flags & ~0x0170 or additional > 1:
                assert head not in heads
            else:
                reply_head = struct.pack("!HHHHH", 0x8480 | flags & 0x0110, 1, 2, 0, additional)
                assert heads[head] == reply_head
    assert len(heads) == 32


def test_a_quick_opt_is_of_version_0_without_options_or_unknown_flags() -> None:
    for asked, answered in records.quick_opts().items():
        root, kind, size, rcode, version, flags, length = struct.unpack("!BHHBBHH", asked)
        assert (root, kind, rcode, version, length) == (0, 41, 0, 0, 0)
        assert size >= 512
        assert flags in (0, 0x8000)
        assert answered == records.format_opt(do=flags == 0x8000)

"""PROXY headers of versions 1 and 2: what is written, what is read, and above all what is refused.

Tests all modules of proxy/header, most of them in one table.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.header.addresses import LOCAL, BadHeader, Header, Parsed
from proxy.header.protocol import (
    LONGEST_BEGINNING,
    Beginning,
    ProxyProtocol,
    beginning_of,
    formatter,
    parse_header,
    writer,
)
from proxy.header.v1 import MAXIMUM_V1, format_v1, parse_v1
from proxy.header.v2 import SIGNATURE_V2, crc32c, format_v2, parse_v2
from sidecar.values.endpoints import Endpoint

V4 = Header(Endpoint("192.0.2.1", 56_324), Endpoint("192.0.2.80", 443))
V6 = Header(Endpoint("2001:db8::1", 56_324), Endpoint("2001:db8::80", 443))

V4_BLOCK = bytes([192, 0, 2, 1, 192, 0, 2, 80]) + (56_324).to_bytes(2) + (443).to_bytes(2)
V6_BLOCK = (
    ipaddress.ip_address("2001:db8::1").packed
    + ipaddress.ip_address("2001:db8::80").packed
    + (56_324).to_bytes(2)
    + (443).to_bytes(2)
)


def v2(command: int, family: int, block: bytes) -> bytes:
    return SIGNATURE_V2 + bytes([command, family]) + len(block).to_bytes(2) + block


TABLE = [
    pytest.param(V4, b"PROXY TCP4 192.0.2.1 192.0.2.80 56324 443\r\n", v2(0x21, 0x11, V4_BLOCK), id="IPv4"),
    pytest.param(V6, b"PROXY TCP6 2001:db8::1 2001:db8::80 56324 443\r\n", v2(0x21, 0x21, V6_BLOCK), id="IPv6"),
    pytest.param(LOCAL, b"PROXY UNKNOWN\r\n", v2(0x20, 0, b""), id="local"),
]


@pytest.mark.parametrize(("header", "line", "binary"), TABLE)
def test_each_form_is_written_octet_for_octet(header: Header, line: bytes, binary: bytes) -> None:
    assert format_v1(header) == line
    assert format_v2(header) == binary


def with_checksum(binary: bytes) -> bytes:
    """The same header with the checksum TLV of section 2.2.3."""
    fixed, block = binary[:14], binary[16:]
    bare = fixed + (len(block) + 7).to_bytes(2) + block + b"\x03\x00\x04"
    return bare + crc32c(bare + bytes(4)).to_bytes(4)


@pytest.mark.parametrize(("header", "line", "binary"), TABLE)
def test_each_protocol_has_its_writer(header: Header, line: bytes, binary: bytes) -> None:
    assert formatter(ProxyProtocol.V1)(header) == formatter(ProxyProtocol.V1, checksum=True)(header) == line
    assert formatter(ProxyProtocol.V2)(header) == binary
    assert formatter(ProxyProtocol.V2, checksum=True)(header) == with_checksum(binary)
    assert formatter(ProxyProtocol.NONE)(header) == formatter(ProxyProtocol.PASS)(header) == b""


@pytest.mark.parametrize("header", [V4, V6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("protocol", ProxyProtocol)
@pytest.mark.parametrize("checksum", [False, True])
def test_a_writer_writes_what_the_formatter_does(header: Header, protocol: ProxyProtocol, checksum: bool) -> None:
    assert header.source is not None
    assert header.destination is not None
    written = writer(protocol, checksum=checksum)(header.source.host, header.source.port, header.destination)
    assert written == formatter(protocol, checksum=checksum)(header)


@pytest.mark.parametrize(("header", "line", "binary"), TABLE)
@pytest.mark.parametrize("behind", [b"", b"GET / HTTP/1.1\r\n", SIGNATURE_V2], ids=["alone", "text", "another header"])
def test_each_form_is_read_and_what_follows_is_left(header: Header, line: bytes, binary: bytes, behind: bytes) -> None:
    for octets in (line, binary, with_checksum(binary)):
        assert parse_header(octets + behind) == Parsed(header, len(octets))


@pytest.mark.parametrize(("header", "line", "binary"), TABLE)
def test_octet_by_octet_a_header_is_incomplete_until_its_last(header: Header, line: bytes, binary: bytes) -> None:
    for octets in (line, binary, with_checksum(binary)):
        for length in range(len(octets)):
            assert parse_header(octets[:length]) is None
        assert parse_header(octets) == Parsed(header, len(octets))


def test_the_longest_line_is_what_the_specification_counts() -> None:
    longest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"
    line = format_v1(Header(Endpoint(longest, 65_535), Endpoint(longest, 65_535)))
    # Section 2.1 counts 104 for TCP6; 107 are those of an UNKNOWN with two addresses.
    assert len(line) == 104
    assert parse_v1(line) is not None
    unknown = f"PROXY UNKNOWN {longest[:-1]}f {longest[:-1]}f 65535 65535\r\n".encode()
    assert len(unknown) == MAXIMUM_V1
    assert parse_v1(unknown) == Parsed(LOCAL, MAXIMUM_V1)


@pytest.mark.parametrize(
    ("source", "destination", "line"),
    [
        pytest.param("::ffff:192.0.2.1", "::ffff:192.0.2.80", b"TCP4 192.0.2.1 192.0.2.80", id="both mapped"),
        pytest.param("::ffff:192.0.2.1", "192.0.2.80", b"TCP4 192.0.2.1 192.0.2.80", id="one mapped"),
        pytest.param("192.0.2.1", "2001:db8::80", b"TCP6 ::ffff:192.0.2.1 2001:db8::80", id="mixed"),
        pytest.param("2001:db8::1", "::ffff:192.0.2.80", b"TCP6 2001:db8::1 ::ffff:192.0.2.80", id="mixed and mapped"),
        pytest.param("fe80::1%eth0", "fe80::2%eth0", b"TCP6 fe80::1 fe80::2", id="scopes"),
    ],
)
def test_both_addresses_are_of_one_family_and_without_scope(source: str, destination: str, line: bytes) -> None:
    header = Header(Endpoint(source, 1), Endpoint(destination, 2))
    assert format_v1(header) == b"PROXY " + line + b" 1 2\r\n"
    first, second = parse_v1(format_v1(header)), parse_v2(format_v2(header))
    assert first is not None
    assert second is not None
    assert ipaddress.ip_address(first.header.source.host) == ipaddress.ip_address(second.header.source.host)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"GET / HTTP/1.1\r\n", id="no header"),
        pytest.param(b"proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n", id="lower case"),
        pytest.param(b" PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", id="space in front"),
        pytest.param(b"PROXY\tTCP4 192.0.2.1 192.0.2.2 1 2\r\n", id="tab"),
        pytest.param(b"PROXY  TCP4 192.0.2.1 192.0.2.2 1 2\r\n", id="two spaces"),
        pytest.param(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n", id="space at the end"),
        pytest.param(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n", id="another field"),
        pytest.param(b"PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n", id="a field less"),
        pytest.param(b"PROXY \r\n", id="no field"),
        pytest.param(b"PROXY UNKNOWNX\r\n", id="unknown and more"),
        pytest.param(b"PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n", id="UDP"),
        pytest.param(b"PROXY TCP5 192.0.2.1 192.0.2.2 1 2\r\n", id="no family"),
        pytest.param(b"PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n", id="IPv6 as IPv4"),
        pytest.param(b"PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n", id="IPv4 as IPv6"),
        pytest.param(b"PROXY TCP4 192.0.2.1 2001:db8::2 1 2\r\n", id="mixed families"),
        pytest.param(b"PROXY TCP4 192.0.2.01 192.0.2.2 1 2\r\n", id="leading zero in an address"),
        pytest.param(b"PROXY TCP4 192.0.2 192.0.2.2 1 2\r\n", id="three octets"),
        pytest.param(b"PROXY TCP4 192.0.2.256 192.0.2.2 1 2\r\n", id="octet of 256"),
        pytest.param(b"PROXY TCP6 fe80::1%eth0 fe80::2 1 2\r\n", id="scope"),
        pytest.param(b"PROXY TCP6 [2001:db8::1] 2001:db8::2 1 2\r\n", id="brackets"),
        pytest.param(b"PROXY TCP4 example.org 192.0.2.2 1 2\r\n", id="a name"),
        pytest.param(b"PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n", id="port of 65536"),
        pytest.param(b"PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n", id="negative port"),
        pytest.param(b"PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n", id="signed port"),
        pytest.param(b"PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n", id="leading zero in a port"),
        pytest.param(b"PROXY TCP4 192.0.2.1 192.0.2.2 1_0 2\r\n", id="Python's digits"),
        pytest.param("PROXY TCP4 192.0.2.1 192.0.2.2 \u0661 2\r\n".encode(), id="Arabic digits"),
        pytest.param(b"PROXY TCP4 192.0.2.1 192.0.2.2  2\r\n", id="empty port"),
        pytest.param(b"PROXY TCP4 192.0.2.1\0 192.0.2.2 1 2\r\n", id="a NUL"),
        pytest.param(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n" + b"x" * 107, id="bare LF"),
        pytest.param(b"PROXY UNKNOWN " + b"x" * 107, id="107 octets without CRLF"),
        pytest.param(b"PROXY UNKNOWN " + b"x" * 92 + b"\r\n", id="CRLF at 108"),
        pytest.param(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r" + b"x" * 107, id="CR without LF"),
    ],
)
def test_a_line_that_is_not_of_version_1_is_refused(line: bytes) -> None:
    with pytest.raises(BadHeader):
        parse_header(line)


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(v2(0x21, 0x11, V4_BLOCK[:-1]), id="IPv4 block too short"),
        pytest.param(v2(0x21, 0x21, V6_BLOCK[:-1]), id="IPv6 block too short"),
        pytest.param(v2(0x21, 0x21, V4_BLOCK), id="IPv4 block as IPv6"),
        pytest.param(v2(0x21, 0x11, b""), id="no block"),
        pytest.param(v2(0x21, 0x11, V4_BLOCK + b"\x04"), id="TLV of one octet"),
        pytest.param(v2(0x21, 0x11, V4_BLOCK + b"\x04\x00"), id="TLV without length"),
        pytest.param(v2(0x21, 0x11, V4_BLOCK + b"\x04\x00\x02x"), id="TLV that runs over"),
        pytest.param(v2(0x21, 0x11, V4_BLOCK + b"\x04\xff\xff"), id="TLV of 65535 octets"),
        pytest.param(v2(0x21, 0x11, V4_BLOCK + b"\x03\x00\x04\0\0\0\0"), id="wrong checksum"),
        pytest.param(v2(0x21, 0x11, V4_BLOCK + b"\x03\x00\x03\0\0\0"), id="checksum of three octets"),
        pytest.param(v2(0x21, 0x11, V4_BLOCK + b"\x03\x00\x00"), id="checksum of no octet"),
        pytest.param(with_checksum(v2(0x21, 0x11, V4_BLOCK))[:-1] + b"\xff", id="checksum with a wrong octet"),
        pytest.param(SIGNATURE_V2[:-1] + b"\r" + v2(0x21, 0x11, V4_BLOCK)[12:], id="wrong signature"),
    ],
)
def test_octets_that_are_not_of_version_2_are_refused(octets: bytes) -> None:
    with pytest.raises(BadHeader):
        parse_header(octets)


@pytest.mark.parametrize(
    ("octets", "header"),
    [
        pytest.param(v2(0x21, 0x11, V4_BLOCK + b"\x04\x00\x00\x05\x00\x04abcd"), V4, id="TLVs"),
        pytest.param(with_checksum(v2(0x21, 0x11, V4_BLOCK + b"\x04\x00\x00")), V4, id="checksum behind another TLV"),
        pytest.param(v2(0x20, 0x11, V4_BLOCK), LOCAL, id="LOCAL with addresses"),
        pytest.param(v2(0x20, 0x31, b"x" * 216), LOCAL, id="LOCAL with UNIX addresses"),
        pytest.param(v2(0x21, 0x00, b""), LOCAL, id="PROXY without a family"),
        pytest.param(v2(0x21, 0x00, b"anything"), LOCAL, id="PROXY without a family, with octets"),
    ],
)
def test_what_version_2_allows_beside_the_plain_form_is_read(octets: bytes, header: Header) -> None:
    assert parse_header(octets + b"payload") == Parsed(header, len(octets))


def test_every_other_command_of_version_2_is_refused() -> None:
    for command in set(range(256)) - {0x20, 0x21}:
        with pytest.raises(BadHeader):
            parse_v2(v2(command, 0x11, V4_BLOCK))


def test_every_other_family_of_version_2_is_refused() -> None:
    for family in set(range(256)) - {0x00, 0x11, 0x21}:
        with pytest.raises(BadHeader):
            parse_v2(v2(0x21, family, V6_BLOCK))


def test_a_bad_fixed_part_is_refused_before_its_block_has_come() -> None:
    with pytest.raises(BadHeader):
        parse_v2(v2(0x21, 0x11, b"")[:16])


@pytest.mark.parametrize("octets", [b"X", b"PROXX", b"\r\n\r\nX"], ids=ascii)
def test_octets_that_can_become_no_header_are_refused_at_once(octets: bytes) -> None:
    with pytest.raises(BadHeader):
        parse_header(octets)


WRITERS = [formatter(ProxyProtocol.V1), formatter(ProxyProtocol.V2), formatter(ProxyProtocol.V2, checksum=True)]

ports = st.integers(0, 65_535)
endpoints = st.builds(Endpoint, st.ip_addresses().map(str), ports)
headers = st.builds(Header, endpoints, endpoints) | st.just(LOCAL)


@given(headers, st.binary(max_size=40))
def test_what_is_written_is_read_again_and_written_again_alike(header: Header, behind: bytes) -> None:
    for write in WRITERS:
        octets = write(header)
        parsed = parse_header(octets + behind)
        assert parsed is not None
        assert parsed.length == len(octets)
        assert write(parsed.header) == octets


@given(st.binary(max_size=300).flatmap(lambda tail: st.sampled_from([tail, b"PROXY " + tail, SIGNATURE_V2 + tail])))
def test_garbage_is_refused_or_incomplete_or_a_header_that_can_be_written(octets: bytes) -> None:
    try:
        parsed = parse_header(octets)
    except BadHeader:
        return
    if parsed is not None:
        assert 0 < parsed.length <= len(octets)
        for write in WRITERS:
            again = parse_header(write(parsed.header))
            assert again is not None
            assert write(again.header) == write(parsed.header)


@given(headers.filter(lambda header: header != LOCAL), st.data())
def test_with_a_checksum_no_changed_bit_goes_unnoticed(header: Header, data: st.DataObject) -> None:
    octets = bytearray(format_v2(header, checksum=True))
    # After the family: a change of its bits could make a valid header without addresses.
    place = data.draw(st.integers(16, len(octets) - 1))
    octets[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        parsed = parse_header(bytes(octets))
    except BadHeader:
        return
    # The type of the TLV was changed, so that it is no checksum any more.
    assert place == len(octets) - 7
    assert parsed is not None


@given(headers, st.data())
def test_a_changed_octet_gives_a_value_or_our_error(header: Header, data: st.DataObject) -> None:
    octets = bytearray(data.draw(st.sampled_from([write(header) for write in WRITERS])))
    octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    try:
        parsed = parse_header(bytes(octets))
    except BadHeader:
        return
    assert parsed is None or 0 < parsed.length <= len(octets)


@pytest.mark.parametrize(
    ("octets", "checksum"),
    [
        pytest.param(b"", 0x00000000, id="nothing"),
        pytest.param(b"123456789", 0xE3069283, id="the check value of the catalogues"),
        # RFC 3720 appendix B.4, which prints the bytes in network order.
        pytest.param(bytes(32), 0x8A9136AA, id="zeros"),
        pytest.param(b"\xff" * 32, 0x62A8AB43, id="ones"),
        pytest.param(bytes(range(32)), 0x46DD794E, id="rising"),
        pytest.param(bytes(reversed(range(32))), 0x113FDB5C, id="falling"),
    ],
)
def test_the_checksum_is_the_published_value(octets: bytes, checksum: int) -> None:
    assert crc32c(octets) == checksum


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        pytest.param(b"PROXY TCP4 198.51.100.7 192.0.2.80 1 443\r\n", Beginning.HEADER, id="version 1"),
        pytest.param(b"PROXY UNKNOWN\r\n", Beginning.HEADER, id="version 1 without addresses"),
        pytest.param(b"PROXYZ TCP4", Beginning.HEADER, id="what receivers of five octets take"),
        pytest.param(b"PROXY", Beginning.HEADER, id="version 1, no more yet"),
        pytest.param(b"PROXY\0", Beginning.HEADER, id="version 1 with a NUL"),
        pytest.param(SIGNATURE_V2, Beginning.HEADER, id="version 2"),
        pytest.param(b"\r\n\r\n\0", Beginning.HEADER, id="version 2, no more yet"),
        pytest.param(b"\r\n\r\n\0\r\nQUIT!", Beginning.HEADER, id="almost version 2"),
        pytest.param(b"PROX", Beginning.UNDECIDED, id="almost version 1"),
        pytest.param(b"P", Beginning.UNDECIDED, id="one octet"),
        pytest.param(b"\r\n\r\n", Beginning.UNDECIDED, id="two blank lines"),
        pytest.param(b"", Beginning.UNDECIDED, id="nothing"),
        pytest.param(b"PROXX", Beginning.NO_HEADER, id="other letter"),
        pytest.param(b"proxy tcp4", Beginning.NO_HEADER, id="small letters"),
        pytest.param(b" PROXY TCP4", Beginning.NO_HEADER, id="blank in front"),
        pytest.param(b"POST / HTTP/1.1", Beginning.NO_HEADER, id="POST"),
        pytest.param(b"PRI * HTTP/2.0", Beginning.NO_HEADER, id="HTTP/2"),
        pytest.param(b"\r\n\r\nGET /", Beginning.NO_HEADER, id="blank lines in front"),
        pytest.param(b"\0\r\n\r\n", Beginning.NO_HEADER, id="NUL in front"),
    ],
)
def test_the_first_octets_show_whether_a_header_begins(octets: bytes, expected: Beginning) -> None:
    assert beginning_of(octets) is expected


@given(st.sampled_from([format_v1, format_v2]), st.integers(0, LONGEST_BEGINNING + 3), st.binary(max_size=3))
def test_whatever_is_parsed_as_a_header_begins_as_one(
    write: Callable[[Header], bytes], length: int, more: bytes
) -> None:
    octets = write(LOCAL) + more
    assert beginning_of(octets) is Beginning.HEADER
    assert beginning_of(octets[:length]) is (Beginning.UNDECIDED if length < LONGEST_BEGINNING else Beginning.HEADER)

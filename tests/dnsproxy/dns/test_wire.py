"""The scan: which octets are a query, which fault the others have, and that dnspython agrees."""

from __future__ import annotations

import struct
from typing import Final

import dns.edns
import dns.exception
import dns.message
import dns.opcode
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dnsproxy.dns.wire import Edns, Fault, Query, is_truncated, question_end, rcode_of, scan_query, skip_question_name
from tests.kit.messages import (
    AAAA,
    IXFR,
    RD,
    SOA,
    header,
    opt_record,
    option,
    query,
    question,
    record,
    scanned,
    tsig_record,
    wire_name,
)
from tests.kit.rows import failing
from tests.kit.strategies import LONG_NAME, SEEDS, near_queries, octet_labels

PLAIN: Final = query("app.example.org")
WITH_OPT: Final = query("app.example.org", additional=(opt_record(options=option(3) + option(12, bytes(5))),))
SOA_RECORD: Final = record(SOA, b"\0\0" + struct.pack("!IIIII", 1, 2, 3, 4, 5))


def with_additional(*records: bytes) -> bytes:
    return query("app.example.org", additional=records)


def test_a_query_is_read_whole() -> None:
    message = query("App.Example.ORG", AAAA, klass=3, additional=(opt_record(4096, flags=0x8000),))
    found = scanned(message)
    assert found.message is message
    assert found.name == wire_name("app.example.org")
    assert (found.type, found.klass) == (AAAA, 3)
    assert found.question == question("App.Example.ORG", AAAA, 3)
    assert found.edns == Edns(version=0, udp_size=4096, do=True)


def test_less_than_a_header_is_short() -> None:
    for octets in (PLAIN, b"\xff" * 12):
        assert [size for size in range(12) if scan_query(octets[:size]) is not Fault.SHORT] == []


def test_only_opcode_zero_is_a_query_and_a_response_never_is() -> None:
    def check(opcode: int) -> None:
        flags = opcode << 11 | RD
        found = scan_query(query("app.example.org", flags=flags))
        assert isinstance(found, Query) if opcode == 0 else found is Fault.OPCODE
        assert scan_query(query("app.example.org", flags=flags | 0x8000)) is Fault.RESPONSE

    assert failing(check, range(16)) == []


def test_no_other_header_bit_makes_a_query_malformed() -> None:
    names = [scanned(query("app.example.org", flags=1 << bit)).name for bit in range(11)]
    assert names == [wire_name("app.example.org")] * 11


def test_every_length_octet_is_the_root_a_label_or_a_fault() -> None:
    def check(length: int) -> None:
        message = header() + bytes([length]) + b"a" * length + b"\0" + struct.pack("!HH", 1, 1)
        if length == 0:
            # After the root follow one octet too many, type and class.
            assert scan_query(message) is Fault.FORM
            assert scanned(header() + b"\0" + struct.pack("!HH", 2, 1)).name == b"\0"
        elif length <= 63:
            assert scanned(message).name == bytes([length]) + b"a" * length + b"\0"
        else:
            assert scan_query(message) is Fault.FORM

    assert failing(check, range(256)) == []


def test_every_octet_may_stand_in_a_label_and_only_ascii_letters_fold() -> None:
    def check(octet: int) -> None:
        found = scanned(query(bytes([3, 0x41, octet, 0x7A, 0])))
        folded = octet + 32 if 0x41 <= octet <= 0x5A else octet
        assert found.name == bytes([3, 0x61, folded, 0x7A, 0])
        assert found.question[:5] == bytes([3, 0x41, octet, 0x7A, 0])

    assert failing(check, range(256)) == []


@pytest.mark.parametrize(
    ("name", "good"),
    [
        pytest.param(wire_name(LONG_NAME), True, id="255 octets"),
        pytest.param(wire_name(LONG_NAME.replace("d" * 61, "d" * 62)), False, id="256 octets"),
        pytest.param(b"\x01a" * 127 + b"\0", True, id="127 labels"),
        pytest.param(b"\x01a" * 128 + b"\0", False, id="128 labels"),
        pytest.param((b"\x3f" + b"a" * 63) * 4 + b"\0", False, id="four labels of 63"),
        pytest.param((b"\x3f" + b"a" * 63) * 1000 + b"\0", False, id="64,000 octets"),
    ],
)
def test_a_name_has_at_most_255_octets(name: bytes, good: bool) -> None:
    assert isinstance(scan_query(query(name)), Query) is good


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(b"\xc0\x0c", id="to itself"),
        pytest.param(b"\x01a\xc0\x0c", id="loop"),
        pytest.param(b"\xc0\x0e\0", id="forward"),
        pytest.param(b"\xc0\x00", id="into the header"),
        pytest.param(b"\xff\xff", id="beyond the end"),
        pytest.param(b"\x03app\xc0\x04", id="behind a label"),
        pytest.param(b"\x40" + b"a" * 64 + b"\0", id="label type 01"),
        pytest.param(b"\x41\x01\0", id="bit string"),
        pytest.param(b"\x80\0", id="label type 10"),
    ],
)
def test_a_question_has_no_pointer_and_no_other_label_type(name: bytes) -> None:
    message = query(name)
    assert scan_query(message) is Fault.FORM
    assert skip_question_name(message) == 0
    assert question_end(message) == 0


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(header() + wire_name("app.example.org"), id="no type"),
        pytest.param(header() + wire_name("app.example.org") + b"\0\1\0", id="cut class"),
        pytest.param(header(), id="no question"),
        pytest.param(header() + b"\3ap", id="cut label"),
        pytest.param(header() + b"\3app", id="no end"),
        pytest.param(header(counts=(0, 0, 0, 0)), id="QDCOUNT 0, nothing"),
        pytest.param(header(counts=(0, 0, 0, 0)) + question("app.example.org"), id="QDCOUNT 0, a question"),
        pytest.param(header(counts=(0, 0, 0, 1)) + opt_record(), id="QDCOUNT 0, an OPT"),
        pytest.param(header(counts=(2, 0, 0, 0)) + question("app.example.org") * 2, id="the same question twice"),
        pytest.param(
            header(counts=(2, 0, 0, 0)) + question("a.example.org") + question("b.example.org"), id="two names"
        ),
        pytest.param(header(counts=(2, 0, 0, 0)) + question("app.example.org"), id="QDCOUNT 2, one question"),
        pytest.param(header(counts=(257, 0, 0, 0)) + question("app.example.org"), id="QDCOUNT 257"),
        pytest.param(header(counts=(65535, 0, 0, 0)), id="QDCOUNT 65535, nothing"),
    ],
)
def test_a_query_has_exactly_one_whole_question(message: bytes) -> None:
    assert scan_query(message) is Fault.FORM
    assert question_end(message) == 0


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(header(counts=(1, 65535, 0, 0)) + question("app.example.org"), id="ANCOUNT 65535, nothing"),
        pytest.param(header(counts=(1, 0, 65535, 0)) + question("app.example.org"), id="NSCOUNT 65535, nothing"),
        pytest.param(header(counts=(1, 0, 0, 65535)) + question("app.example.org"), id="ARCOUNT 65535, nothing"),
        pytest.param(header(counts=(1, 0, 0, 1)) + question("app.example.org"), id="ARCOUNT 1, nothing"),
        pytest.param(header(counts=(1, 0, 0, 256)) + question("app.example.org"), id="ARCOUNT 256, nothing"),
        pytest.param(
            header(counts=(1, 1, 0, 0)) + question("app.example.org") + record(1, b"\xc0\0\2\1"), id="an answer"
        ),
        pytest.param(header(counts=(1, 0, 1, 0)) + question("app.example.org") + SOA_RECORD, id="an authority"),
        pytest.param(header(counts=(1, 1, 0, 0)) + question("app.example.org") + opt_record(), id="OPT as answer"),
        pytest.param(header(counts=(1, 0, 1, 0)) + question("app.example.org") + opt_record(), id="OPT as authority"),
        pytest.param(
            header(counts=(1, 0, 1, 0)) + question("app.example.org", IXFR) + opt_record(), id="OPT as IXFR's authority"
        ),
        pytest.param(
            header(counts=(1, 0, 2, 0)) + question("app.example.org", IXFR) + SOA_RECORD * 2, id="IXFR with two SOAs"
        ),
        pytest.param(with_additional(opt_record(), tsig_record(), tsig_record()), id="three additional records"),
        pytest.param(PLAIN + b"\0", id="one octet behind"),
        pytest.param(PLAIN + record(1, b"\xc0\0\2\1"), id="a smuggled record"),
        pytest.param(PLAIN + opt_record(), id="an OPT that is not counted"),
        pytest.param(WITH_OPT + b"\0", id="one octet behind the OPT"),
        pytest.param(with_additional(tsig_record()[:-1]), id="cut TSIG"),
        pytest.param(with_additional(b"\xc0"), id="half a pointer"),
        pytest.param(with_additional(b"\x41" * 300), id="owner of no label type"),
        pytest.param(with_additional(record(1, b"\xc0\0\2\1", owner=b"\x01a" * 128 + b"\0")), id="owner of 257 octets"),
        pytest.param(with_additional(b"\x3f" + b"a" * 63), id="owner without end"),
    ],
)
def test_nothing_but_additional_records_follows_the_question(message: bytes) -> None:
    assert scan_query(message) is Fault.FORM


@pytest.mark.parametrize(
    "records",
    [
        pytest.param((opt_record(), opt_record()), id="two"),
        pytest.param((opt_record(), opt_record(4096, flags=0x8000)), id="two that differ"),
        pytest.param((opt_record(owner=wire_name("example.org")),), id="owner name"),
        pytest.param((opt_record(owner=b"\xc0\x0c"),), id="owner by pointer"),
        pytest.param((opt_record(options=b"\0"),), id="option of one octet"),
        pytest.param((opt_record(options=b"\0\3\0"),), id="option without length"),
        pytest.param((opt_record(options=b"\0\3\0\1"),), id="option that overruns"),
        pytest.param((opt_record(options=option(3) + b"\0\x0c\xff\xff"),), id="second option overruns"),
        pytest.param((opt_record(options=option(8, bytes(4)) + b"\0"),), id="octet behind the options"),
        pytest.param((opt_record(options=b"\0\x0b\0\1"),), id="keepalive that overruns"),
        pytest.param((opt_record()[:-2] + b"\0\1",), id="RDLENGTH past the message"),
        pytest.param((opt_record()[:-2] + b"\xff\xff",), id="RDLENGTH 65535"),
        pytest.param((opt_record()[:-1],), id="cut RDLENGTH"),
        pytest.param((opt_record(options=option(8, bytes(4)))[:-1],), id="cut option"),
    ],
)
def test_a_bad_opt_makes_the_query_malformed(records: tuple[bytes, ...]) -> None:
    assert scan_query(with_additional(*records)) is Fault.FORM
    assert scan_query(with_additional(*records)[:-1]) is Fault.FORM


@pytest.mark.parametrize(
    ("records", "edns"),
    [
        pytest.param((), None, id="none"),
        pytest.param((tsig_record(),), None, id="TSIG alone"),
        pytest.param((opt_record(),), Edns(0, 1232, do=False), id="plain"),
        pytest.param((opt_record(0, flags=0xFFFF),), Edns(0, 0, do=True), id="size 0 and every flag"),
        pytest.param((opt_record(65535, flags=0x7FFF),), Edns(0, 65535, do=False), id="size 65535, all but DO"),
        pytest.param((opt_record(rcode=255),), Edns(0, 1232, do=False), id="an extended rcode in a query"),
        pytest.param((opt_record(options=option(100)),), Edns(0, 1232, do=False), id="unknown option"),
        pytest.param((opt_record(options=option(10, bytes(41))),), Edns(0, 1232, do=False), id="cookie too long"),
        pytest.param((opt_record(options=option(3) * 9),), Edns(0, 1232, do=False), id="NSID nine times"),
        pytest.param((opt_record(options=option(65001) * 16_000),), Edns(0, 1232, do=False), id="16,000 options"),
        pytest.param((opt_record(options=option(11)),), Edns(0, 1232, do=False, keepalive=True), id="keepalive"),
        pytest.param(
            (opt_record(options=option(3) + option(11, bytes(2)) * 2 + option(12, b"\0\x0b")),),
            Edns(0, 1232, do=False, keepalive=True),
            id="keepalive twice, with a time, among others",
        ),
        pytest.param(
            (opt_record(options=option(12, b"\0\x0b\0\0") + option(0x0B00)),),
            Edns(0, 1232, do=False),
            id="keepalive in the data of another option",
        ),
        pytest.param((opt_record(), tsig_record()), Edns(0, 1232, do=False), id="before a TSIG"),
        pytest.param((tsig_record(), opt_record()), Edns(0, 1232, do=False), id="behind a TSIG"),
    ],
)
def test_an_opt_is_read_wherever_it_stands(records: tuple[bytes, ...], edns: Edns | None) -> None:
    assert scanned(with_additional(*records)).edns == edns


def test_every_edns_version_is_read() -> None:
    read = {version: scanned(with_additional(opt_record(version=version))).edns for version in range(256)}
    assert read == {version: Edns(version, 1232, do=False) for version in range(256)}


@pytest.mark.parametrize("records", [(), (opt_record(flags=0x8000),)], ids=["plain", "OPT"])
def test_an_incremental_transfer_names_its_soa(records: tuple[bytes, ...]) -> None:
    head = header(counts=(1, 0, 1, len(records)))
    found = scanned(head + question("example.org", IXFR) + SOA_RECORD + b"".join(records))
    assert found.type == IXFR
    assert (found.edns is not None) == bool(records)


@pytest.mark.parametrize("message", [PLAIN, WITH_OPT, with_additional(opt_record(), tsig_record())], ids=len)
def test_a_query_cut_anywhere_is_no_query(message: bytes) -> None:
    assert isinstance(scan_query(message), Query)
    assert all(isinstance(scan_query(message[:end]), Fault) for end in range(len(message)))


def test_a_chain_of_pointers_is_not_walked() -> None:
    """Each of 3,950 owners points at the previous one: following them takes seconds."""
    owners = b"".join(struct.pack("!H", 0xC000 | 12 + index & 0x3FFF) + bytes(14) for index in range(3950))
    assert scan_query(header(counts=(1, 0, 0, 3950)) + question("") + owners) is Fault.FORM
    assert scan_query(header(counts=(1, 0, 0, 2)) + question("") + owners) is Fault.FORM


def test_the_end_of_a_question_is_found_in_a_reply_too() -> None:
    head = header(0x8180, (1, 1, 0, 0))
    message = head + question("app.example.org") + record(1, b"\xc0\0\2\1")
    assert question_end(message) == len(head) + len(question("app.example.org"))
    assert question_end(b"") == 0


@given(st.lists(octet_labels, max_size=4), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_a_question_of_any_labels_is_echoed_as_it_came(labels: list[bytes], qtype: int, klass: int) -> None:
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    found = scan_query(query(name, qtype, klass=klass))
    if len(name) > 255:
        assert found is Fault.FORM
    else:
        assert found == Query(query(name, qtype, klass=klass), name.lower(), qtype, klass, 12 + len(name) + 4, None)


# Options that dnspython parses and we only skip: more with each of its versions.
_READ_OPTIONS: Final = tuple(
    code
    for code in range(256)
    if dns.edns.get_option_class(dns.edns.OptionType.make(code)) is not dns.edns.GenericOption
)


def dnspython_verdict(message: bytes) -> dns.message.Message | None:
    """The message, if dnspython accepts it as a query with one question."""
    try:
        found = dns.message.from_wire(message, keyring=False, one_rr_per_rrset=True)
    except (dns.exception.DNSException, ValueError, KeyError):
        return None
    is_query = not found.flags & 0x8000 and found.opcode() == dns.opcode.QUERY
    return found if is_query and len(found.question) == 1 else None


def why_stricter(message: bytes, theirs: dns.message.Message) -> str | None:
    """Why we may refuse a query that dnspython accepts; None if there is no reason."""
    _, answers, authorities, additional = struct.unpack_from("!HHHH", message, 4)
    if answers or authorities:
        return "a query has no answers and, IXFR aside, no authorities"
    if additional > 2:
        return "a query has no more additional records than an OPT and a signature"
    if not skip_question_name(message):
        return "a pointer in the question has nothing to point at but the header"
    if theirs.opt is not None and message[question_end(message)] >= 0xC0:
        return "an OPT's owner is the root itself, not a pointer to a zero octet"
    return None


def why_laxer(message: bytes, ours: Query) -> str | None:
    """Why we may accept a query that dnspython refuses; None if there is no reason."""
    if message[8:10] != b"\0\0" and ours.type == IXFR:
        return "the SOA of an IXFR goes nowhere, as the query is refused"
    additional = message[10] << 8 | message[11]
    if additional > (ours.edns is not None):
        return "records other than OPT are passed on, not read"
    if ours.edns is not None and any(struct.pack("!H", code) in message[ours.end :] for code in _READ_OPTIONS):
        return "what is in an option is ignored, as long as its length fits"
    return None


@settings(max_examples=600)
@given(near_queries() | st.binary(max_size=80).map(lambda tail: header() + tail))
def test_the_scan_and_dnspython_agree_on_what_a_query_is(message: bytes) -> None:
    ours = scan_query(message)
    theirs = dnspython_verdict(message)
    if isinstance(ours, Query) and theirs is None:
        assert why_laxer(message, ours) is not None
    elif not isinstance(ours, Query) and theirs is not None:
        assert why_stricter(message, theirs) is not None
    elif isinstance(ours, Query) and theirs is not None:
        (row,) = theirs.question
        assert ours.question == question(row.name.to_wire() or b"", row.rdtype, row.rdclass)
        if theirs.edns < 0:
            assert ours.edns is None
        else:
            keepalive = any(row.otype == 11 for row in theirs.options)
            assert ours.edns == Edns(theirs.edns, theirs.payload, bool(theirs.ednsflags & 0x8000), keepalive)


@pytest.mark.parametrize("message", SEEDS, ids=range(len(SEEDS)))
def test_the_seeds_of_the_mutations_are_queries(message: bytes) -> None:
    assert isinstance(scan_query(message), Query)


def test_the_code_of_a_reply_is_in_its_flags() -> None:
    assert [flags for flags in range(256) if rcode_of(header(0x8000 | flags)) != flags & 0xF] == []


def test_the_tc_flag_of_a_reply_is_read() -> None:
    every = range(0x80, 0x100)
    assert [flags for flags in every if is_truncated(bytes([0, 0, flags, 0x80])) != bool(flags & 0x02)] == []

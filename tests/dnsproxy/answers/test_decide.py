"""The decision: an outcome for any octets, and answers that two other libraries read as intended."""

from __future__ import annotations

import ipaddress
import random
import struct
from typing import Final

import dns.message
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dnsproxy.answers.decide import (
    Answer,
    Drop,
    Forward,
    Refuse,
    decide,
    refuse,
    reply_limit,
    server_failure,
)
from dnsproxy.answers.table import HostTable
from dnsproxy.dns.wire import Fault, Rcode
from tests.kit.messages import (
    AAAA,
    ANY,
    AXFR,
    HINFO,
    HTTPS,
    IXFR,
    MX,
    NS,
    RD,
    SOA,
    SVCB,
    TTL,
    TXT,
    A,
    Opt,
    Reading,
    header,
    opt_record,
    option,
    query,
    question,
    read_both,
    read_dnspython,
    record,
    scanned,
    table_of,
    tsig_record,
    wire_name,
)
from tests.kit.rows import failing
from tests.kit.strategies import (
    LONG_NAME,
    SEEDS,
    TABLE,
    Asked,
    case_of,
    mutate,
    octet_labels,
    table_names,
    table_queries,
)

MUTATIONS: Final = 100_000


def answer(message: bytes, table: HostTable = TABLE, *, stream: bool = False) -> Reading:
    """The answer to a query, as both libraries read it."""
    outcome = decide(message, table, stream=stream)
    assert isinstance(outcome, Answer), outcome
    return read_both(outcome.message)


def refusal(message: bytes, *, stream: bool = False) -> tuple[Rcode, Reading]:
    """The code of a refusal, and the reply as both libraries read it."""
    outcome = decide(message, TABLE, stream=stream)
    assert isinstance(outcome, Refuse), outcome
    return outcome.rcode, read_both(outcome.message)


def addresses_in(reading: Reading) -> set[str]:
    return {str(content) for *_, content in reading.answers}


# --- answers ---------------------------------------------------------------------------------------------------------


@settings(max_examples=400)
@given(table_queries())
def test_two_libraries_read_in_every_answer_what_the_zone_says(asked: Asked) -> None:
    outcome = decide(asked.message, TABLE, stream=asked.stream)
    assert isinstance(outcome, Answer)
    reply = outcome.message
    reading = read_both(reply)
    limit = 65535 if asked.stream else 512 if asked.edns is None else max(512, min(asked.edns[0], 1232))
    name = asked.question[:-4]

    assert reading.ident == int.from_bytes(asked.message[:2], "big")
    assert reading.rcode == 0
    # QR, AA and RA; RD and CD as in the query; neither AD nor Z nor opcode.
    assert reading.flags & ~0x0200 == 0x8480 | asked.flags & 0x0110
    assert reply[12 : 12 + len(asked.question)] == asked.question
    assert reading.question == ((name, asked.qtype, 1),)
    assert len(reply) <= limit
    if asked.edns is None:
        assert reading.opt is None
    else:
        assert reading.opt == Opt(0, 1232, do=bool(asked.edns[1] & 0x8000), other_flags=0, options=0)

    version = {A: 4, AAAA: 6}.get(asked.qtype)
    family = {address for address in asked.addresses if ipaddress.ip_address(address).version == version}
    size_of_all = 12 + len(asked.question) + len(family) * (16 if version == 4 else 28) + (11 if asked.edns else 0)
    if size_of_all > limit:
        assert reading.has(0x0200)
        assert (reading.answers, reading.authorities) == (frozenset(), ())
        return
    assert not reading.has(0x0200)
    assert {(owner, kind, ttl) for owner, kind, ttl, _ in reading.answers} <= {
        (name, HINFO if asked.qtype == ANY else asked.qtype, TTL)
    }
    if asked.qtype == ANY:
        assert [content for *_, content in reading.answers] == [b"\x07RFC8482\0"]
    else:
        assert addresses_in(reading) == {str(ipaddress.ip_address(address)) for address in family}
    if reading.answers:
        assert reading.authorities == ()
    else:
        assert reading.authorities == ((name, SOA, TTL, (name, b"\x06nobody\x07invalid\0", TTL)),)


@given(table_names(labels=octet_labels.map(lambda label: label.decode("latin-1").replace(".", "-"))), st.data())
def test_a_wildcard_answers_labels_of_any_octets(named: tuple[str, tuple[str, ...]], data: st.DataObject) -> None:
    """Without dnslib, which refuses to read an octet above 127."""
    name = case_of(wire_name(named[0]), data.draw(st.integers(0, 2**64 - 1)))
    if len(name) > 255:
        return
    message = query(name, additional=(opt_record(),))
    outcome = decide(message, TABLE, stream=True)
    assert isinstance(outcome, Answer)
    reading = read_dnspython(outcome.message)
    assert reading.question == ((name, A, 1),)
    assert addresses_in(reading) == {address for address in named[1] if ":" not in address}


@pytest.mark.parametrize("qtype", [AAAA, HTTPS, SVCB], ids=["AAAA", "HTTPS", "SVCB"])
def test_a_name_without_that_family_or_type_is_nodata_and_not_forwarded(qtype: int) -> None:
    reading = answer(query("app.example.org", qtype))
    assert (reading.rcode, reading.answers) == (0, frozenset())
    assert [kind for _, kind, _, _ in reading.authorities] == [SOA]


@pytest.mark.parametrize("qtype", [A, AAAA, HTTPS, SVCB, ANY])
@pytest.mark.parametrize("stream", [False, True], ids=["UDP", "TCP"])
def test_an_answer_from_one_address_is_small(qtype: int, stream: bool) -> None:
    """A spoofed sender gets at most four times the octets of the query."""
    for additional in ((), (opt_record(),)):
        message = query("app.example.org", qtype, additional=additional)
        outcome = decide(message, TABLE, stream=stream)
        assert isinstance(outcome, Answer)
        assert len(outcome.message) <= 4 * len(message)


@pytest.mark.parametrize(
    ("name", "size", "stream", "cut"),
    [
        pytest.param("many.example.org", None, False, True, id="640 octets of records, no EDNS"),
        pytest.param("many.example.org", 0, False, True, id="size 0 is 512"),
        pytest.param("many.example.org", 511, False, True, id="size 511 is 512"),
        pytest.param("many.example.org", 512, False, True, id="size 512"),
        pytest.param("many.example.org", 685, False, False, id="to the octet"),
        pytest.param("many.example.org", 684, False, True, id="one octet less"),
        pytest.param("many.example.org", 65535, False, False, id="size 65535"),
        pytest.param("hundreds.example.org", 65535, False, True, id="never more than 1232 over UDP"),
        pytest.param("hundreds.example.org", 512, True, False, id="over TCP the size counts for nothing"),
        pytest.param("hundreds.example.org", None, True, False, id="over TCP without EDNS"),
    ],
)
def test_an_answer_that_does_not_fit_is_cut_to_its_question(
    name: str, size: int | None, stream: bool, cut: bool
) -> None:
    additional = () if size is None else (opt_record(size, flags=0x8000),)
    reading = answer(query(name, additional=additional), stream=stream)
    assert reading.has(0x0200) == cut
    assert len(reading.answers) == (0 if cut else {"many.example.org": 40, "hundreds.example.org": 200}[name])
    assert reading.opt == (None if size is None else Opt(0, 1232, do=True, other_flags=0, options=0))


KEEPALIVE: Final = query("app.example.org", additional=(opt_record(options=option(11)),))


@pytest.mark.parametrize(
    ("message", "seconds", "told"),
    [
        pytest.param(KEEPALIVE, 30.0, b"\0\x0b\0\2\1\x2c", id="asked"),
        pytest.param(KEEPALIVE, None, b"", id="asked over UDP"),
        pytest.param(query("app.example.org", additional=(opt_record(),)), 30.0, b"", id="not asked"),
        pytest.param(query("app.example.org", additional=(opt_record(options=option(12)),)), 30.0, b"", id="padding"),
    ],
)
def test_a_client_that_asks_over_tcp_gets_the_idle_time(message: bytes, seconds: float | None, told: bytes) -> None:
    outcome = decide(message, TABLE, stream=seconds is not None, keepalive=seconds)
    assert isinstance(outcome, Answer)
    assert outcome.message.endswith(b"\x29\x04\xd0\0\0\0\0" + len(told).to_bytes(2, "big") + told)
    assert read_both(outcome.message).opt == Opt(0, 1232, do=False, other_flags=0, options=1 if told else 0)


def test_an_answer_beyond_every_message_is_cut_even_over_tcp() -> None:
    addresses = " ".join(f"10.{number >> 8}.{number & 255}.1" for number in range(5000))
    reading = answer(query("app.example.org"), table_of(f"app.example.org {addresses}"), stream=True)
    assert reading.has(0x0200)
    assert reading.answers == frozenset()


@pytest.mark.parametrize("flags", [1 << bit for bit in range(11)])
def test_every_header_flag_is_answered(flags: int) -> None:
    reading = answer(query("app.example.org", flags=flags))
    assert reading.flags == 0x8480 | flags & 0x0110
    assert addresses_in(reading) == {"192.0.2.10"}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(option(100), id="unknown"),
        pytest.param(option(10, bytes(8)), id="cookie"),
        pytest.param(option(10), id="empty cookie"),
        pytest.param(option(10, bytes(41)), id="cookie of 41 octets"),
        pytest.param(option(3) + option(9) + option(8, b"\0\1\0\0"), id="NSID, expire, subnet"),
        pytest.param(option(3) * 5 + option(10, bytes(8)) * 5 + option(12, bytes(9)) * 5, id="all five times"),
        pytest.param(option(11), id="keepalive"),
        pytest.param(option(11, b"\0\x64"), id="keepalive with a value"),
        pytest.param(option(65001) * 5000, id="five thousand"),
    ],
)
def test_no_option_is_echoed(options: bytes) -> None:
    for stream in (False, True):
        reading = answer(query("app.example.org", additional=(opt_record(options=options),)), stream=stream)
        assert reading.opt == Opt(0, 1232, do=False, other_flags=0, options=0)
        assert addresses_in(reading) == {"192.0.2.10"}


# --- refusals --------------------------------------------------------------------------------------------------------


def test_an_edns_version_above_0_is_badvers() -> None:
    def check(version: int) -> None:
        opt = opt_record(version=version, flags=0x8000, options=option(100))
        rcode, reading = refusal(query("app.example.org", additional=(opt,)))
        assert (rcode, reading.rcode) == (Rcode.BADVERS, 16)
        assert not reading.has(0x0400)
        assert reading.opt == Opt(0, 1232, do=True, other_flags=0, options=0)
        assert (reading.answers, reading.authorities) == (frozenset(), ())
        assert reading.question == ((wire_name("app.example.org"), A, 1),)

    assert failing(check, range(1, 256)) == []


@pytest.mark.parametrize("name", ["app.example.org", "version.bind", "other.example.com"])
def test_no_class_but_in_is_served(name: str) -> None:
    def check(klass: int) -> None:
        rcode, reading = refusal(query(name, klass=klass))
        assert (rcode, reading.rcode) == (Rcode.REFUSED, 5)
        assert reading.question == ((wire_name(name), A, klass),)
        assert not reading.has(0x0400)

    assert failing(check, [0, 2, 3, 4, 254, 255, 65535]) == []


@pytest.mark.parametrize("name", ["app.example.org", "other.example.com", ""], ids=["ours", "other", "root"])
def test_transfers_are_refused_and_never_forwarded(name: str) -> None:
    def check(qtype: int, edns: bool, stream: bool) -> None:
        message = query(name, qtype, additional=(opt_record(),) if edns else ())
        rcode, reading = refusal(message, stream=stream)
        assert (rcode, reading.rcode) == (Rcode.REFUSED, 5)
        assert (reading.opt is not None) == edns

    assert failing(check, [AXFR, IXFR], [False, True], [False, True]) == []


def test_an_incremental_transfer_with_its_soa_is_refused_with_an_opt() -> None:
    soa = record(SOA, b"\0\0" + bytes(20))
    message = header(counts=(1, 0, 1, 1)) + question("example.org", IXFR) + soa + opt_record()
    rcode, reading = refusal(message)
    assert rcode is Rcode.REFUSED
    assert reading.opt is not None


@pytest.mark.parametrize("opcode", range(1, 16))
def test_every_other_opcode_is_not_implemented(opcode: int) -> None:
    flags = opcode << 11 | RD
    for message, echoed in (
        (header(flags, (0, 0, 0, 0)), b""),
        (query("app.example.org", SOA, flags=flags), question("app.example.org", SOA)),
        (query("app.example.org", SOA, flags=flags, additional=(opt_record(),)), question("app.example.org", SOA)),
        (header(flags, (2, 0, 0, 0)) + question("app.example.org") * 2, b""),
        (header(flags, (1, 0, 0, 0)) + b"\xc0\x0c\0\1\0\1", b""),
        (header(flags, (1, 1, 1, 1)), b""),
    ):
        outcome = decide(message, TABLE, stream=False)
        head = struct.pack("!HHHHHH", 0x1234, 0x8180 | opcode << 11 | 4, 1 if echoed else 0, 0, 0, 0)
        assert outcome == Refuse(head + echoed, Rcode.NOTIMP)


@pytest.mark.parametrize(
    ("message", "echoed"),
    [
        pytest.param(header(), b"", id="no question"),
        pytest.param(header() + b"\3ap", b"", id="cut question"),
        pytest.param(header(counts=(0, 0, 0, 0)), b"", id="QDCOUNT 0"),
        pytest.param(header(counts=(2, 0, 0, 0)) + question("app.example.org") * 2, b"", id="two questions"),
        pytest.param(query(b"\xc0\x0c"), b"", id="pointer in the question"),
        pytest.param(query(b"\x01a" * 128 + b"\0"), b"", id="name too long"),
        pytest.param(query("app.example.org") + b"tail", question("app.example.org"), id="octets behind"),
        pytest.param(
            query("app.example.org", additional=(opt_record(), opt_record())),
            question("app.example.org"),
            id="two OPTs",
        ),
        pytest.param(
            header(counts=(1, 65535, 0, 0)) + question("app.example.org"),
            question("app.example.org"),
            id="ANCOUNT lies",
        ),
    ],
)
def test_a_malformed_query_gets_formerr_and_its_question_where_it_has_one(message: bytes, echoed: bytes) -> None:
    outcome = decide(message, TABLE, stream=False)
    head = struct.pack("!HHHHHH", 0x1234, 0x8181, 1 if echoed else 0, 0, 0, 0)
    assert outcome == Refuse(head + echoed, Rcode.FORMERR)


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        pytest.param(b"", Fault.SHORT, id="nothing"),
        pytest.param(b"\x12", Fault.SHORT, id="1 octet"),
        pytest.param(query("app.example.org")[:11], Fault.SHORT, id="11 octets"),
        pytest.param(query("app.example.org", flags=0x8000), Fault.RESPONSE, id="response"),
        pytest.param(query("app.example.org", flags=0x8000 | 4 << 11), Fault.RESPONSE, id="response to a NOTIFY"),
        pytest.param(header(0x8000, (0, 0, 0, 0)), Fault.RESPONSE, id="header of a response"),
    ],
)
def test_what_could_start_a_loop_gets_nothing(message: bytes, fault: Fault) -> None:
    assert decide(message, TABLE, stream=False) == Drop(fault)
    assert server_failure(message) is None


@pytest.mark.parametrize("rcode", Rcode)
@pytest.mark.parametrize("extended", [None, 22], ids=["no EDE", "EDE"])
def test_a_refusal_has_its_reason_if_the_client_uses_edns(rcode: Rcode, extended: int | None) -> None:
    plain, spoken = query("app.example.org"), query("app.example.org", additional=(opt_record(flags=0x8000),))
    without = read_both(refuse(scanned(plain), rcode, extended_error=extended).message)
    assert (without.rcode, without.opt) == (rcode & 0xF, None)
    with_opt = read_both(refuse(scanned(spoken), rcode, extended_error=extended).message)
    assert with_opt.rcode == rcode
    assert with_opt.opt == Opt(0, 1232, do=True, other_flags=0, options=0 if extended is None else 1)


@pytest.mark.parametrize(
    ("message", "questions"),
    [
        pytest.param(query("app.example.org", additional=(opt_record(),)), 1, id="query"),
        pytest.param(header(counts=(0, 0, 0, 0)), 0, id="header"),
        pytest.param(header() + b"\xc0\x0c", 0, id="malformed"),
    ],
)
def test_a_server_failure_echoes_the_question_it_finds(message: bytes, questions: int) -> None:
    failure = server_failure(message)
    assert failure is not None
    reading = read_both(failure)
    assert (reading.rcode, reading.flags, len(reading.question)) == (2, 0x8180, questions)


# --- what is forwarded -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shields"),
    [
        pytest.param("other.example.com", False, id="other"),
        pytest.param("app.example.org.ns.svc.cluster.local", False, id="ours with a search domain"),
        pytest.param("x.app.example.org", False, id="below ours"),
        pytest.param("example.org", True, id="above ours"),
        pytest.param("org", True, id="far above ours"),
        pytest.param("one.example.org", True, id="parent of a wildcard"),
        pytest.param("a.b.one.example.org", False, id="two labels below a wildcard of one"),
        pytest.param("EXAMPLE.org", True, id="above ours in upper case"),
        pytest.param("", True, id="root"),
    ],
)
def test_a_name_that_is_not_ours_is_forwarded_unchanged(name: str, shields: bool) -> None:
    def check(qtype: int) -> None:
        message = query(name, qtype)
        outcome = decide(message, TABLE, stream=False)
        assert outcome == Forward(scanned(message), shields)
        assert isinstance(outcome, Forward)
        assert outcome.query.message is message

    assert failing(check, [A, AAAA, NS, ANY, 0, 1000, 65280, 65535]) == []


@pytest.mark.parametrize("name", ["app.example.org", "x.one.example.org"], ids=["exact", "wildcard"])
def test_another_type_of_our_name_is_forwarded_and_shielded(name: str) -> None:
    def check(qtype: int) -> None:
        message = query(name, qtype)
        assert decide(message, TABLE, stream=False) == Forward(scanned(message), shields=True)

    assert failing(check, [0, NS, 5, SOA, MX, TXT, 33, 41, 43, 250, 257, 1000, 65280, 65535]) == []


@pytest.mark.parametrize(
    "additional",
    [
        pytest.param((opt_record(version=1),), id="EDNS version 1"),
        pytest.param((opt_record(options=option(10, bytes(8))),), id="cookie"),
        pytest.param((tsig_record(),), id="TSIG"),
        pytest.param((opt_record(), tsig_record()), id="OPT and TSIG"),
    ],
)
def test_what_is_not_ours_to_answer_is_not_ours_to_judge(additional: tuple[bytes, ...]) -> None:
    message = query("other.example.com", additional=additional)
    assert decide(message, TABLE, stream=False) == Forward(scanned(message), shields=False)


def test_a_denied_name_below_a_wildcard_is_forwarded() -> None:
    table = table_of("**.example.org 192.0.2.1", never=("intern.example.org",))
    message = query("intern.example.org")
    assert decide(message, table, stream=False) == Forward(scanned(message), shields=False)
    assert addresses_in(answer(query("extern.example.org"), table)) == {"192.0.2.1"}


def test_an_empty_table_forwards_all() -> None:
    message = query("app.example.org")
    assert decide(message, HostTable(), stream=False) == Forward(scanned(message), shields=False)


def test_equal_text_of_other_octets_is_another_name() -> None:
    """A dot inside a label: the text is a.b.example.org, but the name is another one."""
    table = table_of("a.b.example.org 192.0.2.1")
    message = query(b"\x03a.b" + wire_name("example.org"))
    assert decide(message, table, stream=False) == Forward(scanned(message), shields=False)


def test_octets_fold_in_ascii_only() -> None:
    table = table_of("k.example.org 192.0.2.1")
    queries = [query(bytes([1, octet]) + wire_name("example.org")) for octet in range(256)]
    answered = [octet for octet, one in enumerate(queries) if isinstance(decide(one, table, stream=False), Answer)]
    assert bytes(answered) == b"Kk"


# --- any octets ------------------------------------------------------------------------------------------------------


def assert_outcome(message: bytes, *, stream: bool) -> str:
    """Check the outcome of any octets, and return its name."""
    outcome = decide(message, TABLE, stream=stream)
    if isinstance(outcome, Drop):
        assert len(message) < 12 or message[2] & 0x80
        return "drop"
    if isinstance(outcome, Forward):
        assert outcome.query.message is message
        return "forward"
    reply = outcome.message
    assert reply[:2] == message[:2]
    assert reply[2] & 0xF8 == 0x80 | message[2] & 0x78
    assert reply[4:6] in (b"\0\0", b"\0\1")
    assert len(reply) <= (65535 if stream else 1232)
    if isinstance(outcome, Refuse):
        assert len(reply) <= len(message)
    # Read as a reply to QUERY: dnspython has other rules for the questions of other opcodes.
    dns.message.from_wire(reply[:2] + bytes([reply[2] & 0x87]) + reply[3:])
    return "answer" if isinstance(outcome, Answer) else outcome.rcode.name


@settings(max_examples=500)
@given(st.binary(max_size=600) | st.binary(max_size=64).map(lambda tail: header() + tail), st.booleans())
def test_any_octets_have_an_outcome(message: bytes, stream: bool) -> None:
    assert_outcome(message, stream=stream)


def test_a_hundred_thousand_mutated_queries_have_outcomes() -> None:
    chance = random.Random(20261121)  # noqa: S311  # the same octets in every run
    met = {assert_outcome(mutate(SEEDS[turn % len(SEEDS)], chance), stream=bool(turn & 1)) for turn in range(MUTATIONS)}
    assert met == {"answer", "forward", "drop", "FORMERR", "NOTIMP", "REFUSED", "BADVERS"}


@pytest.mark.parametrize("size", [512, 1232, 65535])
def test_a_message_of_pointers_is_only_malformed(size: int) -> None:
    chain = header(counts=(1, 0, 0, 4000)) + question("")
    for offset in range(12, size, 12):
        chain += struct.pack("!H", 0xC000 | offset & 0x3FFF) + bytes(10)
    outcome = decide(chain[:size], TABLE, stream=True)
    assert isinstance(outcome, Refuse)
    assert outcome.rcode is Rcode.FORMERR


@pytest.mark.parametrize(
    ("size", "limit"),
    [(None, 512), (0, 512), (1, 512), (511, 512), (512, 512), (513, 513), (1232, 1232), (1233, 1232), (65535, 1232)],
)
def test_the_limit_of_a_reply_is_what_the_client_takes_and_we_send(size: int | None, limit: int) -> None:
    asked = scanned(query(LONG_NAME, additional=() if size is None else (opt_record(size),)))
    assert reply_limit(asked, stream=False) == limit
    assert reply_limit(asked, stream=True) == 65535

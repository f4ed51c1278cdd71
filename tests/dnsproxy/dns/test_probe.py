"""The probe: answered in every zone, only by dnsproxy, and its reply differs from every other."""

from __future__ import annotations

import struct

import dns.flags
import dns.message
import dns.rdatatype
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.decide import Answer, Forward, Refuse, decide
from dnsproxy.answers.table import HostTable
from dnsproxy.corefile.upstream_routes import LONGEST
from dnsproxy.dns import names, probe, wire
from dnsproxy.dns.probe import Reply
from dnsproxy.dns.wire import Rcode
from tests.kit.messages import AAAA, HTTPS, TXT, A, opt_record, query, question, read_dnspython, reply_to, table_of

NONCE = "0123456789abcdef" * 2
WILDCARDS = table_of("**.example.org 192.0.2.1", "*.example.net 192.0.2.1")
ZONES = [".", "", "example.org", "a.b.example.net", "invalid"]


def probing(zone: str = "example.org", nonce: str = NONCE, ident: int = 7) -> bytes:
    return probe.format_query(probe.probe_name(zone, nonce), ident)


@pytest.mark.parametrize("table", [HostTable(), WILDCARDS], ids=["empty", "wildcards"])
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("stream", [False, True])
def test_a_probe_is_answered_in_every_zone_whatever_the_table_holds(zone: str, table: HostTable, stream: bool) -> None:
    outcome = decide(probing(zone), table, stream=stream)
    assert isinstance(outcome, Answer)
    reading = read_dnspython(outcome.message)
    assert (reading.ident, reading.rcode) == (7, 0)
    ((owner, kind, ttl, content),) = reading.answers
    assert (owner, kind, ttl) == (probe.probe_name(zone, NONCE), TXT, 0)
    assert content == bytes([len(probe.TEXT)]) + probe.TEXT
    assert probe.read_reply(probing(zone), outcome.message) is Reply.OURS


@pytest.mark.parametrize("qtype", [A, AAAA, HTTPS, 2, 255])
def test_no_other_type_of_the_name_is_ours(qtype: int) -> None:
    message = query(probe.probe_name("example.com", NONCE), qtype)
    assert isinstance(decide(message, WILDCARDS, stream=False), Forward)


@pytest.mark.parametrize(
    "name",
    [
        "_switchback-probe.example.org",
        "_switchback-probe",
        f"{NONCE}.switchback-probe.example.org",
        f"{NONCE}.x_switchback-probe.example.org",
        f"x.{NONCE}._switchback-probe.example.org",
        NONCE,
        "",
        "example.org",
    ],
)
def test_no_other_name_is_a_probe(name: str) -> None:
    message = query(name, TXT)
    assert not probe.is_probe(message[12:-4])
    assert isinstance(decide(message, WILDCARDS, stream=False), Forward)


@pytest.mark.parametrize(
    "nonce",
    [
        pytest.param(b"1", id="one digit"),
        pytest.param(b"try-1", id="a word of a person"),
        pytest.param(NONCE[:-1].encode(), id="31 digits"),
        pytest.param(NONCE.encode() + b"0", id="33 digits"),
        pytest.param(b"a" * 63, id="the longest label"),
        pytest.param(b"_switchback-probe", id="the probe's own label"),
        pytest.param(b"*", id="a star"),
        pytest.param(b"\0.\xff ", id="any octets"),
    ],
)
@pytest.mark.parametrize("zone", ["", "example.org"])
def test_any_label_is_a_nonce(nonce: bytes, zone: str) -> None:
    """A person who asks with dig does not write 32 digits."""
    label = b"\x11_switchback-probe"
    name = bytes([len(nonce)]) + nonce + label + names.to_wire(zone)
    outcome = decide(query(name, TXT), WILDCARDS, stream=False)
    assert isinstance(outcome, Answer)
    assert probe.TEXT in outcome.message


def test_letter_case_and_edns_do_not_matter() -> None:
    message = query(probe.probe_name("Example.ORG".lower(), NONCE).upper(), TXT, additional=(opt_record(),))
    outcome = decide(message, HostTable(), stream=False)
    assert isinstance(outcome, Answer)
    assert outcome.message[12 : 12 + len(message) - 12 - 11] == message[12:-11]
    assert read_dnspython(outcome.message).opt is not None


def test_an_edns_version_above_0_is_badvers_here_too() -> None:
    message = query(probe.probe_name("example.org", NONCE), TXT, additional=(opt_record(version=1),))
    outcome = decide(message, HostTable(), stream=False)
    assert isinstance(outcome, Refuse)
    assert outcome.rcode is Rcode.BADVERS


def test_another_class_is_refused() -> None:
    outcome = decide(query(probe.probe_name("", NONCE), TXT, klass=3), HostTable(), stream=False)
    assert isinstance(outcome, Refuse)


def test_a_query_is_what_a_client_sends() -> None:
    parsed = dns.message.from_wire(probing("example.org", ident=0xBEEF))
    assert (parsed.id, parsed.flags) == (0xBEEF, dns.flags.RD)
    assert str(parsed.question[0]) == f"{NONCE}._switchback-probe.example.org. IN TXT"


def test_a_zone_that_leaves_no_room_is_refused() -> None:
    longest = ".".join(["a" * 63] * 3 + ["b" * 10])
    assert len(probe.probe_name(longest, NONCE)) == names.MAXIMUM_NAME
    with pytest.raises(ValueError, match="too long to be probed"):
        probe.probe_name(longest + "b", NONCE)
    with pytest.raises(ValueError, match="32 digits"):
        probe.probe_name("example.org", "abc")


def rewritten(text: str = probe.TEXT.decode(), ttl: int = 5) -> bytes:
    """Our answer, rewritten by a server on the way."""
    message = dns.message.make_response(dns.message.from_wire(probing()), recursion_available=True)
    name = message.question[0].name
    message.answer.append(dns.rrset.from_text(name, ttl, "IN", "TXT", f'"{text}"'))
    return message.to_wire()


def test_an_answer_that_was_written_anew_is_still_ours() -> None:
    assert probe.read_reply(probing(), rewritten()) is Reply.OURS
    assert probe.read_reply(probing(), rewritten(ttl=0)) is Reply.OURS


@pytest.mark.parametrize(
    "reply",
    [
        reply_to(probing(), flags=0x8183),
        reply_to(probing(), flags=0x8182),
        reply_to(probing(), flags=0x8180),
        rewritten("something else"),
        rewritten("switchback dnsprox"),
    ],
    ids=["NXDOMAIN", "SERVFAIL", "NODATA", "another text", "a shorter text"],
)
def test_an_answer_of_another_server_differs_from_ours(reply: bytes) -> None:
    assert probe.read_reply(probing(), reply) is Reply.OTHER


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"\0\7",
        probing(),
        probing()[:12],
        rewritten()[:2] + b"\x81\x80" + b"\0" * 8,
        b"\0\x08" + rewritten()[2:],
        rewritten().replace(NONCE.encode(), NONCE[::-1].encode()),
        reply_to(query("example.org", TXT, ident=7)),
    ],
    ids=["nothing", "an ID", "the query", "its header", "no question", "another ID", "another nonce", "another name"],
)
def test_what_is_no_reply_is_passed_over(reply: bytes) -> None:
    assert probe.read_reply(probing(), reply) is Reply.NONE


@given(st.binary(max_size=120), st.integers(0, 200))
def test_any_octets_are_one_of_the_three(octets: bytes, cut: int) -> None:
    assert probe.read_reply(probing(), octets) is Reply.NONE
    assert probe.read_reply(probing(), rewritten()[:cut] + octets) in Reply


def test_a_scan_of_the_query_sees_a_probe() -> None:
    scanned = wire.scan_query(probing())
    assert isinstance(scanned, wire.Query)
    assert probe.is_probe(scanned.name)
    assert question(scanned.name, TXT) == scanned.question


@pytest.mark.parametrize("forwards", ["", ". /etc/resolv.conf", ". 192.0.2.1 tls://192.0.2.2:853#dns.example.org"])
@pytest.mark.parametrize("behind", [b"", bytes([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0])], ids=["alone", "with an OPT"])
def test_an_answer_reports_where_its_server_forwards(forwards: str, behind: bytes) -> None:
    asked = probe.format_query(probe.probe_name(".", "0" * probe.NONCE_DIGITS), 7)
    head = struct.pack("!HHHHHH", 7, 0x8400, 1, 1, 0, 1 if behind else 0)
    reply = head + asked[12:] + probe.make_row(forwards).octets + behind
    assert probe.read_reply(asked, reply) is probe.Reply.OURS
    assert probe.read_forwards(reply) == (forwards or None)
    (record,) = dns.message.from_wire(reply).answer
    assert [b for one in record for b in one.strings] == [probe.TEXT, *([forwards.encode()] if forwards else [])]
    for end in range(len(head), len(reply)):
        probe.read_forwards(reply[:end])


def test_the_longest_report_and_the_longest_name_fit_into_a_plain_datagram() -> None:
    assert 12 + 255 + 4 + len(probe.make_row("x" * LONGEST).octets) <= 512

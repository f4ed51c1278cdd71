"""The replies of upstreams: which belong to a query, and that they pass unchanged except in three cases."""

from __future__ import annotations

import random
import struct
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.wire import Rcode
from dnsproxy.forward.replies import belongs, client_limit, is_bare_error, is_usual, pass_on
from tests.kit.messages import (
    AAAA,
    MX,
    SOA,
    A,
    Opt,
    header,
    opt_record,
    option,
    query,
    question,
    read_both,
    record,
    reply_to,
    scanned,
    wire_name,
)
from tests.kit.rows import failing
from tests.kit.strategies import mutate

ASKED: Final = query("app.example.org", MX)
QUESTION: Final = question("app.example.org", MX)
SOA_RECORD: Final = record(SOA, b"\xc0\x10\xc0\x10" + bytes(20))
GOOD: Final = reply_to(ASKED, records=record(MX, b"\0\x0a\xc0\x0c"), answers=1)


def asked_with(*additional: bytes) -> bytes:
    return query("app.example.org", MX, additional=additional)


# --- which belong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(GOOD, id="answer"),
        pytest.param(reply_to(ASKED), id="empty"),
        pytest.param(reply_to(ASKED, flags=0x8183, records=SOA_RECORD), id="NXDOMAIN"),
        pytest.param(reply_to(ASKED, flags=0x8380), id="truncated"),
        pytest.param(header(0x8180) + question("App.Example.ORG", MX), id="case restored"),
        pytest.param(header(0x8182) + QUESTION, id="SERVFAIL"),
        pytest.param(GOOD + b"\0\xff" * 9, id="octets behind are the upstream's affair"),
    ],
)
def test_a_reply_to_the_question_belongs(reply: bytes) -> None:
    assert belongs(reply, QUESTION)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(GOOD[:11], id="less than a header"),
        pytest.param(GOOD[:-40], id="cut question"),
        pytest.param(header(0x8180), id="QDCOUNT 1 and no question"),
        pytest.param(ASKED, id="the query itself"),
        pytest.param(header(0x0180) + QUESTION, id="QR 0"),
        pytest.param(header(0x8180) + question("app.example.net", MX), id="other name"),
        pytest.param(header(0x8180) + question("xapp.example.org", MX), id="longer label"),
        pytest.param(header(0x8180) + question("x.app.example.org", MX), id="below"),
        pytest.param(header(0x8180) + question("example.org", MX), id="above"),
        pytest.param(header(0x8180) + question("app.example.org", A), id="other type"),
        pytest.param(header(0x8180) + question("app.example.org", MX, 3), id="other class"),
        pytest.param(header(0x8180) + b"\x0bapp.example\x03org\0" + QUESTION[-4:], id="same text, other labels"),
        pytest.param(header(0x8180, (2, 0, 0, 0)) + QUESTION * 2, id="two questions"),
        pytest.param(header(0x8180, (0, 0, 0, 0)) + QUESTION, id="a question that is not counted"),
        pytest.param(header(0x8180, (0, 1, 0, 0)) + record(MX, b"\0\x0a\0", owner=b"\0"), id="an answer, no question"),
        pytest.param(header(0x8180, (257, 0, 0, 0)) + QUESTION, id="QDCOUNT 257"),
    ],
)
def test_a_reply_to_anything_else_does_not_belong(reply: bytes) -> None:
    assert not belongs(reply, QUESTION)


def test_a_reply_of_another_opcode_does_not_belong() -> None:
    def check(opcode: int) -> None:
        assert not belongs(header(0x8180 | opcode << 11) + QUESTION, QUESTION)
        assert not belongs(header(0x8182 | opcode << 11, (0, 0, 0, 0)), QUESTION)

    assert failing(check, range(1, 16)) == []


def test_a_question_is_compared_octet_by_octet_but_for_ascii_case() -> None:
    sent = bytes([3, 0x6B, 0x5B, 0xE9, 0]) + b"\0\1\0\1"

    def check(position: int, octet: int) -> None:
        changed = sent[:position] + bytes([octet]) + sent[position + 1 :]
        folds = 1 <= position <= 3 and changed.lower() == sent.lower()
        assert belongs(header(0x8180) + changed, sent) == (changed == sent or folds)

    assert failing(check, range(len(sent)), range(256)) == []


@pytest.mark.parametrize("rcode", range(16))
def test_a_header_alone_passes_where_it_states_an_error(rcode: int) -> None:
    reply = header(0x8180 | rcode, (0, 0, 0, 0))
    stated = rcode in (Rcode.FORMERR, Rcode.SERVFAIL, Rcode.NOTIMP, Rcode.REFUSED)
    assert belongs(reply, QUESTION) == is_bare_error(reply) == stated


def test_a_header_that_asks_is_no_error() -> None:
    assert not belongs(header(0x0182, (0, 0, 0, 0)), QUESTION)
    assert not is_bare_error(header(0x8182) + QUESTION)
    assert not is_bare_error(header(0x8182, (0, 0, 0, 0)) + b"\0")


@pytest.mark.parametrize("rcode", range(16))
def test_a_header_and_a_lone_opt_record_pass_where_they_state_an_error(rcode: int) -> None:
    """BIND answers so when it refuses to parse a query."""
    reply = header(0x8180 | rcode, (0, 0, 0, 1)) + opt_record(options=option(10, b"c" * 24))
    stated = rcode in (Rcode.FORMERR, Rcode.SERVFAIL, Rcode.NOTIMP, Rcode.REFUSED)
    assert belongs(reply, QUESTION) == is_bare_error(reply) == stated


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(header(0x8185, (0, 0, 0, 1)), id="an OPT that is counted and not there"),
        pytest.param(header(0x8185, (0, 0, 0, 1)) + b"\0\0", id="the beginning of one"),
        pytest.param(header(0x8185, (0, 0, 0, 2)) + opt_record() * 2, id="two OPTs"),
        pytest.param(header(0x8185, (0, 0, 1, 0)) + opt_record(), id="an OPT where none belongs"),
        pytest.param(header(0x8185, (0, 1, 0, 1)) + opt_record(), id="an answer that is counted"),
        pytest.param(header(0x8185, (0, 0, 0, 1)) + opt_record(owner=b"\1a\0"), id="an OPT with a name"),
        pytest.param(header(0x8185, (0, 0, 0, 1)) + record(A, bytes(4), owner=b"\0"), id="another record"),
        pytest.param(header(0x8185, (0, 0, 0, 0)) + opt_record(), id="an OPT that is not counted"),
    ],
)
def test_what_is_like_a_lone_opt_record_is_no_error_of_a_query(reply: bytes) -> None:
    assert not is_bare_error(reply)
    assert not belongs(reply, QUESTION)


@pytest.mark.parametrize("edns", [False, True], ids=["plain", "OPT"])
def test_the_opt_record_of_an_error_without_question_is_not_the_clients(edns: bool) -> None:
    asked = asked_with(*([opt_record()] if edns else []))
    reply = header(0x8181, (0, 0, 0, 1)) + opt_record(512, flags=0x8000, options=option(10, b"c" * 24))
    reading = read_both(pass_on(reply, scanned(asked), shields=False, limit=512))
    assert (reading.rcode, len(reading.question)) == (Rcode.FORMERR, 1)
    assert reading.opt == (Opt(0, 1232, do=False, other_flags=0, options=0) if edns else None)


# --- what passes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(GOOD, id="answer"),
        pytest.param(reply_to(ASKED, flags=0x85A0), id="AA and AD"),
        pytest.param(reply_to(ASKED, flags=0x81F0), id="Z, AD and CD"),
        pytest.param(reply_to(ASKED, flags=0x8380), id="truncated"),
        pytest.param(header(0x8180) + question("App.Example.ORG", MX), id="other case"),
        pytest.param(reply_to(ASKED) + b"\x01\x02\x03", id="octets behind"),
        pytest.param(header(0x8180, (1, 65535, 65535, 65535)) + QUESTION, id="counts that lie"),
        pytest.param(header(0x8180, (1, 0, 0, 1)) + QUESTION + opt_record(options=option(10, b"c" * 24)), id="cookie"),
        pytest.param(header(0x8180, (1, 0, 0, 2)) + QUESTION + opt_record() * 2, id="two OPTs"),
    ],
)
def test_a_reply_passes_octet_for_octet_but_for_its_id(reply: bytes) -> None:
    assert_only_the_id_changes(reply)


def test_a_reply_of_every_code_but_nxdomain_passes_so() -> None:
    replies = (reply_to(ASKED, flags=0x8180 | rcode) for rcode in range(16) if rcode != Rcode.NXDOMAIN)
    assert failing(assert_only_the_id_changes, replies) == []


def assert_only_the_id_changes(reply: bytes) -> None:
    """Whether the name is shielded or not."""
    for shields in (False, True):
        passed = pass_on(b"\xff\xee" + reply[2:], scanned(ASKED), shields=shields, limit=512)
        assert passed == ASKED[:2] + reply[2:]


def test_nxdomain_passes_where_it_denies_no_name_of_ours() -> None:
    reply = reply_to(ASKED, flags=0x8183) + SOA_RECORD
    assert pass_on(reply, scanned(ASKED), shields=False, limit=512) == reply


@pytest.mark.parametrize("flags", [0x8183, 0x85A3, 0x81F3, 0x8383])
def test_nxdomain_becomes_nodata_where_it_would_deny_a_name_of_ours(flags: int) -> None:
    reply = ASKED[:2] + struct.pack("!HHHHH", flags, 1, 0, 1, 0) + QUESTION + SOA_RECORD
    passed = pass_on(reply, scanned(ASKED), shields=True, limit=512)
    # Without AD (0x20): nobody has verified this.
    assert passed == reply[:2] + struct.pack("!H", flags & 0xFFD0) + reply[4:]
    reading = read_both(passed)
    assert (reading.rcode, [kind for _, kind, _, _ in reading.authorities]) == (0, [SOA])


@pytest.mark.parametrize("rcode", [Rcode.FORMERR, Rcode.SERVFAIL, Rcode.NOTIMP, Rcode.REFUSED])
@pytest.mark.parametrize("edns", [False, True], ids=["plain", "OPT"])
def test_an_error_without_question_gets_the_question(rcode: Rcode, edns: bool) -> None:
    asked = asked_with(*([opt_record(flags=0x8000)] if edns else []))
    reading = read_both(pass_on(header(0x8180 | rcode, (0, 0, 0, 0)), scanned(asked), shields=True, limit=512))
    assert reading.rcode == rcode
    assert reading.question == ((wire_name("app.example.org"), MX, 1),)
    assert reading.opt == (Opt(0, 1232, do=True, other_flags=0, options=0) if edns else None)
    assert not reading.has(0x0400)


@pytest.mark.parametrize("edns", [False, True], ids=["plain", "OPT"])
@pytest.mark.parametrize("limit", [512, 1232, 4096])
def test_a_reply_larger_than_the_client_takes_is_cut_to_its_question(limit: int, edns: bool) -> None:
    asked = asked_with(*([opt_record(limit, flags=0x8000)] if edns else []))
    head = asked[:2] + struct.pack("!HHHHH", 0x85A0, 1, 1, 0, 0)
    filler = limit - len(head) - len(QUESTION) - 12
    fits = head + QUESTION + record(16, bytes(filler))
    assert len(fits) == limit
    assert pass_on(fits, scanned(asked), shields=False, limit=limit) == fits

    reading = read_both(pass_on(fits + b"\0", scanned(asked), shields=False, limit=limit))
    assert reading.flags == 0x87A0
    assert (reading.answers, reading.authorities) == (frozenset(), ())
    assert reading.question == ((wire_name("app.example.org"), MX, 1),)
    assert reading.opt == (Opt(0, 1232, do=True, other_flags=0, options=0) if edns else None)


def test_a_large_nxdomain_that_is_shielded_is_cut_and_denies_nothing() -> None:
    reply = reply_to(ASKED, flags=0x8183) + bytes(600)
    reading = read_both(pass_on(reply, scanned(ASKED), shields=True, limit=512))
    assert (reading.rcode, reading.has(0x0200)) == (0, True)


@pytest.mark.parametrize(
    ("size", "limit"), [(None, 512), (0, 512), (511, 512), (512, 512), (513, 513), (1232, 1232), (65535, 65535)]
)
def test_a_client_accepts_its_edns_size_and_at_least_512(size: int | None, limit: int) -> None:
    assert client_limit(scanned(asked_with(*([] if size is None else [opt_record(size)])))) == limit


# --- usual replies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "usual"),
    [
        pytest.param(GOOD, True, id="answer"),
        pytest.param(reply_to(ASKED, flags=0x8183, records=SOA_RECORD), True, id="NXDOMAIN"),
        pytest.param(reply_to(ASKED, flags=0x8380), True, id="truncated"),
        pytest.param(GOOD + bytes(512 - len(GOOD)), True, id="of 512 octets"),
        pytest.param(GOOD + bytes(513 - len(GOOD)), False, id="of 513 octets"),
        pytest.param(header(0x8180) + question("App.Example.ORG", MX), False, id="case restored"),
        pytest.param(header(0x8182, (0, 0, 0, 0)), False, id="bare error"),
        pytest.param(header(0x8180, (2, 0, 0, 0)) + QUESTION * 2, False, id="two questions"),
        pytest.param(header(0x0180) + QUESTION, False, id="QR 0"),
        pytest.param(header(0xA180) + QUESTION, False, id="opcode"),
        pytest.param(b"", False, id="nothing"),
    ],
)
def test_a_usual_reply_passes_unchanged_to_every_client(reply: bytes, usual: bool) -> None:
    assert is_usual(reply, QUESTION) is usual


# --- any octets ------------------------------------------------------------------------------------------------------


def assert_passes(reply: bytes) -> None:
    """Holds for any octets from an upstream."""
    asked = scanned(ASKED)
    if is_usual(reply, asked.question):
        assert belongs(reply, asked.question)
        assert pass_on(reply, asked, shields=False, limit=client_limit(asked)) == asked.message[:2] + reply[2:]
    if not belongs(reply, asked.question):
        return
    for shields in (False, True):
        passed = pass_on(reply, asked, shields=shields, limit=512)
        assert passed[:2] == ASKED[:2]
        assert passed[4:6] == b"\0\1"
        assert belongs(passed, asked.question)
        assert len(passed) <= 512


@given(st.binary(max_size=600) | st.binary(max_size=600).map(lambda tail: header(0x8183) + QUESTION + tail))
def test_any_octets_from_upstream_do_no_harm(reply: bytes) -> None:
    assert_passes(reply)


def test_mutated_replies_do_no_harm() -> None:
    chance = random.Random(20261122)  # noqa: S311  # the same octets in every run
    seeds = (GOOD, reply_to(ASKED, flags=0x8183) + SOA_RECORD, header(0x8185, (0, 0, 0, 0)))
    for turn in range(20_000):
        assert_passes(mutate(seeds[turn % len(seeds)], chance, seeds))


@given(st.integers(0, 0xFFFF), st.sampled_from([A, AAAA, MX]), st.binary(max_size=200))
def test_the_id_alone_is_the_clients(ident: int, qtype: int, tail: bytes) -> None:
    asked = query("app.example.org", qtype, ident=ident)
    reply = header(0x8180, ident=ident ^ 0xFFFF) + question("app.example.org", qtype) + tail
    passed = pass_on(reply, scanned(asked), shields=True, limit=65535)
    assert passed == struct.pack("!H", ident) + reply[2:]

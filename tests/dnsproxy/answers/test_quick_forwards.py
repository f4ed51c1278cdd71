"""Quick forwards: a query with a shape is forwarded as decide forwards it, and what is kept is bounded."""

from __future__ import annotations

import random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dnsproxy.answers.decide import Forward, decide
from dnsproxy.answers.quick import QuickAnswers
from dnsproxy.answers.quick_forwards import MOST
from dnsproxy.answers.table import HostTable
from dnsproxy.dns import probe
from tests.kit.messages import (
    AAAA,
    ANY,
    AXFR,
    HTTPS,
    IXFR,
    MX,
    NS,
    RD,
    TXT,
    A,
    header,
    opt_record,
    option,
    query,
    question,
    table_of,
    wire_name,
)
from tests.kit.rows import failing
from tests.kit.strategies import TABLE, ZONE, case_of, long_name, mutate

MUTATIONS: Final = 50_000
NEIGHBOURS: Final = table_of(
    "app.example.org 192.0.2.1",
    "a.deep.example.org 192.0.2.2",
    "*.one.example.org 192.0.2.3",
    "**.any.example.org 192.0.2.4",
    "**.shut.example.org 192.0.2.5",
    never=("never.one.example.org",),
    closed=("closed.shut.example.org",),
)
OUTSIDE: Final = "www.example.net"


def ask(quick: QuickAnswers, message: bytes) -> bool:
    """Whether a query has a shape; if it has, it is forwarded as decide says. What decide forwards is learned."""
    _, unanswered = quick.answer([message[2:]])
    decided = decide(message, quick.table, stream=False)
    for _, lowered, shape in unanswered:
        if shape is not None:
            assert quick.forwards.decide(message, lowered, shape) == decided
            return True
    if isinstance(decided, Forward):
        quick.forwards.learn(decided)
    return False


def has_learned(quick: QuickAnswers, message: bytes) -> bool:
    """Whether a query has a shape after it was asked once."""
    ask(quick, message)
    return ask(quick, message)


# --- the law ---------------------------------------------------------------------------------------------------------


LABELS: Final = st.sampled_from(
    [b"app", b"a", b"deep", b"one", b"any", b"shut", b"never", b"closed", b"x", b"example", b"org", b"net"]
)
MESSAGES: Final = st.builds(
    lambda labels, qtype, flags, ident, additional, bits: query(
        case_of(b"".join(bytes([len(label)]) + label for label in labels) + b"\0", bits),
        qtype,
        flags=flags,
        ident=ident,
        additional=additional,
    ),
    st.lists(LABELS, max_size=5) | st.lists(LABELS, max_size=3).map(lambda labels: [*labels, b"example", b"org"]),
    st.sampled_from([A, AAAA, HTTPS, HTTPS | 0x20, MX, TXT, ANY, NS, IXFR]),
    st.sampled_from([RD, 0, RD | 0x10, RD | 0x20, RD | 0x40, 0x0140, 0x0160, 0x8100, 0x2100, 0x0541]),
    st.integers(0, 0xFFFF),
    st.sampled_from([(), (opt_record(1232),), (opt_record(0x4141),), (opt_record(0x6161),), (opt_record(version=1),)]),
    st.integers(0, 2**40 - 1),
)


@settings(max_examples=500)
@given(st.lists(MESSAGES, min_size=1, max_size=12))
def test_a_quick_forward_is_the_decision_whatever_was_asked_before(messages: list[bytes]) -> None:
    quick = QuickAnswers(NEIGHBOURS)
    for message in messages * 2:
        ask(quick, message)


SEEDS: Final = tuple(
    query(name, qtype, additional=additional)
    for name in (OUTSIDE, "x.example.org", "deep.example.org", "x.one.example.org", "a.b.c.d.example.com")
    for qtype in (A, HTTPS, MX)
    for additional in ((), (opt_record(1232),), (opt_record(1232, options=option(10, bytes(8))),))
)


def test_a_quick_forward_of_a_mutated_query_is_the_decision() -> None:
    chance = random.Random(20261128)  # noqa: S311  # the same octets in every run
    quick = QuickAnswers(NEIGHBOURS)
    shaped = sum(ask(quick, mutate(SEEDS[turn % len(SEEDS)], chance, SEEDS)) for turn in range(MUTATIONS))
    assert shaped > MUTATIONS // 50


@pytest.mark.parametrize("additional", [(), (opt_record(1232),)], ids=["plain", "OPT"])
@pytest.mark.parametrize("qtype", [A, HTTPS, HTTPS | 0x20])
def test_each_octet_of_a_query_with_a_shape_has_its_meaning(qtype: int, additional: tuple[bytes, ...]) -> None:
    quick = QuickAnswers(NEIGHBOURS)
    message = query("www.one.example.net", qtype, additional=additional)
    ask(quick, message)
    for position in range(2, len(message)):
        for octet in range(256):
            ask(quick, message[:position] + bytes([octet]) + message[position + 1 :])


def test_a_cut_or_lengthened_query_has_no_shape() -> None:
    message = query("www.one.two.three.four.example.net", additional=(opt_record(1232),))

    def check(size: int) -> None:
        quick = QuickAnswers(TABLE)
        assert has_learned(quick, message)
        assert not ask(quick, message[:size])
        assert not ask(quick, message + bytes(size))

    assert failing(check, range(16, 60)) == []


# --- which have one --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(query(OUTSIDE), id="A"),
        pytest.param(query(OUTSIDE, AAAA), id="AAAA"),
        pytest.param(query(OUTSIDE, MX), id="MX"),
        pytest.param(query(OUTSIDE, additional=(opt_record(1232),)), id="OPT"),
        pytest.param(query(OUTSIDE, additional=(opt_record(4096, flags=0x8000),)), id="DO"),
        pytest.param(query(OUTSIDE, flags=RD | 0x20), id="AD"),
        pytest.param(query("example"), id="a single label"),
        pytest.param(query("other.example.org"), id="beside names of the table"),
        pytest.param(query("app.default.svc.cluster.local"), id="with a search domain"),
    ],
)
def test_siblings_of_a_forwarded_query_have_its_shape(message: bytes) -> None:
    quick = QuickAnswers(TABLE)
    assert not ask(quick, message)
    label = message[12]
    for sibling in (b"\1x", b"\x3f" + b"y" * 63, message[12 : 13 + label].upper(), b"\2\0\xff"):
        assert ask(quick, message[:12] + sibling + message[13 + label :])
    assert len(quick.forwards.below) == 1


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(query(""), id="the root"),
        pytest.param(query(OUTSIDE, TXT), id="TXT, which a probe is"),
        pytest.param(query(OUTSIDE, AXFR), id="a transfer"),
        pytest.param(query(OUTSIDE, klass=3), id="class"),
        pytest.param(query(OUTSIDE, HTTPS), id="HTTPS, whose number is a letter"),
        pytest.param(query(OUTSIDE, flags=0x8100), id="a response"),
        pytest.param(query(OUTSIDE, flags=RD | 4 << 11), id="opcode"),
        pytest.param(query(OUTSIDE, additional=(opt_record(0x4100),)), id="a size that is a letter"),
        pytest.param(query(OUTSIDE, additional=(opt_record(options=option(10, bytes(8))),)), id="a cookie"),
        pytest.param(query(OUTSIDE) + b"\0", id="an octet behind"),
        pytest.param(header(counts=(1, 0, 0, 1)) + question(OUTSIDE), id="an OPT that is not there"),
        pytest.param(query("app.example.org"), id="a name of the table"),
        pytest.param(query("app.example.org", MX), id="another type of a name of the table"),
        pytest.param(query("x.one.example.org", MX), id="another type below a wildcard"),
        pytest.param(query("never.one.example.org"), id="a name that no wildcard covers"),
        pytest.param(query("closed.shut.example.org"), id="a zone closed to the wildcards above it"),
    ],
)
def test_other_queries_have_none(message: bytes) -> None:
    assert not has_learned(QuickAnswers(NEIGHBOURS), message)


def test_a_probe_is_answered_whatever_was_forwarded_beside_it() -> None:
    quick = QuickAnswers(TABLE)
    parent = f"{probe.LABEL}.example.net"
    for qtype in (A, TXT):
        has_learned(quick, query(f"x.{parent}", qtype))
    assert not has_learned(quick, query(f"nonce.{parent}", TXT))


@pytest.mark.parametrize("size", range(180, 255, 5))
def test_a_name_with_a_shape_is_no_longer_than_a_name_can_be(size: int) -> None:
    """Labels of every length below a parent of this many octets."""
    quick = QuickAnswers(TABLE)
    parent = wire_name(long_name(size))
    for length in (*range(1, 65), *range(1, 65)):
        ask(quick, query(bytes([length]) + b"b" * length + parent))


# --- neighbours ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name.lstrip("*.") for name in ZONE])
def test_a_name_of_the_table_is_answered_also_after_its_siblings_were_forwarded(name: str) -> None:
    quick = QuickAnswers(TABLE)
    parent = name.partition(".")[2]
    assert has_learned(quick, query(f"sibling.{parent}")) or parent in ("one.example.org", "any.example.org")
    before = quick.answer([query(name)[2:]])[0]
    assert before == QuickAnswers(TABLE).answer([query(name)[2:]])[0]
    assert quick.answer([query(name)[2:]])[0] == before


def test_a_name_above_names_of_the_table_is_shielded_after_a_sibling_that_is_not() -> None:
    quick = QuickAnswers(NEIGHBOURS)
    assert has_learned(quick, query("x.example.org"))
    _, [(_, lowered, shape)] = quick.answer([query("deep.example.org")[2:]])
    assert shape is not None
    assert quick.forwards.decide(query("deep.example.org"), lowered, shape).shields


def test_shapes_end_with_their_table() -> None:
    empty = QuickAnswers(HostTable())
    assert has_learned(empty, query("x.one.example.org"))
    assert not ask(QuickAnswers(NEIGHBOURS), query("x.one.example.org"))


def test_what_is_kept_is_bounded_and_full_is_no_end() -> None:
    quick = QuickAnswers(TABLE)
    for number in range(3 * MOST):
        assert has_learned(quick, query(f"www.{number:x}.example.com"))
        assert len(quick.forwards.below) <= MOST

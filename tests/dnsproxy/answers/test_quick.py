"""Quick answers: always those of decide, whatever was asked before, and never more recipes than allowed."""

from __future__ import annotations

import random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dnsproxy.answers.decide import Answer, Forward, decide
from dnsproxy.answers.quick import QuickAnswers
from dnsproxy.answers.table import HostTable
from tests.kit.messages import (
    AAAA,
    ANY,
    HTTPS,
    MX,
    RD,
    SVCB,
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
from tests.kit.strategies import (
    LONG_NAME,
    OUR_TYPES,
    SEEDS,
    TABLE,
    ZONE,
    Asked,
    case_of,
    long_name,
    mutate,
    near_queries,
    table_queries,
)

MUTATIONS: Final = 100_000
NAMES: Final = ("app.example.org", "six.example.org", "x.one.example.org", "x.y.any.example.org", "x.any.example.org")
OPTS: Final = {"plain": (), "OPT": (opt_record(1232),), "DO": (opt_record(1400, flags=0x8000),)}

with_every_opt = pytest.mark.parametrize("additional", OPTS.values(), ids=OPTS)


def knowing(table: HostTable = TABLE) -> QuickAnswers:
    """Quick answers after queries for all names of ZONE, all types and all variants."""
    quick = QuickAnswers(table)
    for name in (*ZONE, *NAMES):
        for qtype in OUR_TYPES:
            for additional in OPTS.values():
                ask(quick, query(name.lstrip("*."), qtype, additional=additional))
    return quick


def ask(quick: QuickAnswers, message: bytes) -> bytes | None:
    """The reply to one query; it must be that of decide, and so must what is forwarded."""
    replies, unanswered = quick.answer([message[2:]])
    assert len(replies) == 1
    assert [position for position, _, _ in unanswered] == ([0] if replies[0] is None else [])
    if replies[0] is None:
        [(_, lowered, shape)] = unanswered
        decided = decide(message, quick.table, stream=False)
        assert lowered == message[2:].lower()
        if shape is not None:
            assert quick.forwards.decide(message, lowered, shape) == decided
        if isinstance(decided, Forward):
            quick.forwards.learn(decided)
        return None
    reply = message[:2] + replies[0]
    assert decide(message, quick.table, stream=False) == Answer(reply)
    assert decide(message, quick.table, stream=True) == Answer(reply)
    return reply


KNOWING: Final = knowing()
"""It learns through all tests: the law holds whatever it has learned."""


# --- the law ---------------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(st.lists(table_queries(), min_size=1, max_size=5))
def test_a_quick_answer_is_the_decision(asked: list[Asked]) -> None:
    fresh = QuickAnswers(TABLE)
    for each in asked * 2:
        assert ask(fresh, each.message) == ask(KNOWING, each.message)


@settings(max_examples=200)
@given(near_queries())
def test_a_quick_answer_to_nearly_a_query_is_the_decision(message: bytes) -> None:
    ask(KNOWING, message)
    ask(KNOWING, message[: len(message) // 2])


def test_a_quick_answer_to_a_mutated_query_is_the_decision() -> None:
    chance = random.Random(20261121)  # noqa: S311  # the same octets in every run
    replies = [ask(KNOWING, mutate(SEEDS[turn % len(SEEDS)], chance)) for turn in range(MUTATIONS)]
    assert replies.count(None) < MUTATIONS - 2000


@pytest.mark.parametrize("name", NAMES)
@with_every_opt
def test_each_octet_of_a_known_query_has_its_meaning(name: str, additional: tuple[bytes, ...]) -> None:
    """Also octets that lower-casing changes: of HTTPS, of the flags CD and Z, of the size of an OPT."""
    for qtype in (A, HTTPS):
        message = query(name, qtype, additional=additional)
        for position in range(2, len(message)):
            for octet in range(256):
                ask(KNOWING, message[:position] + bytes([octet]) + message[position + 1 :])


@pytest.mark.parametrize("name", NAMES)
@with_every_opt
def test_each_part_of_a_known_query_is_none(name: str, additional: tuple[bytes, ...]) -> None:
    message = query(name, additional=additional)
    for size in range(len(message)):
        assert ask(KNOWING, message[:size]) is None
        assert ask(KNOWING, message[:2] + message[size:]) is None or size <= 2
        assert ask(KNOWING, message + message[size:]) is None or size == len(message)


def test_each_type_is_itself() -> None:
    def check(name: str, high: int, low: int) -> None:
        ask(KNOWING, query(name, high << 8 | low))

    assert failing(check, ["app.example.org", "x.one.example.org"], range(0, 256, 5), range(256)) == []


def test_a_type_whose_number_is_https_in_lower_case_is_not_https() -> None:
    quick = knowing()
    assert ask(quick, query("app.example.org", HTTPS)) is not None
    assert ask(quick, query("app.example.org", HTTPS | 0x20)) is None


# --- what is quick ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*NAMES, "APP.example.ORG", "X.one.EXAMPLE.org", LONG_NAME])
def test_the_queries_of_real_clients_are_answered_the_first_time_and_the_second(name: str) -> None:
    def check(qtype: int, flags: int, additional: tuple[bytes, ...]) -> None:
        quick = QuickAnswers(TABLE)
        message = query(name, qtype, flags=flags, additional=additional)
        first = ask(quick, message)
        assert first is not None
        assert ask(quick, message) == first

    flags = [0, RD, RD | 0x20, RD | 0x10, 0x0170]
    assert failing(check, [A, AAAA, HTTPS, SVCB, ANY], flags, OPTS.values()) == []


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\0\0", id="an ID"),
        pytest.param(query("app.example.org")[:16], id="cut"),
        pytest.param(query("app.example.org", flags=0x8100), id="response"),
        pytest.param(query("app.example.org", flags=4 << 11), id="opcode"),
        pytest.param(query("app.example.org", klass=3), id="class"),
        pytest.param(query("app.example.org", MX), id="type"),
        pytest.param(query("other.example.com"), id="name"),
        pytest.param(query("one.example.org"), id="parent of a wildcard"),
        pytest.param(query(""), id="root"),
        pytest.param(query("app.example.org") + b"\0", id="octet behind"),
        pytest.param(query("app.example.org") + opt_record(), id="an OPT that is not counted"),
        pytest.param(query("x.one.example.org") + opt_record(), id="an OPT that is not counted, wildcard"),
        pytest.param(header(counts=(1, 0, 0, 1)) + question("app.example.org"), id="an OPT that is not there"),
        pytest.param(header(counts=(1, 0, 0, 256)) + question("app.example.org"), id="ARCOUNT 256"),
        pytest.param(header(counts=(1, 0, 0, 257)) + question("app.example.org") + opt_record(), id="ARCOUNT 257"),
        pytest.param(header(counts=(2, 0, 0, 0)) + question("app.example.org"), id="QDCOUNT 2"),
        pytest.param(query("app.example.org", additional=(opt_record(version=1),)), id="EDNS version 1"),
        pytest.param(query("app.example.org", additional=(opt_record(owner=b"\1a\0"),)), id="OPT with an owner"),
        pytest.param(query("app.example.org", additional=(opt_record(options=option(10, bytes(8))),)), id="cookie"),
        pytest.param(query("hundreds.example.org", additional=(opt_record(),)), id="a large answer"),
        pytest.param(header(counts=(1, 0, 0, 1)) + opt_record(), id="OPT and no question"),
        pytest.param(header(counts=(1, 0, 0, 1)) + opt_record()[-5:], id="the end of an OPT in the header's place"),
    ],
)
def test_all_else_needs_a_second_look(message: bytes) -> None:
    assert ask(QuickAnswers(TABLE), message) is None
    assert ask(KNOWING, message) is None


def test_a_batch_is_answered_in_order_with_the_positions_of_undecided_queries() -> None:
    ours, other = query("app.example.org"), query("other.example.com")
    messages = [other, ours, b"", query("APP.example.org"), other, query("x.one.example.org"), other]
    for quick in (QuickAnswers(TABLE), KNOWING):
        replies, unanswered = quick.answer([message[2:] for message in messages])
        assert [position for position, _, _ in unanswered] == [0, 2, 4, 6]
        for message, reply in zip(messages, replies, strict=True):
            outcome = decide(message, TABLE, stream=False)
            assert reply == (outcome.message[2:] if isinstance(outcome, Answer) else None)
    assert KNOWING.answer([]) == ([], [])


# --- wildcards -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "others",
    [
        pytest.param((), id="alone"),
        pytest.param(("example.org 192.0.2.2",), id="beside its parent"),
        pytest.param(("app.example.org 192.0.2.2",), id="beside a name"),
        pytest.param(("a.b.example.org 192.0.2.2",), id="above a name"),
        pytest.param(("*.sub.example.org 192.0.2.3",), id="above a wildcard"),
        pytest.param(("*.example.org 192.0.2.3", "**.example.org 192.0.2.4"), id="of both kinds"),
        pytest.param(("app.example.org 192.0.2.2", "**.sub.example.org 192.0.2.3"), id="above several"),
    ],
)
def test_what_beats_a_wildcard_does_so_also_when_the_wildcard_was_asked_first(
    others: tuple[str, ...],
) -> None:
    below = ["x", "app", "intern", "sub", "y.sub", "APP", "Intern", "y.z.sub", "b", "a.b", "x.y", "x" * 63]
    intern = "intern.example.org"

    def check(kind: str, never: tuple[str, ...], closed: tuple[str, ...], additional: tuple[bytes, ...]) -> None:
        quick = QuickAnswers(table_of(f"{kind} 192.0.2.1", *others, never=never, closed=closed))
        for name in ["example.org", *(f"{name}.example.org" for name in below)] * 2:
            ask(quick, query(name, additional=additional))
        assert (ask(quick, query(intern, additional=additional)) is None) == (intern in (*never, *closed))

    kinds, closed = ["*.example.org", "**.example.org"], [(), (intern,), ("example.org",)]
    assert failing(check, kinds, [(), (intern,)], closed, OPTS.values()) == []


def test_a_label_below_a_wildcard_may_hold_any_octet() -> None:
    names = [bytes([3, 0x61, octet, 0x62]) + wire_name("one.example.org") for octet in range(256)]
    assert [name[2] for name in names if ask(KNOWING, query(name)) is None] == []


def test_a_name_below_a_wildcard_is_no_longer_than_a_name_can_be() -> None:
    """Labels of every length below a parent of each size, in octets."""

    def check(size: int) -> None:
        parent = long_name(size)
        quick = QuickAnswers(table_of(f"*.{parent} 192.0.2.1"))
        for _ in range(2):
            for length in range(1, 65):
                ask(quick, query(bytes([length]) + b"b" * length + wire_name(parent)))

    assert failing(check, range(180, 255)) == []


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_a_name_in_any_case_leaves_one_recipe() -> None:
    quick = QuickAnswers(TABLE)
    for bits in range(0, 2**17, 97):
        assert ask(quick, query(case_of(wire_name("app.example.org"), bits))) is not None
    assert len(quick) == 1


def test_random_labels_below_a_wildcard_leave_one_recipe() -> None:
    quick = QuickAnswers(TABLE)
    for number in range(3000):
        assert ask(quick, query(f"{number:x}.one.example.org")) is not None
    assert len(quick) == 1


def test_random_labels_two_deep_below_a_wildcard_leave_none() -> None:
    quick = QuickAnswers(TABLE)
    for number in range(3000):
        assert ask(quick, query(f"x.{number:x}.any.example.org")) is not None
    assert len(quick) == 0


def test_names_that_are_forwarded_leave_nothing() -> None:
    quick = QuickAnswers(TABLE)
    for number in range(3000):
        assert ask(quick, query(f"{number:x}.example.com")) is None
    assert len(quick) == 0


def test_no_more_is_kept_than_there_is_room_for() -> None:
    """Flags, sizes and types multiply; an attacker can ask for all combinations."""
    quick = QuickAnswers(TABLE)
    room = 4 * (len(TABLE.exact) + len(TABLE.wildcards)) + 1000
    for name in (*ZONE, *NAMES):
        for qtype in OUR_TYPES:
            for flags in range(0, 0x0180, 0x10):
                for size in (512, 1232, 1400, 4096, 8192, 65535):
                    additional = (opt_record(size, flags=0x8000),)
                    ask(quick, query(name.lstrip("*."), qtype, flags=flags, additional=additional))
                    assert len(quick) <= room
    assert len(quick) == room
    assert ask(quick, query("app.example.org", flags=0x0170)) is not None
    assert ask(quick, query("x.one.example.org", flags=0x0170)) is not None

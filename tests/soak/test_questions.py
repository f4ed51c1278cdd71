from __future__ import annotations

import struct

import pytest

from dnsproxy.answers.decide import Answer, Forward, decide
from tests.kit import upstream_replies
from tests.kit.messages import A, record, scanned, table_of
from tests.kit.stepping import parse_hosts
from tests.soak import questions
from tests.soak.chances import chance_of
from tests.soak.questions import Question, format_hosts, malformed_message, outside_question, table_question
from tests.soak.tally import Result

TABLES = [
    table_of(
        *(f"app-{number:05d}.{questions.SUFFIX} {questions.addresses_of(number)[turn]}" for number in range(2_000)),
        f"*.{questions.WILDCARD} {questions.addresses_of(0)[turn]}",
    )
    for turn in (0, 1)
]


def first(make: object, *, wanted: int = A) -> Question:
    chance = chance_of(5)
    while True:
        question: Question = make(chance)  # type: ignore[operator]
        if scanned(question.message).type == wanted:
            return question


def reply_with(question: Question, address: bytes, *, rcode: int = 0) -> bytes:
    asked = question.message
    head = struct.pack("!HHHHH", 0x8180 | rcode, 1, 1, 0, 0)
    return asked[:2] + head + scanned(asked).question + record(A, address)


@pytest.mark.parametrize("version", range(4))
def test_every_version_of_the_hosts_file_is_read_without_a_fault(version: int) -> None:
    claims, rejections, _ = parse_hosts(format_hosts(version))
    assert (len(claims), rejections) == (questions.NAMES + questions.PASSING + 1, [])


def test_versions_share_the_names_that_are_asked_and_no_other() -> None:
    names = [{line.split()[1] for line in format_hosts(version).splitlines()} for version in (1, 2)]
    assert len(names[0] & names[1]) == questions.NAMES + 1


@pytest.mark.parametrize("table", TABLES, ids=["one version", "the other"])
def test_what_our_own_decision_says_of_a_table_name_is_right(table: object) -> None:
    chance = chance_of(6)
    for _ in range(300):
        question = table_question(chance)
        outcome = decide(question.message, table, stream=False)  # type: ignore[arg-type]
        assert isinstance(outcome, Answer)
        assert question.judge(outcome.message) == (Result.RIGHT, "")


def test_names_outside_are_forwarded_and_the_upstreams_answer_is_right() -> None:
    chance = chance_of(7)
    for _ in range(300):
        question = outside_question(chance)
        assert isinstance(decide(question.message, TABLES[0], stream=False), Forward)
        assert question.judge(upstream_replies.right(question.message)) == (Result.RIGHT, "")


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        pytest.param(lambda asked: reply_with(asked, bytes([192, 0, 2, 255])), Result.WRONG, id="another address"),
        pytest.param(lambda asked: reply_with(asked, b"\0\0\0\0", rcode=2), Result.WRONG, id="SERVFAIL"),
        pytest.param(lambda asked: upstream_replies.right(asked.message), Result.WRONG, id="the upstream's address"),
        pytest.param(lambda asked: upstream_replies.right(asked.message, answers=0), Result.WRONG, id="no address"),
        pytest.param(lambda asked: upstream_replies.other_question(asked.message), Result.WRONG, id="another question"),
        pytest.param(lambda asked: reply_with(asked, b"\1")[:-3], Result.WRONG, id="cut"),
        pytest.param(lambda _: b"", Result.WRONG, id="nothing"),
    ],
)
def test_a_wrong_reply_for_a_table_name_is_seen(reply: object, result: Result) -> None:
    question = first(table_question)
    found, detail = question.judge(reply(question))  # type: ignore[operator]
    assert found is result
    assert detail


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        pytest.param(upstream_replies.truncated, Result.RIGHT, id="truncated"),
        pytest.param(lambda asked: upstream_replies.right(asked, rcode=2, answers=0), Result.FAILED, id="SERVFAIL"),
        pytest.param(lambda asked: upstream_replies.right(asked, rcode=5, answers=0), Result.FAILED, id="REFUSED"),
        pytest.param(lambda asked: upstream_replies.right(asked, rcode=3, answers=0), Result.WRONG, id="NXDOMAIN"),
        pytest.param(lambda asked: upstream_replies.right(asked, answers=0), Result.WRONG, id="no address"),
        pytest.param(upstream_replies.other_question, Result.WRONG, id="another question"),
        pytest.param(lambda asked: upstream_replies.header_only(asked, 5), Result.WRONG, id="no question"),
        pytest.param(lambda asked: upstream_replies.right(asked)[:20], Result.WRONG, id="cut"),
    ],
)
def test_a_reply_for_a_name_outside_is_distinguished_from_a_failure(reply: object, result: Result) -> None:
    question = first(outside_question)
    assert question.judge(reply(question.message))[0] is result  # type: ignore[operator]


def test_malformed_messages_are_of_every_kind_and_no_datagram_is_too_long() -> None:
    chance = chance_of(8)
    sizes = [len(malformed_message(chance)) for _ in range(2_000)]
    assert min(sizes) < 12
    assert 16_000 < max(sizes) <= 65_507

"""A flight: the times of its steps, the clients that wait for it, and where a reply can arrive."""

from __future__ import annotations

import pytest

from dnsproxy.forward.deadlines import GIVE_UP, PROBE_GIVE_UP, RETRY, STREAM_AFTER, Step
from dnsproxy.forward.flight import FAILING, Flight, Health, Recipient, StreamAttempt
from tests.dnsproxy.forward.flights import SENDER, NotedPort, flight
from tests.kit.messages import MX, NS, opt_record, query

PROBE = query("", NS)


def steps_of(made: Flight) -> list[tuple[float, Step]]:
    """All steps, each with the time at which it is due."""
    return [(made.due, made.next_step()) for _ in made.steps]


def test_a_flight_asks_again_tries_tcp_and_ends() -> None:
    made = flight(started=100.0)
    assert made.give_up == 100.0 + GIVE_UP
    assert steps_of(made) == [
        (100.0 + RETRY, Step.RETRY),
        (100.0 + STREAM_AFTER, Step.STREAM),
        (100.0 + 2 * RETRY, Step.RETRY),
        (100.0 + GIVE_UP, Step.GIVE_UP),
    ]


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(PROBE, id="as CoreDNS sends it"),
        pytest.param(query("", NS, flags=0), id="without RD"),
        pytest.param(query("", NS, additional=(opt_record(),)), id="with EDNS"),
    ],
)
def test_a_health_probe_ends_early(message: bytes) -> None:
    made = flight(message, started=100.0)
    assert steps_of(made) == [(100.0 + PROBE_GIVE_UP, Step.GIVE_UP)]
    assert made.give_up == 100.0 + PROBE_GIVE_UP


@pytest.mark.parametrize("message", [query("", MX), query("a", NS), query("", NS, klass=3)])
def test_what_is_like_a_health_probe_is_none(message: bytes) -> None:
    assert flight(message).give_up == GIVE_UP


def test_the_same_query_of_the_same_sender_is_known_and_no_other() -> None:
    made = flight(query("www.example.net", ident=7))
    port, sender, message_id = made.recipient
    assert made.has((port, sender, message_id))
    joined: Recipient = (port, (("192.0.2.77", 1), (), "192.0.2.77"), b"\0\x09")
    assert not made.has(joined)
    made.join(joined)
    assert made.has((port, sender, message_id))
    assert made.has(joined)
    others: list[Recipient] = [
        (port, sender, b"\0\x08"),
        (port, sender, b"\0\x09"),
        (port, (("192.0.2.9", 5354), (), "192.0.2.9"), message_id),
        (port, (("192.0.2.77", 1), (), "192.0.2.77"), message_id),
        (port, (SENDER[0], ((0, 8, b"another address of ours"),), SENDER[2]), message_id),
        (NotedPort(), sender, message_id),
    ]
    assert [made.has(other) for other in others] == [False] * 6


def test_those_who_joined_are_kept_in_order_each_once() -> None:
    made = flight()
    port, sender, _ = made.recipient
    for ident in (b"cc", b"aa", b"bb", b"aa"):
        made.join((port, sender, ident))
    assert made.others is not None
    assert [ident for _, _, ident in made.others] == [b"cc", b"aa", b"bb"]


@pytest.fixture
def health() -> Health:
    return Health()


def test_an_upstream_fails_after_three_misses_in_a_row(health: Health) -> None:
    seen = []
    for misses in range(FAILING + 2):
        health.misses = misses
        seen.append(health.failing)
    assert (FAILING, seen) == (3, [False, False, False, True, True])


def test_a_flight_that_was_never_sent_waits_for_nothing() -> None:
    made = flight()
    made.count_miss()
    made.forget()
    assert not made.waits()


def test_a_flight_waits_as_long_as_any_of_its_attempts_does(health: Health) -> None:
    made = flight()
    first, second = (StreamAttempt(health, {b"a": made}) for _ in range(2))
    made.attempts = ((first, b"a"), (second, b"a"))
    assert made.waits()
    del first.waiting[b"a"]
    assert made.waits()
    del second.waiting[b"a"]
    assert not made.waits()


def test_an_id_that_another_flight_has_by_now_is_not_its_own(health: Health) -> None:
    made, other = flight(), flight()
    mine = StreamAttempt(health, {b"a": other})
    made.attempts = ((mine, b"a"),)
    made.count_miss()
    made.forget()
    assert (made.waits(), mine.waiting, health.misses) == (False, {b"a": other}, 0)


def test_silence_counts_as_a_miss_of_the_upstream_that_was_asked_last(health: Health) -> None:
    before, made = Health(), flight()
    made.attempts = ((StreamAttempt(before, {b"a": made}), b"a"), (StreamAttempt(health, {b"b": made}), b"b"))
    made.count_miss()
    assert (before.misses, health.misses) == (0, 1)


def test_an_upstream_that_has_answered_gets_no_miss(health: Health) -> None:
    made = flight()
    made.attempts = ((StreamAttempt(health, {}), b"a"),)
    made.count_miss()
    assert health.misses == 0


def test_a_flight_that_is_forgotten_waits_nowhere(health: Health) -> None:
    made, other = flight(), flight()
    mine = StreamAttempt(health, {b"a": made, b"b": other})
    made.attempts = ((mine, b"a"),)
    made.forget()
    made.forget()
    assert mine.waiting == {b"b": other}
    assert not made.waits()

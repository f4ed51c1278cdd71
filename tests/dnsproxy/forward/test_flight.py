"""A flight: plain state. When it is due for what, who waits for it, and where a reply can come from."""

from __future__ import annotations

import pytest

from dnsproxy.datagrams.connected import Batches
from dnsproxy.forward.flight import (
    GIVE_UP,
    IMPATIENT,
    PROBE_GIVE_UP,
    RETRY,
    STREAM_AFTER,
    TICK,
    Flight,
    Recipient,
    Step,
    Try,
)
from dnsproxy.forward.upstream import Upstream
from sidecar.endpoints import Endpoint
from sidecar.poller import Poller
from tests.dnsproxy.forward.flights import SENDER, Noted, NotedPort, flight
from tests.kit.messages import MX, NS, opt_record, query

PROBE = query("", NS)


def test_the_deadlines_are_inside_those_of_coredns() -> None:
    """It waits two seconds for a reply and one for its health probe, and then takes us for dead."""
    assert RETRY + TICK <= 0.7
    assert GIVE_UP + TICK <= 1.8
    assert PROBE_GIVE_UP + TICK <= 0.6


def test_a_client_that_asks_again_is_heard_before_it_asks_a_third_time() -> None:
    """Clients send again after half a second at the earliest, and some of them a second time after as long."""
    assert IMPATIENT <= 0.25


def test_the_steps_leave_time_for_each_other() -> None:
    assert IMPATIENT < PROBE_GIVE_UP < RETRY < STREAM_AFTER < 2 * RETRY < GIVE_UP


def steps_of(made: Flight) -> list[tuple[float, Step]]:
    """All steps, each with the time that was stated before it."""
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


class TestTries:
    @pytest.fixture
    def upstream(self) -> Upstream:
        return Upstream(Endpoint("192.0.2.53", 53), poller=Poller.__new__(Poller), batches=Batches(), receiver=Noted())

    def test_a_flight_that_was_never_sent_waits_for_nothing(self) -> None:
        made = flight()
        made.hold_silence_against()
        made.forget()
        assert not made.waits()

    def test_it_waits_as_long_as_any_of_its_tries_does(self, upstream: Upstream) -> None:
        made = flight()
        first, second = (Try(upstream, {b"a": made}) for _ in range(2))
        made.tries = ((first, b"a"), (second, b"a"))
        assert made.waits()
        del first.waiting[b"a"]
        assert made.waits()
        del second.waiting[b"a"]
        assert not made.waits()

    def test_an_id_that_another_flight_has_by_now_is_not_its_own(self, upstream: Upstream) -> None:
        made, other = flight(), flight()
        mine = Try(upstream, {b"a": other})
        made.tries = ((mine, b"a"),)
        made.hold_silence_against()
        made.forget()
        assert (made.waits(), mine.waiting, upstream.misses) == (False, {b"a": other}, 0)

    def test_silence_is_held_against_the_one_that_was_asked_last(self, upstream: Upstream) -> None:
        before = Upstream(
            Endpoint("192.0.2.54", 53), poller=Poller.__new__(Poller), batches=Batches(), receiver=Noted()
        )
        made = flight()
        made.tries = ((Try(before, {b"a": made}), b"a"), (Try(upstream, {b"b": made}), b"b"))
        made.hold_silence_against()
        assert (before.misses, upstream.misses) == (0, 1)

    def test_nothing_is_held_against_one_that_has_answered(self, upstream: Upstream) -> None:
        made = flight()
        made.tries = ((Try(upstream, {}), b"a"),)
        made.hold_silence_against()
        assert upstream.misses == 0

    def test_what_is_forgotten_waits_nowhere(self, upstream: Upstream) -> None:
        made, other = flight(), flight()
        mine = Try(upstream, {b"a": made, b"b": other})
        made.tries = ((mine, b"a"),)
        made.forget()
        made.forget()
        assert mine.waiting == {b"b": other}
        assert not made.waits()

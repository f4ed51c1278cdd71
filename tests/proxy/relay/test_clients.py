"""How many connections a client has, and which of them are our own."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.header.addresses import Header
from proxy.header.v1 import format_v1
from proxy.header.v2 import SIGNATURE_V2, format_v2
from proxy.relay.clients import SAY_SECONDS, Clients, Words
from sidecar.endpoints import Endpoint

WAITING = Endpoint("192.0.2.1", 1000)
OTHER = Endpoint("192.0.2.2", 2000)
RELAY = Endpoint("192.0.2.80", 443)


def holding(*endpoints: Endpoint) -> Clients:
    clients = Clients()
    for one in endpoints:
        assert clients.enter(one.host, one.port)
    return clients


def test_a_client_has_no_more_than_it_may() -> None:
    clients = Clients(most_each=2)
    assert [clients.enter("192.0.2.1", port) for port in (1, 2, 3)] == [True, True, False]
    assert clients.enter("192.0.2.2", 3)
    clients.leave("192.0.2.1", 1)
    assert clients.enter("192.0.2.1", 3)


def test_it_is_not_said_each_time() -> None:
    clients = Clients(most_each=1)
    times = [0, 1, SAY_SECONDS - 1, SAY_SECONDS, SAY_SECONDS + 1]
    assert [clients.should_say(now=now) for now in times] == [True, False, False, True, False]


@given(st.lists(st.tuples(st.sampled_from(["192.0.2.1", "192.0.2.2"]), st.integers(1, 5))))
def test_whoever_comes_and_goes_nothing_is_left_behind(moves: list[tuple[str, int]]) -> None:
    clients, inside = Clients(most_each=2), set[tuple[str, int]]()
    for host, port in moves:
        if (host, port) in inside:
            clients.leave(host, port)
            inside.discard((host, port))
        elif clients.enter(host, port):
            inside.add((host, port))
        assert all(count <= 2 for count in Counter(one for one, _ in inside).values())
    for host, port in inside:
        clients.leave(host, port)
    assert not clients._ports


HEADER = Header(WAITING, RELAY)
FOREIGN = Header(Endpoint("192.0.2.7", 7), RELAY)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        pytest.param(format_v1(HEADER), Words.OURS, id="version 1"),
        pytest.param(format_v2(HEADER), Words.OURS, id="version 2"),
        pytest.param(format_v2(HEADER, checksum=True) + b"GET /", Words.OURS, id="with payload behind"),
        pytest.param(format_v1(FOREIGN) + format_v2(HEADER), Words.OURS, id="around a ring of two"),
        pytest.param(format_v1(FOREIGN) * 15 + format_v1(HEADER), Words.OURS, id="around a ring of sixteen"),
        pytest.param(format_v1(FOREIGN) * 15, Words.TOO_FEW, id="fifteen of somebody who is not here"),
        pytest.param(format_v1(FOREIGN) * 16, Words.OURS, id="more than anybody but a ring makes"),
        pytest.param(format_v1(FOREIGN), Words.TOO_FEW, id="somebody who is not here"),
        pytest.param(format_v1(Header(OTHER, RELAY)), Words.TOO_FEW, id="of itself"),
        pytest.param(format_v1(HEADER)[:-1], Words.TOO_FEW, id="not whole"),
        pytest.param(b"PROXY UNKNOWN\r\n", Words.TOO_FEW, id="a health check"),
        pytest.param(b"PROXY nonsense\r\n", Words.HARMLESS, id="no header"),
        pytest.param(b"GET / HTTP/1.1\r\n" + format_v1(HEADER), Words.HARMLESS, id="behind something else"),
        pytest.param(format_v1(FOREIGN) + b"GET /", Words.HARMLESS, id="somebody who is not here, and payload"),
        pytest.param(format_v1(FOREIGN) + format_v2(HEADER)[:9], Words.TOO_FEW, id="a second header that is not whole"),
        pytest.param(SIGNATURE_V2 + b"\x21\x11\xff\xff" + bytes(2000), Words.HARMLESS, id="an endless header"),
        pytest.param(b"PRO", Words.TOO_FEW, id="the begin of a header"),
        pytest.param(b"POST /", Words.HARMLESS, id="nearly the begin of a header"),
        pytest.param(b"", Words.TOO_FEW, id="nothing"),
    ],
)
def test_a_connection_of_ours_that_comes_back_is_told_by_its_header(said: bytes, words: Words) -> None:
    clients = holding(WAITING, OTHER)
    assert clients.look_at(said, host=OTHER.host, port=OTHER.port) is words


def test_one_that_is_gone_is_not_ours_any_more() -> None:
    clients = holding(WAITING, OTHER)
    clients.leave(WAITING.host, WAITING.port)
    assert clients.look_at(format_v1(HEADER), host=OTHER.host, port=OTHER.port) is Words.TOO_FEW


def test_ipv4_clients_of_a_socket_for_both_families_are_known_by_their_own_form() -> None:
    clients = holding(Endpoint("::ffff:192.0.2.1", 1000))
    assert clients.look_at(format_v1(HEADER), host=OTHER.host, port=OTHER.port) is Words.OURS


@given(
    st.binary(max_size=300).flatmap(lambda tail: st.sampled_from([tail, b"PROXY " + tail, format_v1(FOREIGN) + tail]))
)
def test_any_payload_is_looked_at_without_harm(payload: bytes) -> None:
    assert holding(OTHER).look_at(payload, host=OTHER.host, port=OTHER.port) is not Words.OURS

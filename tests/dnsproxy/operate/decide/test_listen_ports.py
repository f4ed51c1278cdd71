"""Where the relay listens."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.operate.decide.facts import ListenPort, Route
from dnsproxy.operate.decide.listen_ports import COUNT, FIRST, choose_ports
from tests.dnsproxy.operate.decide.cluster import route_of

KEYS = (("relay-nginx", 80), ("relay-nginx", 443))
MINE = Route("ssh", "1", relay_to="git/ssh", ports=(ListenPort(22, 20022),))


def test_a_port_keeps_its_listening_port() -> None:
    assert choose_ports(KEYS, [route_of(), MINE]) == {KEYS[0]: 20080, KEYS[1]: 20443}


def test_a_person_who_takes_our_listening_port_has_it_and_ours_moves() -> None:
    chosen = choose_ports(KEYS, [route_of(), replace(MINE, ports=(ListenPort(22, 20080),))])
    assert chosen[KEYS[0]] != 20080
    assert chosen[KEYS[1]] == 20443


def test_a_service_without_a_route_takes_no_listening_port() -> None:
    assert (
        choose_ports(KEYS, [route_of(), replace(MINE, relay_to="", ports=(ListenPort(22, 20080),))])[KEYS[0]] == 20080
    )


def test_a_listening_port_outside_of_the_range_is_not_kept() -> None:
    assert choose_ports(KEYS, [route_of(ports=(ListenPort(80, 8080),))])[KEYS[0]] >= FIRST


def test_a_port_is_missing_where_all_are_taken() -> None:
    full = replace(MINE, ports=tuple(ListenPort(1, FIRST + step) for step in range(COUNT)))
    assert choose_ports(KEYS, [full]) == {}


LISTEN = st.integers(FIRST - 2, FIRST + 5)
ROUTES = st.builds(
    Route,
    st.sampled_from(["relay-nginx", "relay-b", "ssh", "mqtt"]),
    ours=st.booleans(),
    relay_to=st.sampled_from(["", "a/b"]),
    ports=st.lists(
        st.builds(ListenPort, st.sampled_from([80, 443]), LISTEN), max_size=2, unique_by=lambda one: one.port
    ).map(tuple),
)


@given(
    st.lists(ROUTES, max_size=5, unique_by=lambda one: one.name),
    st.sets(st.tuples(st.sampled_from(["relay-nginx", "relay-b"]), st.sampled_from([80, 443]))),
)
def test_no_two_keys_share_a_port_and_none_takes_one_of_a_person(
    routes: list[Route], needed: set[tuple[str, int]]
) -> None:
    chosen = choose_ports(needed, routes)
    theirs = {one.listen for route in routes if route.relay_to and not route.ours for one in route.ports}
    assert chosen.keys() == needed
    assert len(set(chosen.values())) == len(chosen)
    assert not theirs & set(chosen.values())
    assert all(FIRST <= port < FIRST + COUNT for port in chosen.values())

"""Where the relay listens."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.operate.decide.facts import ListenPort, Route, Subject
from dnsproxy.operate.decide.listen_ports import COUNT, FIRST, choose_ports
from tests.dnsproxy.operate.decide.cluster import route_of

KEYS = (("relay-nginx", 80), ("relay-nginx", 443))
MINE = Route("ssh", "1", relay_to="git/ssh", ports=(ListenPort(22, 20022),))


def test_a_port_keeps_its_listening_port() -> None:
    assert choose_ports(KEYS, [route_of(), MINE]) == {KEYS[0]: 20080, KEYS[1]: 20443}


OLD, YOUNG = "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"


def test_an_older_service_of_a_person_has_a_listening_port_and_ours_moves() -> None:
    older = replace(MINE, created=OLD, ports=(ListenPort(22, 20080),))
    chosen = choose_ports(KEYS, [route_of(created=YOUNG), older])
    assert chosen[KEYS[0]] != 20080
    assert chosen[KEYS[1]] == 20443


def test_a_younger_service_of_a_person_moves_nothing() -> None:
    younger = replace(MINE, created=YOUNG, ports=(ListenPort(22, 20080),))
    assert choose_ports(KEYS, [younger, route_of(created=OLD)]) == {KEYS[0]: 20080, KEYS[1]: 20443}


def test_a_service_that_is_let_go_keeps_its_listening_ports_from_others() -> None:
    free = choose_ports(KEYS, [])[KEYS[0]]
    leaving = route_of(Subject("other"), ports=(ListenPort(80, free),))
    assert choose_ports(KEYS, [leaving])[KEYS[0]] != free


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
    created=st.sampled_from([OLD, YOUNG]),
    ports=st.lists(
        st.builds(ListenPort, st.sampled_from([80, 443]), LISTEN), max_size=2, unique_by=lambda one: one.port
    ).map(tuple),
)


@given(
    st.lists(ROUTES, max_size=5, unique_by=lambda one: one.name),
    st.sets(st.tuples(st.sampled_from(["relay-nginx", "relay-b"]), st.sampled_from([80, 443]))),
)
def test_no_two_keys_share_a_port_and_the_older_service_has_one_as_at_the_relay(
    routes: list[Route], needed: set[tuple[str, int]]
) -> None:
    chosen = choose_ports(needed, routes)
    assert chosen.keys() == needed
    assert len(set(chosen.values())) == len(chosen)
    now = {(route.name, one.port): (one.listen, route) for route in routes if route.relay_to for one in route.ports}
    for key, port in chosen.items():
        before = now[key] if key in now and now[key][1].ours else None
        kept = before is not None and before[0] == port
        others = [route for name, (listen, route) in now.items() if listen == port and name != key]
        age = (before[1].created, before[1].name) if before is not None and kept else None
        assert all(age is not None and age <= (other.created, other.name) for other in others)
    assert all(FIRST <= port < FIRST + COUNT for port in chosen.values())

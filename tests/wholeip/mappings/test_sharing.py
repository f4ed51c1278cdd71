"""The Services that share an address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.wholeip_objects import ip
from wholeip.mappings.addresses import Address
from wholeip.mappings.sharing import Sharing

A, B, C, D = (ip(f"192.0.2.{number}") for number in range(1, 5))


def sharing(**services: frozenset[Address]) -> Sharing:
    made = Sharing()
    for service, addresses in services.items():
        made.put(service, addresses)
    return made


@pytest.mark.parametrize(
    ("services", "reached"),
    [
        pytest.param({}, "x", id="it is not known"),
        pytest.param({"x": {A}, "y": {B}}, "x", id="it shares nothing"),
        pytest.param({"x": {A}, "y": {A, B}}, "xy", id="one address"),
        pytest.param({"x": {A}, "y": {A, B}, "z": {B}}, "xyz", id="through another"),
        pytest.param({"x": {A}, "y": {A, B}, "z": {B}, "u": {C, D}, "v": {D}}, "xyz", id="and no further"),
        pytest.param({"x": set(), "y": set()}, "x", id="without any address"),
        pytest.param({"x": {A, B}, "y": {B, C}, "z": {C, A}}, "xyz", id="in a ring"),
    ],
)
def test_one_reaches_those_that_it_shares_with_and_those_that_they_share_with(
    services: dict[str, set[Address]], reached: str
) -> None:
    made = sharing(**{service: frozenset(addresses) for service, addresses in services.items()})
    assert made.reach(["x"]) == set(reached)


def test_none_reach_none() -> None:
    assert sharing(x=frozenset({A})).reach([]) == set()


def test_one_that_leaves_names_those_that_it_has_left() -> None:
    made = sharing(x=frozenset({A, B}), y=frozenset({A}), z=frozenset({B}), u=frozenset({C}))
    assert made.put("x", frozenset({C})) == {"y", "z"}
    assert made.reach(["x"]) == {"x", "u"}
    assert made.put("x", frozenset()) == {"u"}
    assert made.put("x", frozenset()) == set()
    assert made.at(C) == {"u"}
    assert made.at(D) == set()


_ADDRESSES = st.frozensets(st.sampled_from([A, B, C, D]), max_size=2)
_PUTS = st.lists(st.tuples(st.sampled_from("uvwxyz"), _ADDRESSES), max_size=20)


@given(_PUTS, st.frozensets(st.sampled_from("uvwxyz")))
def test_what_is_reached_shares_nothing_with_the_rest(
    puts: list[tuple[str, frozenset[Address]]], some: frozenset[str]
) -> None:
    made, known = Sharing(), dict[str, frozenset[Address]]()
    for service, addresses in puts:
        before = known.get(service, frozenset())
        others = {other for other, theirs in known.items() if other != service and theirs & before}
        assert made.put(service, addresses) == others
        known[service] = addresses
    reached = made.reach(some)
    inside = {address for service in reached for address in known.get(service, ())}
    assert reached >= some
    assert not any(addresses & inside for service, addresses in known.items() if service not in reached)
    for service in reached - some:
        # No more than it takes: nobody is in it who shares nothing with another one there.
        assert any(known[service] & known.get(other, frozenset()) for other in reached - {service})

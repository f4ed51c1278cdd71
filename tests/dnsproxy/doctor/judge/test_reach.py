"""What becomes of a pod's connection, by the outcomes of probes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.doctor.facts.probes import Header, Outcome, Probe
from dnsproxy.doctor.judge.reach import (
    FAILING,
    AddressReach,
    ProbeIndex,
    Reach,
    overall_reach,
    reach_of_address,
    reach_of_port,
    routed,
)
from tests.dnsproxy.doctor.making import HOST, probes_at

R = Reach
A, B = "192.0.2.1", "2001:db8::1"


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((Outcome.ANSWERED,), R.SERVED),
        ((Outcome.ALERT,), R.SERVED),
        ((Outcome.ANSWERED, Outcome.BAD_REQUEST, Outcome.BAD_REQUEST), R.SERVED),
        ((Outcome.CLOSED, Outcome.ANSWERED, Outcome.ANSWERED), R.NEEDS_HEADER),
        ((Outcome.RESET, Outcome.CLOSED, Outcome.ALERT), R.NEEDS_HEADER),
        ((Outcome.BAD_REQUEST, Outcome.ANSWERED, Outcome.CLOSED), R.NEEDS_HEADER),
        ((Outcome.BAD_REQUEST, Outcome.BAD_REQUEST, Outcome.BAD_REQUEST), R.BAD_REQUEST),
        ((Outcome.GARBAGE, Outcome.CLOSED, Outcome.CLOSED), R.BAD_REQUEST),
        ((Outcome.CLOSED, Outcome.CLOSED, Outcome.CLOSED), R.UNSERVED),
        ((Outcome.SILENT,), R.UNSERVED),
        ((Outcome.RESET,), R.UNSERVED),
        ((Outcome.REFUSED,), R.CLOSED),
        ((Outcome.UNREACHABLE,), R.CLOSED),
        ((Outcome.NO_ROUTE,), R.NO_ROUTE),
        ((), R.UNKNOWN),
    ],
)
def test_the_outcomes_of_a_port_are_one_reach(outcomes: tuple[Outcome, ...], expected: Reach) -> None:
    assert reach_of_port(probes_at(A, outcomes)) is expected


def test_a_header_alone_shows_nothing_of_a_bare_connection() -> None:
    assert reach_of_port(probes_at(A, (Outcome.CLOSED, Outcome.ANSWERED))[1:]) is R.UNKNOWN


def pair(http: Outcome, https: Outcome) -> tuple[Probe, ...]:
    return (*probes_at(A, [http]), *probes_at(A, [https], port=443, tls=True))


@pytest.mark.parametrize(
    ("http", "https", "with_tls", "without"),
    [
        (Outcome.ANSWERED, Outcome.ANSWERED, R.SERVED, R.SERVED),
        (Outcome.ANSWERED, Outcome.REFUSED, R.CLOSED, R.SERVED),
        (Outcome.ANSWERED, Outcome.CLOSED, R.UNSERVED, R.SERVED),
        (Outcome.ANSWERED, Outcome.GARBAGE, R.BAD_REQUEST, R.SERVED),
        (Outcome.REFUSED, Outcome.ANSWERED, R.SERVED, R.SERVED),
        (Outcome.UNREACHABLE, Outcome.ANSWERED, R.SERVED, R.SERVED),
        (Outcome.CLOSED, Outcome.ANSWERED, R.UNSERVED, R.UNSERVED),
        (Outcome.REFUSED, Outcome.REFUSED, R.CLOSED, R.CLOSED),
        (Outcome.REFUSED, Outcome.CLOSED, R.UNSERVED, R.CLOSED),
        (Outcome.NO_ROUTE, Outcome.NO_ROUTE, R.NO_ROUTE, R.NO_ROUTE),
    ],
)
def test_a_port_counts_for_the_hosts_that_use_it(
    http: Outcome, https: Outcome, with_tls: Reach, without: Reach
) -> None:
    assert reach_of_address(pair(http, https), tls=True) is with_tls
    assert reach_of_address(pair(http, https), tls=False) is without


def test_tls_that_needs_the_header_counts_for_hosts_without_tls_of_their_own() -> None:
    """The controller may have a default certificate, or take TLS by an annotation."""
    probes = (*probes_at(A, [Outcome.ANSWERED]), *probes_at(A, [Outcome.CLOSED, Outcome.ANSWERED], port=443, tls=True))
    assert reach_of_address(probes, tls=False) is R.NEEDS_HEADER


def test_no_probe_is_unknown_and_no_address_as_well() -> None:
    assert reach_of_address((), tls=True) is R.UNKNOWN
    assert overall_reach(()) is R.UNKNOWN


@pytest.mark.parametrize("other", list(Reach))
def test_a_family_without_a_route_counts_only_alone(other: Reach) -> None:
    lost, kept = AddressReach(B, R.NO_ROUTE), AddressReach(A, other)
    assert overall_reach((lost, kept)) is other
    assert overall_reach((lost,)) is R.NO_ROUTE
    assert routed((lost, kept)) == ((kept,) if other is not R.NO_ROUTE else (lost, kept))


@given(st.lists(st.sampled_from(Reach), min_size=1))
def test_pods_are_served_only_if_every_address_that_counts_serves_them(found: list[Reach]) -> None:
    addresses = tuple(AddressReach(str(number), reach) for number, reach in enumerate(found))
    served = overall_reach(addresses) is R.SERVED
    assert served == all(reach in (R.SERVED, R.NO_ROUTE) for reach in found) * (R.SERVED in found)
    assert not (served and FAILING & {one.reach for one in routed(addresses)})


def test_the_probes_of_the_host_come_before_those_of_others() -> None:
    own, other = probes_at(A, [Outcome.CLOSED]), probes_at(A, [Outcome.ANSWERED], hostname="other.example.org")
    index = ProbeIndex((*other, *own))
    assert index.reach(A, HOST, tls=True).reach is R.UNSERVED
    assert index.reach(A, "other.example.org", tls=True).reach is R.SERVED
    # An address behaves alike for hosts that were not dialled.
    assert ProbeIndex(other).reach(A, HOST, tls=True).reach is R.SERVED
    assert index.reach("192.0.2.99", HOST, tls=True).reach is R.UNKNOWN


def test_an_address_is_found_in_any_spelling() -> None:
    index = ProbeIndex(probes_at("2001:DB8:0::1", [Outcome.ANSWERED]))
    assert index.reach(B, HOST, tls=False).reach is R.SERVED


def test_the_failing_ports_are_those_that_count() -> None:
    one = AddressReach(A, R.CLOSED, pair(Outcome.ANSWERED, Outcome.REFUSED))
    assert one.failing_ports(tls=True) == (443,)
    assert one.failing_ports(tls=False) == ()


def test_every_combination_of_outcomes_has_a_reach() -> None:
    for outcomes in itertools.product(Outcome, repeat=3):
        reach = reach_of_port(probes_at(A, outcomes))
        assert (reach is R.SERVED) == (outcomes[0] in (Outcome.ANSWERED, Outcome.ALERT))
        headers = {probe.header for probe in probes_at(A, outcomes)}
        assert headers == set(Header)

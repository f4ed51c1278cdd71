"""Which header each port takes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.doctor.facts.model import Port
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.operate.decide.facts import Probed, Route
from dnsproxy.operate.decide.port_headers import Demand, PortState, endpoint_headers, headers_of, port_states
from sidecar.kubernetes.route_services import format_headers
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.operate.decide.cluster import KEY, SERVICE, cluster, probed, route_of, service

M = HeaderMode
TLS = service(ports=(Port(443, "https"),))


def state(
    first: Probed | HeaderMode | None, second: Probed | HeaderMode | None = None, *, last: Route | None = None
) -> PortState:
    """Port 443 with one or two endpoints, and what was seen of them; None: not probed."""
    places = [(KEY, 443, one) for one in (TLS.endpoints or {})[443]]
    seen = {
        place: one if isinstance(one, Probed) else probed(one)
        for place, one in zip(places, (first, second), strict=True)
        if one is not None
    }
    (found,) = port_states(TLS, cluster(probes=seen), last=last)
    return found


@pytest.mark.parametrize(
    ("first", "second", "demand", "header", "exceptions"),
    [
        pytest.param(M.REQUIRES, M.REQUIRES, Demand.HEADER, "v1", {}, id="both demand it"),
        pytest.param(M.REQUIRES, None, Demand.HEADER, "v1", {}, id="one demands it, one is not probed"),
        pytest.param(M.REQUIRES, M.UNKNOWN, Demand.HEADER, "v1", {}, id="one demands it, one is unclear"),
        pytest.param(M.REQUIRES, M.REJECTS, Demand.HEADER, "v1", {"10.0.0.2": "none"}, id="a new pod rejects it"),
        pytest.param(M.REQUIRES, M.ACCEPTS, Demand.HEADER, "v1", {}, id="a new pod takes both"),
        pytest.param(M.ACCEPTS, M.ACCEPTS, Demand.PLAIN, "v1", {}, id="both take both"),
        pytest.param(M.REJECTS, M.REJECTS, Demand.PLAIN, "none", {}, id="both reject it"),
        pytest.param(M.ACCEPTS, M.REJECTS, Demand.PLAIN, "none", {}, id="one takes both, one rejects"),
        pytest.param(M.REJECTS, None, Demand.UNKNOWN, "none", {}, id="one rejects, one is not probed"),
        pytest.param(M.REJECTS, M.UNKNOWN, Demand.UNKNOWN, "none", {}, id="one rejects, one is unclear"),
        pytest.param(M.REJECTS, M.DEAD, Demand.PLAIN, "none", {}, id="one rejects, one is dead"),
        pytest.param(M.DEAD, M.DEAD, Demand.CLOSED, "none", {}, id="both are dead"),
        pytest.param(M.SILENT, M.SILENT, Demand.UNKNOWN, "none", {}, id="both are silent"),
        pytest.param(None, None, Demand.UNKNOWN, "none", {}, id="not probed"),
        pytest.param(
            probed(M.REQUIRES, versions=("v2",)),
            probed(M.REQUIRES, versions=("v2",)),
            Demand.HEADER,
            "v2",
            {},
            id="v2 alone",
        ),
        pytest.param(
            probed(M.REQUIRES, versions=("v2",)),
            M.REQUIRES,
            Demand.HEADER,
            "v1",
            {"10.0.0.1": "v2"},
            id="v2 alone, and both",
        ),
        pytest.param(
            probed(M.REQUIRES, versions=("v2",)),
            M.REJECTS,
            Demand.HEADER,
            "v2",
            {"10.0.0.2": "none"},
            id="v2, and none",
        ),
    ],
)
def test_a_port_demands_the_header_if_one_endpoint_does(
    first: Probed | HeaderMode | None,
    second: Probed | HeaderMode | None,
    demand: Demand,
    header: str,
    exceptions: dict[str, str],
) -> None:
    found = state(first, second)
    assert (found.demand, found.header, found.exceptions) == (demand, header, exceptions)


@pytest.mark.parametrize(
    ("new", "old", "demand", "header", "exceptions"),
    [
        pytest.param(M.REJECTS, M.REQUIRES, Demand.PLAIN, "none", {"10.0.0.2": "v1"}, id="the header is turned off"),
        pytest.param(M.REQUIRES, M.REJECTS, Demand.HEADER, "v1", {"10.0.0.2": "none"}, id="the header is turned on"),
        pytest.param(None, M.REQUIRES, Demand.UNKNOWN, "v1", {}, id="the new pod was not probed yet"),
        pytest.param(M.REJECTS, None, Demand.PLAIN, "none", {}, id="the old pod never was"),
    ],
)
def test_a_pod_that_leaves_keeps_its_own_header_and_has_no_say_in_the_demand(
    new: HeaderMode | None, old: HeaderMode | None, demand: Demand, header: str, exceptions: dict[str, str]
) -> None:
    # A relay that holds back the new pod uses the old one meanwhile.
    first, second = (TLS.endpoints or {})[443]
    rolled = replace(TLS, endpoints={443: (first,)}, leaving={443: (second,)})
    seen = {(KEY, 443, pod): probed(mode) for pod, mode in ((first, new), (second, old)) if mode is not None}
    (found,) = port_states(rolled, cluster(probes=seen), last=route_of())
    assert (found.demand, found.header, found.exceptions) == (demand, header, exceptions)


def test_after_a_restart_what_was_not_probed_yet_gets_what_it_has_had() -> None:
    """The second of two pods is an exception; the probe of one pod says nothing about the other one."""
    route = route_of(headers="v1", endpoint_headers="443@10.0.0.2=none,443@10.0.0.9=none,80@10.0.0.1=v2")
    fresh = state(None, None, last=route)
    assert (fresh.demand, fresh.header, fresh.exceptions) == (Demand.UNKNOWN, "v1", {"10.0.0.2": "none"})
    half = state(None, M.REJECTS, last=route)
    assert (half.header, half.exceptions) == ("v1", {"10.0.0.2": "none"})
    assert state(M.REJECTS, M.REJECTS, last=route).header == "none"
    assert state(None, None, last=route_of(endpoint_headers="nonsense")).exceptions == {}
    assert state(None, None, last=route_of(to="other/backend", endpoint_headers="443@10.0.0.2=none")).exceptions == {}


def test_the_header_is_turned_on_once_every_pod_was_probed() -> None:
    route = route_of(headers="v1,443=none")
    half = state(M.REQUIRES, None, last=route)
    assert (half.demand, half.header, half.exceptions) == (Demand.HEADER, "none", {"10.0.0.1": "v1"})
    whole = state(M.REQUIRES, M.REJECTS, last=route)
    assert (whole.header, whole.exceptions) == ("v1", {"10.0.0.2": "none"})


def test_pods_at_one_address_that_disagree_have_no_exception() -> None:
    """Pods of a node's network have its address, and may listen at different ports for one port of the Service."""
    places = Endpoint("10.0.0.1", 8080), Endpoint("10.0.0.1", 8081), Endpoint("10.0.0.2", 8080)
    nodes = replace(TLS, endpoints={443: places})
    modes = (M.REJECTS, M.REQUIRES, M.REJECTS)
    seen = {(KEY, 443, place): probed(mode) for place, mode in zip(places, modes, strict=True)}
    (found,) = port_states(nodes, cluster(probes=seen), last=None)
    assert (found.header, found.exceptions) == ("v1", {"10.0.0.2": "none"})


def test_an_unclear_port_keeps_the_header_of_its_route() -> None:
    assert state(None, None, last=route_of()).header == "v1"
    assert state(M.UNKNOWN, M.SILENT, last=route_of(headers="v1,443=v2")).header == "v2"
    assert state(None, None, last=route_of(headers="nonsense")).header == "none"
    assert state(None, None, last=route_of(to="other/backend")).header == "none"


@pytest.mark.parametrize("unclear", [M.UNKNOWN, M.SILENT], ids=lambda one: one.name)
def test_an_unclear_endpoint_keeps_what_it_has_had(unclear: HeaderMode) -> None:
    excepted = route_of(headers="v1", endpoint_headers="443@10.0.0.2=none")
    found = state(M.REQUIRES, unclear, last=excepted)
    assert (found.header, found.exceptions) == ("v1", {"10.0.0.2": "none"})
    rolled = state(M.REJECTS, unclear, last=route_of(headers="v1"))
    assert (rolled.demand, rolled.header, rolled.exceptions) == (Demand.UNKNOWN, "v1", {"10.0.0.1": "none"})


def test_a_port_that_is_no_web_port_is_relayed_as_it_is() -> None:
    git = service(ports=(Port(22, "ssh"), Port(443, "https")))
    ssh, https = port_states(git, cluster(probes={}), last=None)
    assert (ssh.tls, ssh.header, ssh.demand) == (None, "none", Demand.PLAIN)
    assert "is no web port" in ssh.evidence
    assert https.tls is True


def test_the_evidence_has_what_was_seen() -> None:
    assert state(replace(probed(M.REQUIRES), detail="plain closed, v1 answered (404)"), M.REQUIRES).evidence == (
        "port 443 demands the PROXY header (plain closed, v1 answered (404))"
    )
    assert state(M.REQUIRES, M.REJECTS).evidence == "port 443 demands the PROXY header at 1 of 2 endpoints"
    assert state(None, None).evidence == "port 443 was not probed yet"
    (closed,) = port_states(replace(TLS, endpoints={}), cluster(probes={}), last=None)
    assert closed.evidence == "port 443 has no ready endpoint"


def test_the_annotations_name_what_differs_from_v1() -> None:
    states = (*port_states(SERVICE, cluster(), last=None), PortState(22, None, Demand.PLAIN, "none"))
    assert format_headers(headers_of(states)) == "v1,22=none"
    assert endpoint_headers([replace(states[0], exceptions={"10.0.0.2": "none"})]) == {(80, "10.0.0.2"): "none"}


SEEN = st.none() | st.builds(
    probed, st.sampled_from(HeaderMode), versions=st.sampled_from([(), ("v1",), ("v2",), ("v1", "v2")])
)


@given(SEEN, SEEN)
def test_no_endpoint_gets_a_header_that_it_was_seen_to_reject(first: Probed | None, second: Probed | None) -> None:
    found = state(first, second)
    for host, seen in (("10.0.0.1", first), ("10.0.0.2", second)):
        if seen is None:
            continue
        header = found.exceptions.get(host, found.header)
        if seen.mode is HeaderMode.REJECTS:
            assert header == "none"
        if seen.mode is HeaderMode.REQUIRES:
            assert header in (seen.versions or ("v1",))


@given(SEEN, SEEN)
def test_the_order_of_endpoints_changes_nothing(first: Probed | None, second: Probed | None) -> None:
    one, other = state(first, second), state(second, first)
    assert (one.demand, one.header) == (other.demand, other.header)

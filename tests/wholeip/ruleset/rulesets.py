"""Strategies for mappings that a plan could make, from few addresses, so that they collide."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from hypothesis import strategies as st

from wholeip.mappings.mapping import Mapping, OpenPort, Protocol
from wholeip.ruleset.ruleset import Ruleset, make_ruleset

_PROTOCOLS: tuple[Protocol, ...] = ("tcp", "udp", "sctp")
_ADDRESSES = {4: "203.0.113.{}", 6: "2001:db8:113::{}"}
_PODS = {4: "10.244.0.{}", 6: "fd00:244::{}"}
_NETWORKS = tuple(
    ip_network(text)
    for text in (
        *("10.0.0.0/8", "10.0.0.0/9", "10.128.0.0/9", "10.244.0.0/16", "198.51.100.11/32", "0.0.0.0/1"),
        *("fd00::/8", "fd00:244::/64", "2001:db8::11/128"),
    )
)
ports = st.builds(OpenPort, st.sampled_from(_PROTOCOLS), st.sampled_from([1, 53, 80, 65535]))
networks = st.frozensets(st.sampled_from(_NETWORKS))


@st.composite
def mappings(draw: st.DrawFn) -> list[Mapping]:
    """At most one for an address; at most one of a pod and family with egress."""
    made: list[Mapping] = []
    leaving: set[str] = set()
    for family in (4, 6):
        for number in draw(st.frozensets(st.integers(1, 6))):
            pod = _PODS[family].format(draw(st.integers(1, 4)))
            made.append(
                Mapping(
                    f"default/service-{number}",
                    ip_address(_ADDRESSES[family].format(number)),
                    ip_address(pod),
                    opened=draw(st.none() | st.frozensets(ports, max_size=4)),
                    icmp=draw(st.booleans()),
                    egress=pod not in leaving and draw(st.booleans()),
                    here=draw(st.booleans()),
                )
            )
            if made[-1].egress:
                leaving.add(pod)
    return made


@st.composite
def rulesets(draw: st.DrawFn) -> Ruleset:
    """Of such mappings."""
    return make_ruleset(draw(mappings()), cluster=draw(networks))

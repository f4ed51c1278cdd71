"""Which versions are followed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.gateway.kinds import SOURCES
from dnsproxy.sources.gateway.versions import VERSION_PATHS, choose_gateway_collections

V1, BETA, ALPHA2, ALPHA3 = (
    f"/apis/gateway.networking.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha2", "v1alpha3")
)
X = "/apis/gateway.networking.x-k8s.io/v1alpha1"


def chosen(served: dict[str, set[str]]) -> dict[str, str]:
    return {
        kind: one.path.removeprefix("/apis/gateway.networking.")
        for kind, one in choose_gateway_collections(served).items()
    }


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        pytest.param({}, {}, id="no CRDs"),
        pytest.param(
            {ALPHA2: {"gateways", "httproutes", "grpcroutes", "tlsroutes"}, BETA: {"gateways", "httproutes"}},
            {
                "Gateway": "k8s.io/v1beta1/gateways",
                "HTTPRoute": "k8s.io/v1beta1/httproutes",
                "GRPCRoute": "k8s.io/v1alpha2/grpcroutes",
                "TLSRoute": "k8s.io/v1alpha2/tlsroutes",
            },
            id="v0.6",
        ),
        pytest.param(
            {
                V1: {"gateways", "gatewayclasses", "httproutes", "grpcroutes"},
                BETA: {"gateways", "gatewayclasses", "httproutes", "referencegrants"},
                ALPHA2: {"tlsroutes", "tcproutes", "udproutes"},
                X: {"xlistenersets", "xbackendtrafficpolicies"},
            },
            {
                "Gateway": "k8s.io/v1/gateways",
                "HTTPRoute": "k8s.io/v1/httproutes",
                "GRPCRoute": "k8s.io/v1/grpcroutes",
                "TLSRoute": "k8s.io/v1alpha2/tlsroutes",
                "XListenerSet": "x-k8s.io/v1alpha1/xlistenersets",
            },
            id="v1.3 experimental",
        ),
        pytest.param(
            {ALPHA3: {"tlsroutes"}, ALPHA2: {"tlsroutes"}},
            {"TLSRoute": "k8s.io/v1alpha3/tlsroutes"},
            id="v1.4 TLSRoute",
        ),
        pytest.param(
            {
                V1: {"gateways", "httproutes", "grpcroutes", "tlsroutes", "listenersets"},
                BETA: {"gateways", "httproutes"},
                ALPHA3: {"tlsroutes"},
                ALPHA2: {"tlsroutes"},
            },
            {
                "Gateway": "k8s.io/v1/gateways",
                "ListenerSet": "k8s.io/v1/listenersets",
                "HTTPRoute": "k8s.io/v1/httproutes",
                "GRPCRoute": "k8s.io/v1/grpcroutes",
                "TLSRoute": "k8s.io/v1/tlsroutes",
            },
            id="v1.5",
        ),
        pytest.param({V1: {"httproutes"}}, {"HTTPRoute": "k8s.io/v1/httproutes"}, id="one CRD of many"),
        pytest.param({V1: set(), BETA: {"gateways"}}, {"Gateway": "k8s.io/v1beta1/gateways"}, id="v1 has others"),
        pytest.param({X: {"gateways", "httproutes"}, V1: {"xlistenersets"}}, {}, id="in the wrong group"),
        pytest.param({ALPHA3: {"gateways"}, BETA: {"grpcroutes"}}, {}, id="in versions that never were"),
        pytest.param({"/apis/gateway.networking.k8s.io/v2": {"gateways"}}, {}, id="in a version to come"),
        pytest.param({"/apis/example.org/v1": {"gateways"}, "/api/v1": {"gateways"}}, {}, id="of another group"),
    ],
)
def test_the_most_settled_version_of_each_kind_is_followed(
    served: dict[str, set[str]], expected: dict[str, str]
) -> None:
    assert chosen(served) == expected


def test_only_what_every_cluster_needs_must_be_seen() -> None:
    """The others count as empty where RBAC hides them."""
    everything = {"gateways", "httproutes", "grpcroutes", "tlsroutes", "listenersets", "xlistenersets"}
    collections = choose_gateway_collections(dict.fromkeys(VERSION_PATHS, everything))
    assert set(collections) == set(SOURCES)
    assert {kind for kind, one in collections.items() if not one.optional} == {"Gateway", "HTTPRoute"}
    assert all(kind == one.kind for kind, one in collections.items())


def test_every_group_version_is_asked_for_once() -> None:
    assert sorted(VERSION_PATHS) == sorted({V1, BETA, ALPHA2, ALPHA3, X})


@given(
    st.dictionaries(st.sampled_from(VERSION_PATHS), st.sets(st.sampled_from(["gateways", "tlsroutes", "listenersets"])))
)
def test_a_followed_version_is_served(served: dict[str, set[str]]) -> None:
    for one in choose_gateway_collections(served).values():
        path, _, resource = one.path.rpartition("/")
        assert resource in served[path]

"""Which versions are followed."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.gateway.kinds import SOURCES
from dnsproxy.sources.gateway.versions import GROUP_VERSIONS, choose_collections, parse_resources
from sidecar.kubernetes.errors import Garbled

V1, BETA, ALPHA2, ALPHA3 = (
    f"gateway.networking.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha2", "v1alpha3")
)
X = "gateway.networking.x-k8s.io/v1alpha1"

WATCHED = ["get", "list", "watch"]


def chosen(served: dict[str, set[str]]) -> dict[str, str]:
    return {
        kind: one.path.removeprefix("/apis/gateway.networking.") for kind, one in choose_collections(served).items()
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
        pytest.param({"gateway.networking.k8s.io/v2": {"gateways"}}, {}, id="in a version to come"),
        pytest.param({"example.org/v1": {"gateways"}, "v1": {"gateways"}}, {}, id="of another group"),
    ],
)
def test_the_most_settled_version_of_each_kind_is_followed(
    served: dict[str, set[str]], expected: dict[str, str]
) -> None:
    assert chosen(served) == expected


def test_only_what_every_cluster_needs_must_be_seen() -> None:
    """The others count as empty where RBAC hides them."""
    everything = {"gateways", "httproutes", "grpcroutes", "tlsroutes", "listenersets", "xlistenersets"}
    collections = choose_collections(dict.fromkeys(GROUP_VERSIONS, everything))
    assert set(collections) == set(SOURCES)
    assert {kind for kind, one in collections.items() if not one.optional} == {"Gateway", "HTTPRoute"}
    assert all(kind == one.kind for kind, one in collections.items())


def test_every_group_version_is_asked_for_once() -> None:
    assert sorted(GROUP_VERSIONS) == sorted({V1, BETA, ALPHA2, ALPHA3, X})


@given(
    st.dictionaries(
        st.sampled_from(GROUP_VERSIONS), st.sets(st.sampled_from(["gateways", "tlsroutes", "listenersets"]))
    )
)
def test_a_followed_version_is_served(served: dict[str, set[str]]) -> None:
    for one in choose_collections(served).values():
        _, _, group, version, resource = one.path.split("/")
        assert resource in served[f"{group}/{version}"]


def resources(*rows: Any) -> bytes:
    return json.dumps({"kind": "APIResourceList", "groupVersion": V1, "resources": list(rows)}).encode()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(resources({"name": "gateways", "kind": "Gateway", "verbs": WATCHED}), {"gateways"}, id="one"),
        pytest.param(
            resources({"name": "gateways", "verbs": WATCHED}, {"name": "gateways/status", "verbs": ["get", "patch"]}),
            {"gateways"},
            id="with its status",
        ),
        pytest.param(resources({"name": "gateways", "verbs": ["list"]}), set(), id="not watchable"),
        pytest.param(resources({"name": "gateways", "verbs": None}), set(), id="null verbs"),
        pytest.param(resources({"name": "gateways"}), set(), id="no verbs"),
        pytest.param(resources(), set(), id="none"),
        pytest.param(b'{"resources": null}', set(), id="null"),
        pytest.param(b"{}", set(), id="empty"),
    ],
)
def test_resources_that_can_be_followed_are_found(body: bytes, expected: set[str]) -> None:
    assert parse_resources(body) == expected


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"null", b"<html>", b'{"resources": {}}', b'{"resources": [null]}', b'{"resources": [{"name": 7}]}',
     resources({"verbs": WATCHED}), resources({"name": "a", "verbs": "list"}), resources({"name": "a"})[:-3],
     b'{"resources": [{"name": "\xff"}]}', b'{"resources":' + b"[" * 100_000],
)  # fmt: skip
def test_any_other_document_than_a_list_of_resources_is_garbled(body: bytes) -> None:
    with pytest.raises(Garbled):
        parse_resources(body)


@given(st.binary())
def test_any_octets_are_a_list_of_resources_or_garbled(body: bytes) -> None:
    with suppress(Garbled):
        assert isinstance(parse_resources(body), frozenset)

"""Route Services as the API server has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.operate.decide.facts import ListenPort, Route
from dnsproxy.operate.decide.route_manifest import manifest_of, patch_of, route_of
from sidecar.kubernetes.relay_routes import RouteService
from tests.dnsproxy.operate.decide import cluster

FULL = cluster.route_of(headers="v1,22=none", endpoint_headers="443@10.0.0.2=none", port_backends="22=git/ssh")


def read(manifest: dict[str, Any]) -> Route:
    return route_of(msgspec.convert(manifest, RouteService))


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, section 2."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def test_a_manifest_has_what_the_relay_and_dnsproxy_read() -> None:
    manifest = manifest_of(FULL, namespace="switchback")
    assert manifest["metadata"]["annotations"] == {
        "switchback.dev/relay-to": "ingress-nginx/ingress-nginx-controller",
        "switchback.dev/port-backends": "22=git/ssh",
        "switchback.dev/proxy-protocol": "v1,22=none",
        "switchback.dev/endpoint-headers": "443@10.0.0.2=none",
        "switchback.dev/for": "ingressclass/nginx",
    }
    assert manifest["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "switchback-operate"
    assert manifest["spec"] == {
        "selector": {"app.kubernetes.io/name": "relay"},
        "ipFamilyPolicy": "PreferDualStack",
        "ports": [
            {"name": "port-80", "port": 80, "targetPort": 20080, "protocol": "TCP"},
            {"name": "port-443", "port": 443, "targetPort": 20443, "protocol": "TCP"},
        ],
    }


def test_a_patch_has_only_what_changes_and_the_version_that_was_read() -> None:
    assert patch_of(FULL, replace(FULL, subjects="", released="2026-11-25T12:00:00Z")) == {
        "metadata": {
            "resourceVersion": "7",
            "annotations": {"switchback.dev/for": None, "switchback.dev/released": "2026-11-25T12:00:00Z"},
        }
    }


@pytest.mark.parametrize(
    ("spec", "patched"),
    [
        pytest.param(
            {"type": "ExternalName", "externalName": "other.example.org"},
            {"type": "ClusterIP", "externalName": None},
            id="type",
        ),
        pytest.param({"type": "LoadBalancer"}, {"type": "ClusterIP", "externalName": None}, id="a load balancer"),
        pytest.param(
            {"ports": [{"port": 443, "targetPort": 20443, "protocol": "UDP"}]},
            {"ports": [{"name": "port-443", "port": 443, "targetPort": 20443, "protocol": "TCP"}]},
            id="protocol",
        ),
    ],
)
def test_a_type_and_a_protocol_that_another_wrote_are_put_right(spec: dict[str, Any], patched: dict[str, Any]) -> None:
    wanted = Route("a", "7", ports=(ListenPort(443, 20443),))
    kept = {"ports": [{"port": 443, "targetPort": 20443}]}
    before = read({"metadata": {"name": "a", "resourceVersion": "7"}, "spec": {**kept, **spec}})
    assert patch_of(before, wanted)["spec"] == patched


def test_a_service_of_people_is_not_ours_and_a_named_target_port_listens_nowhere() -> None:
    manifest = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 22, "targetPort": "ssh"}]}}
    assert read(manifest) == Route("a", ports=(ListenPort(22, 22),))
    assert read({"metadata": {"name": "a"}}) == Route("a")


ROUTES = st.builds(
    Route,
    st.just("relay-nginx"),
    st.just("7"),
    ours=st.just(True),
    relay_to=st.sampled_from(["a/b", "c/d"]),
    port_backends=st.sampled_from(["", "22=git/ssh"]),
    headers=st.sampled_from(["v1", "v2,22=none"]),
    endpoint_headers=st.sampled_from(["", "443@10.0.0.2=none"]),
    subjects=st.sampled_from(["", "ingressclass/nginx"]),
    released=st.sampled_from(["", "2026-11-25T12:00:00Z"]),
    ports=st.lists(st.builds(ListenPort, st.integers(1, 9), st.integers(20_000, 20_009)), min_size=1, max_size=3).map(
        tuple
    ),
    selector=st.sampled_from([(("a", "b"),), (("a", "c"), ("d", "e")), (("d", "e"),)]),
)


@given(ROUTES)
def test_what_is_written_is_read(route: Route) -> None:
    manifest = manifest_of(route, namespace="switchback")
    assert read(merged(manifest, {"metadata": {"resourceVersion": "7"}})) == route


@given(ROUTES, ROUTES)
def test_a_patch_makes_one_route_the_other_and_leaves_the_rest(before: Route, after: Route) -> None:
    manifest = merged(
        manifest_of(before, namespace="switchback"),
        {
            "metadata": {"resourceVersion": "7", "annotations": {"example.org/theirs": "1"}},
            "spec": {"clusterIP": "10.96.0.7"},
        },
    )
    changed = merged(manifest, patch_of(before, after))
    assert read(changed) == after
    assert changed["metadata"]["annotations"]["example.org/theirs"] == "1"
    assert changed["spec"]["clusterIP"] == "10.96.0.7"

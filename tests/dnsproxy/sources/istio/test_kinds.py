"""Which versions are followed."""

from __future__ import annotations

import pytest

from dnsproxy.sources.istio.kinds import WATCHED
from dnsproxy.sources.watched_kinds import choose_collections

V1, BETA, ALPHA = (f"/apis/networking.istio.io/{version}" for version in ("v1", "v1beta1", "v1alpha3"))
BOTH = {"gateways", "virtualservices"}


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        pytest.param({}, {}, id="no CRDs"),
        pytest.param(
            {V1: BOTH, BETA: BOTH, ALPHA: {*BOTH, "envoyfilters"}},
            {"IstioGateway": f"{V1}/gateways", "VirtualService": f"{V1}/virtualservices"},
            id="since 1.22",
        ),
        pytest.param(
            {BETA: BOTH, ALPHA: BOTH},
            {"IstioGateway": f"{BETA}/gateways", "VirtualService": f"{BETA}/virtualservices"},
            id="until 1.21",
        ),
        pytest.param({ALPHA: {"virtualservices"}}, {"VirtualService": f"{ALPHA}/virtualservices"}, id="one alone"),
        pytest.param({"/apis/gateway.networking.k8s.io/v1": {"gateways"}}, {}, id="the Gateways of another API"),
    ],
)
def test_the_most_stable_version_is_read(served: dict[str, set[str]], expected: dict[str, str]) -> None:
    chosen = choose_collections(WATCHED, served, {})
    assert {kind: one.path for kind, one in chosen.items()} == expected
    assert all(one.optional for one in chosen.values())

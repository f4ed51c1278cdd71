"""The hostnames of the Gateway API that Envoy Gateway gives its Envoys, beside those that Switchback claims."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.sources.settings import GatewayOptions
from tests.differential.certificates import secret
from tests.differential.claimed import Claimed
from tests.differential.differences import expect_explained, find_differences, of_kind
from tests.differential.envoy_gateway import CLASS, CONTROLLER, NEEDS_EGCTL, translate, without_selectors
from tests.differential.envoy_gateway_reasons import REASONS
from tests.differential.gateway_sets import Choices, make_gateway_objects
from tests.differential.sets import SEED, Draw, Manifest, ObjectSet, Terms, cluster_objects, draw_sets
from tests.differential.stored import collection_of, create_all, install_gateway_api, store_sets
from tests.kit import gateway_api
from tests.kit.apiserver import running_apiserver

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "gateway-api"), NEEDS_EGCTL]

SETS: Final = 200
TERMS: Final = Terms(gateway_class=CLASS, gateway_controller=CONTROLLER, secret=secret(), http=8080, https=8443)


def make(draw: Draw) -> Iterator[Manifest]:
    """Without ListenerSets and selectors, which egctl does not read."""
    return without_selectors(make_gateway_objects(draw, Choices(listener_sets=False)))


def test_the_hosts_that_envoy_gateway_serves_are_those_that_are_claimed(tmp_path: Path) -> None:
    with running_apiserver(tmp_path) as server:
        install_gateway_api(server)
        classes = [one for one in cluster_objects(TERMS) if one["kind"] == "GatewayClass"]
        create_all(server, classes)
        sets = store_sets(server, draw_sets("gateway", SETS, seed=SEED, terms=TERMS, make=make))
        own = next(one for one in classes if one["metadata"]["name"] == CLASS)
        tables = translate(tmp_path, server, own, sets)
        for gateway in (one for objects in sets for one in of_kind(objects, "Gateway")):
            if gateway["spec"]["gatewayClassName"] == CLASS:
                # As the controller does in a cluster.
                gateway_api.accept(server, f"{collection_of(gateway)}/{gateway['metadata']['name']}")
        claimed = Claimed(gateway=GatewayOptions(classes=frozenset({CLASS})))
        claimed.read(server)

    def serve(objects: ObjectSet, name: str) -> bool:
        return any(one.serves(name) for key, one in tables.items() if key.partition("/")[0] in objects.namespaces)

    expect_explained(find_differences(sets, claims=claimed.claims, serves=serve), REASONS)

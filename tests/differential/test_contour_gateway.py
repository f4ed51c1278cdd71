"""The hostnames of the Gateway API that real Contours give their Envoys, beside those that Switchback claims.

A Contour serves one Gateway, so there is one for each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final

import pytest

from dnsproxy.sources.settings import GatewayOptions
from tests.differential.certificates import secret
from tests.differential.claimed import Claimed
from tests.differential.contour_gateway import REASONS
from tests.differential.contour_serve import CLASS, GATEWAY_CONTROLLER, PORTS, read_contour, running_contour
from tests.differential.differences import Difference, expect_explained, find_differences, of_kind
from tests.differential.envoy_tables import EnvoyTables
from tests.differential.gateway_sets import Choices, make_gateway_objects
from tests.differential.sets import SEED, Manifest, ObjectSet, Terms, cluster_objects, draw_sets
from tests.differential.stored import collection_of, create_all, install_definitions, install_gateway_api, store_sets
from tests.kit import gateway_api
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.ports import free_ports
from tests.kit.programs import program

pytestmark = [
    pytest.mark.peer("etcd", "kube-apiserver", "gateway-api", "contour", "contour-crds"),
    pytest.mark.skipif(
        "CONTOUR_GATEWAYS" not in os.environ,
        reason="no set of the usual seed needs one of the explanations, so its test fails: CONTOUR_GATEWAYS=1 compares",
    ),
]

SHARES: Final = 4
SETS: Final = 50
"""Of each share: a test of all of them would take a minute and a half, and longer beside other tests."""
AT_ONCE: Final = 2
TERMS: Final = Terms(gateway_class=CLASS, gateway_controller=GATEWAY_CONTROLLER, secret=secret(), http=8080, https=8443)
MAKE: Final = partial(make_gateway_objects, choices=Choices())


class Share:
    """Some sets, and the Contours that read them, each with ports that no other has."""

    def __init__(self, folder: Path, server: ApiServer, sets: Sequence[ObjectSet]) -> None:
        self._folder = folder
        self._server = server
        self._sets = sets
        self._ports: SimpleQueue[list[int]] = SimpleQueue()

    @cached_property
    def differences(self) -> list[Difference]:
        """Between the claims and what the Contours serve; they are started at the first question."""
        for _ in range(AT_ONCE):
            self._ports.put(free_ports(PORTS))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            tables = dict(zip((one.number for one in self._sets), pool.map(self._read_set, self._sets), strict=True))
        claimed = Claimed(gateway=GatewayOptions(classes=frozenset({CLASS})))
        claimed.read(self._server)

        def serve(objects: ObjectSet, name: str) -> bool:
            return any(one.serves(name) for one in tables[objects.number])

        return list(find_differences(self._sets, claims=claimed.claims, serves=serve))

    def _read_set(self, objects: ObjectSet) -> list[EnvoyTables]:
        gateways = (one for one in of_kind(objects, "Gateway") if one["spec"]["gatewayClassName"] == CLASS)
        return [self._read(objects, one) for one in gateways]

    def _read(self, objects: ObjectSet, gateway: Manifest) -> EnvoyTables:
        name, namespace = gateway["metadata"]["name"], gateway["metadata"]["namespace"]
        folder = self._folder / f"{namespace}-{name}"
        folder.mkdir()
        config = {"gateway": {"gatewayRef": {"namespace": namespace, "name": name}}}
        # For Contour, a reference without a namespace means a Gateway of any, so it must not see those of other sets.
        flag = f"--watch-namespaces={','.join(objects.namespaces)}"
        ports = self._ports.get()
        try:
            with running_contour(folder, self._server.kubeconfig, flag, ports=ports, config=config) as port:
                tables = read_contour(port)
        finally:
            self._ports.put(ports)
        # Contour does so, too, but not before its end here.
        gateway_api.accept(self._server, f"{collection_of(gateway)}/{name}")
        return tables


@pytest.fixture(scope="module")
def shares(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Share]]:
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as server:
        install_definitions(server, [Path(program("contour-crds")) / "01-crds.yaml"], served=())
        install_gateway_api(server)
        create_all(server, [one for one in cluster_objects(TERMS) if one["kind"] == "GatewayClass"])
        sets = store_sets(server, draw_sets("gateway", SHARES * SETS, seed=SEED, terms=TERMS, make=MAKE))
        folder = tmp_path_factory.mktemp("contour")
        yield [Share(folder, server, sets[number::SHARES]) for number in range(SHARES)]


@pytest.mark.parametrize("number", range(SHARES))
def test_the_hosts_that_contours_serve_are_those_that_are_claimed(shares: list[Share], number: int) -> None:
    expect_explained(shares[number].differences, REASONS, all_sets=False)


def test_each_reason_is_needed(shares: list[Share]) -> None:
    expect_explained((one for share in shares for one in share.differences), REASONS)

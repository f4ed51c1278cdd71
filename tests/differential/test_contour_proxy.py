"""The hosts of HTTPProxies that a real Contour gives its Envoy, beside those that Switchback claims by their status."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.sources.described import table
from dnsproxy.sources.described.source import DescribedSource
from dnsproxy.sources.ingress import INGRESS_CLASSES
from tests.differential.certificates import secret
from tests.differential.claimed import Claimed, listed
from tests.differential.contour_proxy import REASONS, is_read
from tests.differential.contour_proxy_sets import make_proxies
from tests.differential.contour_serve import CLASS, INGRESS_CONTROLLER, PORTS, read_contour, running_contour
from tests.differential.differences import expect_explained, find_differences, find_object
from tests.differential.sets import SEED, ObjectSet, Terms, cluster_objects, draw_sets
from tests.differential.stored import create_all, install_definitions, store_sets
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.polling import poll_until
from tests.kit.ports import free_ports
from tests.kit.programs import program

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "contour", "contour-crds")

SETS: Final = 200
TERMS: Final = Terms(ingress_class=CLASS, ingress_controller=INGRESS_CONTROLLER, secret=secret())
PROXIES: Final = "/apis/projectcontour.io/v1/httpproxies"
SECONDS: Final = 60


def test_the_hosts_that_contour_serves_are_those_that_are_claimed(tmp_path: Path) -> None:
    with running_apiserver(tmp_path) as server:
        install_definitions(server, [Path(program("contour-crds")) / "01-crds.yaml"], served=[PROXIES])
        create_all(server, [one for one in cluster_objects(TERMS) if one["kind"] == "IngressClass"])
        sets = store_sets(server, draw_sets("proxy", SETS, seed=SEED, terms=TERMS, make=make_proxies))
        flag = f"--ingress-class-name={CLASS}"
        with running_contour(tmp_path, server.kubeconfig, flag, ports=free_ports(PORTS), config={}) as port:
            tables = read_contour(port)
            poll_until(lambda: are_judged(server, sets), "Contour has judged every HTTPProxy", seconds=SECONDS)
        claimed = claim_proxies(server)
    expect_explained(find_differences(sets, claims=claimed.claims, serves=tables.serve), REASONS)


def claim_proxies(server: ApiServer) -> Claimed:
    claimed = Claimed()
    kinds = table.kinds_of(table.CONTOUR)
    source = DescribedSource(claimed.registry.store, kinds, classes=frozenset({CLASS}))
    source.change(INGRESS_CLASSES.kind, listed(server, INGRESS_CLASSES))
    for kind in kinds:
        source.change(kind.name, listed(server, kind.watched.collection("v1")))
    return claimed


def are_judged(server: ApiServer, sets: Sequence[ObjectSet]) -> bool:
    """Whether no HTTPProxy that Contour reads has the status of its creation."""
    waiting = [
        one["metadata"]
        for one in server.request("GET", PROXIES)["items"]
        if one["status"]["currentStatus"] == "NotReconciled"
    ]
    ours = {namespace: one for one in sets for namespace in one.namespaces}
    found = (find_object(ours[one["namespace"]], "HTTPProxy", one["namespace"], one["name"]) for one in waiting)
    return not any(proxy is not None and is_read(proxy) for proxy in found)

"""The hosts of Ingresses that a real Contour gives its Envoy, beside those that Switchback claims."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.sources.ingress_hosts import TlsHosts
from dnsproxy.sources.settings import IngressOptions
from tests.differential.certificates import secret
from tests.differential.claimed import Claimed
from tests.differential.contour_ingress import REASONS, name_second_class, refuse_http
from tests.differential.contour_serve import CLASS, INGRESS_CONTROLLER, PORTS, read_contour, running_contour
from tests.differential.differences import expect_explained, find_differences
from tests.differential.ingress_sets import make_ingresses
from tests.differential.sets import SEED, Draw, Manifest, Terms, cluster_objects, draw_sets
from tests.differential.stored import create_all, install_definitions, store_sets
from tests.kit.apiserver import running_apiserver
from tests.kit.ports import free_ports
from tests.kit.programs import program

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "contour", "contour-crds")

SETS: Final = 200
TERMS: Final = Terms(ingress_class=CLASS, ingress_controller=INGRESS_CONTROLLER, secret=secret())


def test_the_hosts_that_contour_serves_are_those_that_are_claimed(tmp_path: Path) -> None:
    with running_apiserver(tmp_path) as server:
        install_definitions(server, [Path(program("contour-crds")) / "01-crds.yaml"], served=())
        create_all(server, [one for one in cluster_objects(TERMS) if one["kind"] == "IngressClass"])
        sets = store_sets(server, draw_sets("ingress", SETS, seed=SEED, terms=TERMS, make=make))
        name_second_class(server, sets)
        claimed = Claimed(ingress=IngressOptions(classes=frozenset({CLASS}), tls_hosts=TlsHosts.ALL))
        claimed.read(server)
        by_default = Claimed(ingress=IngressOptions(classes=frozenset({CLASS})))
        by_default.read(server)
        flag = f"--ingress-class-name={CLASS}"
        with running_contour(tmp_path, server.kubeconfig, flag, ports=free_ports(PORTS), config={}) as port:
            tables = read_contour(port)
    differences = list(find_differences(sets, claims=claimed.claims, serves=tables.serve))
    expect_explained(differences, REASONS)
    fewer = find_differences(sets, claims=by_default.claims, serves=tables.serve)
    # Contour serves no host of a TLS section that is not claimed by default.
    assert {(one.objects.number, one.name) for one in fewer} < {(one.objects.number, one.name) for one in differences}


def make(draw: Draw) -> Iterator[Manifest]:
    return refuse_http(draw, make_ingresses(draw))

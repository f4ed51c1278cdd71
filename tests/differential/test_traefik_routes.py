"""The hosts of IngressRoutes and IngressRouteTCPs that a real Traefik routes, beside those that Switchback claims."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.sources.settings import SourceOptions
from tests.differential.answered import expect_answers
from tests.differential.certificates import secret
from tests.differential.claimed import Claimed
from tests.differential.differences import Reasons, expect_explained, find_differences
from tests.differential.sets import SEED, Terms, cluster_objects, draw_sets
from tests.differential.stored import create_all, install_definitions, store_sets
from tests.differential.traefik import (
    INGRESS_CLASS,
    INGRESS_CONTROLLER,
    NEEDS_TRAEFIK,
    World,
    read_world,
)
from tests.differential.traefik_route_sets import make_ingress_route_tcps, make_ingress_routes
from tests.differential.traefik_routes import FILTERED, UNFILTERED
from tests.differential.universe import probes
from tests.kit.apiserver import running_apiserver
from tests.kit.programs import program

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "traefik-crds"), NEEDS_TRAEFIK]

SETS: Final = 200
"""Of each kind."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    terms = Terms(ingress_class=INGRESS_CLASS, ingress_controller=INGRESS_CONTROLLER, secret=secret())
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as server:
        definitions = Path(program("traefik-crds")) / "kubernetes-crd-definition-v1.yml"
        served = [f"/apis/traefik.io/v1alpha1/{resource}" for resource in ("ingressroutes", "ingressroutetcps")]
        install_definitions(server, [definitions], served=served)
        create_all(server, [one for one in cluster_objects(terms) if one["kind"] == "IngressClass"])
        drawn = [
            *draw_sets("route", SETS, seed=SEED, terms=terms, make=make_ingress_routes),
            *draw_sets("tcp", SETS, seed=SEED, terms=terms, make=make_ingress_route_tcps),
        ]
        sets = store_sets(server, drawn)
        flags = ("--providers.kubernetescrd=true", "--providers.kubernetescrd.allowemptyservices=true")
        with read_world(tmp_path_factory.mktemp("traefik"), server, sets, *flags) as found:
            yield found


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        pytest.param(SourceOptions("traefik"), UNFILTERED, id="without a filter"),
        pytest.param(SourceOptions("traefik", frozenset({INGRESS_CLASS})), FILTERED, id="with --class-of"),
    ],
)
def test_the_hosts_that_traefik_routes_are_those_that_are_claimed(
    world: World, options: SourceOptions, reasons: Reasons
) -> None:
    claimed = Claimed(others=(options,))
    claimed.read(world.server)
    expect_explained(find_differences(world.sets, claims=claimed.claims, serves=world.routers.serve), reasons)


def test_a_running_server_answers_the_hosts_that_are_claimed(world: World, tmp_path: Path) -> None:
    claimed = Claimed(others=(SourceOptions("traefik"),))
    claimed.read(world.server)
    expect_answers(world.server, tmp_path, world.sets, claimed, ("--source", "traefik"))


def test_traefik_answers_the_hosts_that_it_says_to_route(world: World) -> None:
    """The second judge: requests to its entry points, for a third of the sets."""
    for one in world.sets[::3]:
        names = probes(one.zone)
        routed = {name for name in names if world.routers.serve(one, name)}
        by_tls = any("tls" in item["spec"] for item in one.subjects)
        answered = world.traefik.answering_by_tls(names) if by_tls else set()
        assert answered | world.traefik.answering(names) == routed, one

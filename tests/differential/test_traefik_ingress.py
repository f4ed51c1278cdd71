"""The hosts of Ingresses that a real Traefik routes, beside those that Switchback claims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.sources.ingress_hosts import TlsHosts
from dnsproxy.sources.settings import IngressOptions
from tests.differential.answered import expect_answers
from tests.differential.certificates import secret
from tests.differential.claimed import Claimed
from tests.differential.differences import Reasons, expect_explained, find_differences
from tests.differential.ingress_sets import make_ingresses
from tests.differential.sets import SEED, Terms, cluster_objects, draw_sets
from tests.differential.stored import create_all, store_sets
from tests.differential.traefik import (
    INGRESS_CLASS,
    INGRESS_CONTROLLER,
    NEEDS_TRAEFIK,
    World,
    read_world,
)
from tests.differential.traefik_ingress import FILTERED, UNFILTERED
from tests.differential.universe import probes
from tests.kit.apiserver import running_apiserver

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver"), NEEDS_TRAEFIK]

SETS: Final = 200
OF_CLASS: Final = IngressOptions(frozenset({INGRESS_CLASS}), tls_hosts=TlsHosts.ALL)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    terms = Terms(ingress_class=INGRESS_CLASS, ingress_controller=INGRESS_CONTROLLER, secret=secret())
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as server:
        create_all(server, [one for one in cluster_objects(terms) if one["kind"] == "IngressClass"])
        make = partial(make_ingresses, hostless=False)
        sets = store_sets(server, draw_sets("ingress", SETS, seed=SEED, terms=terms, make=make))
        flags = ("--providers.kubernetesingress=true", "--providers.kubernetesingress.allowemptyservices=true")
        with read_world(tmp_path_factory.mktemp("traefik"), server, sets, *flags) as found:
            yield found


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        pytest.param(IngressOptions(tls_hosts=TlsHosts.ALL), UNFILTERED, id="without a filter"),
        pytest.param(OF_CLASS, FILTERED, id="with --ingress-class"),
    ],
)
def test_the_hosts_that_traefik_routes_are_those_that_are_claimed(
    world: World, options: IngressOptions, reasons: Reasons
) -> None:
    claimed = Claimed(ingress=options)
    claimed.read(world.server)
    differences = find_differences(world.sets, claims=claimed.claims, serves=world.routers.serve)
    expect_explained(differences, reasons)


def test_traefik_routes_no_host_of_tls_that_is_not_claimed_by_default(world: World) -> None:
    """All differences are claims to more than Traefik routes, and by default there are fewer of them."""
    by_default = Claimed(ingress=replace(OF_CLASS, tls_hosts=TlsHosts.RULES))
    everything = Claimed(ingress=OF_CLASS)
    found = []
    for claimed in (by_default, everything):
        claimed.read(world.server)
        differences = find_differences(world.sets, claims=claimed.claims, serves=world.routers.serve)
        found.append({(one.objects.number, one.name) for one in differences})
    assert found[0] < found[1]


def test_a_running_server_answers_the_hosts_that_are_claimed(world: World, tmp_path: Path) -> None:
    claimed = Claimed(ingress=IngressOptions(frozenset({INGRESS_CLASS})))
    claimed.read(world.server)
    flags = ("--source", "ingress", "--ingress-class", INGRESS_CLASS)
    expect_answers(world.server, tmp_path, world.sets, claimed, flags)


def test_traefik_answers_the_hosts_that_it_says_to_route(world: World) -> None:
    """The second judge: requests to its entry point."""
    for one in world.sets:
        routed = {name for name in probes(one.zone) if world.routers.serve(one, name)}
        assert world.traefik.answering(probes(one.zone)) == routed, one

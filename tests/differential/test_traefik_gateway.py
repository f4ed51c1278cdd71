"""The hosts of Gateways and routes that a real Traefik routes, beside those that Switchback claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.sources.settings import GatewayOptions
from tests.differential.answered import expect_answers
from tests.differential.certificates import secret
from tests.differential.claimed import Claimed
from tests.differential.differences import expect_explained, find_differences
from tests.differential.gateway_sets import GROUP, Choices, make_gateway_objects
from tests.differential.rules import REQUESTS
from tests.differential.sets import FOREIGN, SEED, Manifest, ObjectSet, Terms, cluster_objects, draw_sets, manifest
from tests.differential.stored import create_all, install_gateway_api, store_sets
from tests.differential.traefik import (
    GATEWAY_CONTROLLER,
    NEEDS_TRAEFIK,
    Routers,
    Traefik,
    choose_ports,
    running_traefik,
)
from tests.differential.traefik_gateway import REASONS
from tests.differential.universe import probes
from tests.kit.apiserver import ApiServer, running_apiserver

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "gateway-api"), NEEDS_TRAEFIK]

SETS: Final = 52
"""Of each share."""
SHARES: Final = ("a", "b", "c", "d")
"""One Traefik with a GatewayClass of its own for each: one writes no more than five statuses a second."""
EXACT: Final = SHARES[:2]
"""The shares without routes for every name, which would answer the names of all sets."""


@dataclass(frozen=True)
class Share:
    """Some sets, and the controller that has read them."""

    sets: Sequence[ObjectSet]
    traefik: Traefik
    routers: Routers


@dataclass(frozen=True)
class World:
    server: ApiServer
    shares: Sequence[Share]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as server, ExitStack() as stack:
        install_gateway_api(server)
        create_all(server, [one for one in cluster_objects(Terms()) if one["metadata"]["name"] == FOREIGN])
        started = []
        for name in SHARES:
            ports = choose_ports()
            terms = Terms(gateway_class=f"traefik-{name}", http=ports.http, https=ports.https, secret=secret())
            create_all(server, [_class(name, terms)])
            make = partial(make_gateway_objects, choices=Choices(every_name=name not in EXACT))
            sets = store_sets(server, draw_sets(f"gateway{name}", SETS, seed=SEED, terms=terms, make=make))
            flags = (
                "--providers.kubernetesgateway=true",
                "--providers.kubernetesgateway.experimentalchannel=true",
                f"--providers.kubernetesgateway.labelselector=share={name}",
            )
            traefik = stack.enter_context(running_traefik(tmp_path_factory.mktemp("traefik"), server, ports, *flags))
            started.append((sets, traefik))
        yield World(server, [Share(sets, traefik, traefik.first_routers()) for sets, traefik in started])


def _class(share: str, terms: Terms) -> Manifest:
    spec = {"controllerName": GATEWAY_CONTROLLER}
    return manifest(f"{GROUP}/v1", "GatewayClass", terms.gateway_class, spec=spec, labels={"share": share})


@pytest.fixture(scope="module")
def claimed(world: World) -> Claimed:
    found = Claimed(gateway=GatewayOptions())
    found.read(world.server)
    return found


def test_the_hosts_that_traefik_routes_are_those_that_are_claimed(world: World, claimed: Claimed) -> None:
    differences = (
        one
        for share in world.shares
        for one in find_differences(share.sets, claims=claimed.claims, serves=share.routers.serve)
    )
    expect_explained(differences, REASONS)


def test_a_running_server_answers_the_hosts_that_are_claimed(world: World, claimed: Claimed, tmp_path: Path) -> None:
    sets = [one for share in world.shares for one in share.sets]
    expect_answers(world.server, tmp_path, sets, claimed, ("--source", "gateway"))


def test_traefik_answers_the_hosts_that_it_says_to_route(world: World) -> None:
    """The second judge: requests to its entry points."""
    for name, share in zip(SHARES, world.shares, strict=True):
        for one in share.sets if name in EXACT else ():
            names = probes(one.zone)
            routed = {name for name in names if share.routers.serve(one, name)}
            answered = share.traefik.answering(names, REQUESTS[:1]) | share.traefik.answering_by_tls(
                names, REQUESTS[:1]
            )
            assert answered == routed, one

"""What is followed for each value of `--source`."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Final

import pytest

from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.sources.gateway.kinds import SOURCES as GATEWAY_KINDS
from dnsproxy.sources.ingress import INGRESS_CLASSES, INGRESSES
from dnsproxy.sources.names import OTHERS
from dnsproxy.sources.rights_follower import NAMESPACES
from dnsproxy.sources.service_source import SERVICES
from dnsproxy.sources.settings import GatewayOptions, SourceOptions
from dnsproxy.sources.source_plans import claiming_kinds, plan_gateway, plan_other

NAMES: Final = (*OTHERS, "crd:sites.example.org:spec.host", "crd:shops.example.org:spec.host")


@pytest.mark.parametrize("name", NAMES)
def test_a_source_follows_the_kinds_that_it_claims_for(name: str) -> None:
    plan = plan_other(ClaimStore(), SourceOptions(name), most=5)
    followed = {kind.kind for kind in plan.kinds}
    assert claiming_kinds(name)
    assert followed >= set(claiming_kinds(name))
    assert {kind.kind for kind in plan.kinds if kind.names_hosts} == set(claiming_kinds(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_source_takes_every_kind_that_is_followed_for_it(name: str) -> None:
    """None of them is an object that is gone."""
    plan = plan_other(ClaimStore(), SourceOptions(name), most=5)
    for kind in (*(one.kind for one in plan.kinds), *(one.kind for one in plan.beside)):
        plan.source.change(kind, {"web/shop": None})
    while not plan.source.is_settled:
        plan.source.settle(1)


def test_no_two_sources_share_a_kind_in_the_claim_store() -> None:
    kinds = [("Ingress",), ("Service",), GATEWAY_KINDS, *map(claiming_kinds, NAMES)]
    for one, other in combinations(kinds, 2):
        assert not set(one) & set(other)
    assert len(set(chain(*kinds))) == len(list(chain(*kinds)))


def test_no_two_watches_have_one_name() -> None:
    """It is the label of their metrics: two samples with the same labels make an invalid page."""
    plans = [plan_gateway(ClaimStore(), GatewayOptions())]
    plans += [plan_other(ClaimStore(), SourceOptions(name), most=5) for name in NAMES]
    names = [kind.kind for plan in plans for kind in plan.kinds]
    names += [collection.kind for plan in plans for collection in plan.beside]
    names += [INGRESSES.kind, INGRESS_CLASSES.kind, SERVICES.kind, NAMESPACES.kind]
    assert len(names) == len(set(names))


def test_the_gateway_api_follows_the_kinds_that_it_claims_for() -> None:
    plan = plan_gateway(ClaimStore(), GatewayOptions())
    assert {kind.kind for kind in plan.kinds} == set(GATEWAY_KINDS)

"""Claimed zones: what counts, what does not, and that additions and counts agree."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeVar

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames import claimed_zones, outcomes
from dnsproxy.hostnames.claimed_zones import ClaimedZones
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets

TARGETS: Final = Targets(default=("192.0.2.1",), by_class={"empty": ()})
GUARDS: Final = Guards(deny=("denied.example.net",), search=("corp.example.com",))

Result = TypeVar("Result")


def finish(steps: Generator[None, None, Result]) -> Result:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: Result = done.value
            return result


def claim(hostname: str, *, ingress_class: str | None = None, addresses: tuple[str, ...] = ()) -> Claim:
    origin = Origin("hosts file", "names") if addresses else Origin("Ingress", hostname, "shop", "2026-01-01T00:00:00Z")
    reach = Reach.ONE_LABEL if hostname.startswith("*.") else Reach.NAME
    return Claim(hostname, reach, origin, Terms(addresses, ingress_class))


def registry_of(*claims: Claim) -> Registry:
    registry = Registry(targets=TARGETS, guards=GUARDS)
    for one in claims:
        registry.replace("ingress", one.hostname, [one])
    settle(registry)
    return registry


def settle(registry: Registry) -> None:
    for _ in registry.changes():
        pass


@pytest.mark.parametrize(
    ("made", "zones"),
    [
        pytest.param(claim("app.example.org"), ("example.org",), id="answered"),
        pytest.param(claim("app.example.org", ingress_class="empty"), ("example.org",), id="without an address"),
        pytest.param(claim("*.apps.example.org"), ("example.org",), id="a wildcard"),
        pytest.param(claim("shop.example.co.uk"), ("example.co.uk",), id="below a public suffix"),
        pytest.param(claim("nas.home.arpa", addresses=("192.0.2.9",)), ("nas.home.arpa",), id="static"),
        pytest.param(claim("denied.example.net"), (), id="denied"),
        pytest.param(claim("github.com.corp.example.com"), (), id="in a search domain"),
        pytest.param(claim("web.default.svc.cluster.local"), (), id="in the cluster domain"),
        pytest.param(claim("*.github.io"), (), id="a public suffix"),
        pytest.param(claim("nas.home.arpa"), (), id="an object in home.arpa"),
        pytest.param(claim("denied.example.net", ingress_class="empty"), (), id="denied and without an address"),
    ],
)
def test_a_zone_is_wanted_while_a_claim_in_it_is_allowed(made: Claim, zones: tuple[str, ...]) -> None:
    counted = ClaimedZones(registry_of(made))
    finish(counted.count())
    assert counted.zones() == zones
    registry = registry_of()
    added = ClaimedZones(registry)
    finish(added.count())
    registry.replace("ingress", made.hostname, [made])
    settle(registry)
    assert finish(added.add_fresh())
    assert added.zones() == zones


def test_a_zone_stays_when_its_target_loses_its_address() -> None:
    registry = Registry(targets=Targets(default=("service:switchback/relay",)), guards=GUARDS)
    claimed = ClaimedZones(registry)
    registry.set_services({"switchback/relay": ("192.0.2.1",)})
    registry.replace("ingress", "app", [claim("app.example.org")])
    for addresses in (("192.0.2.1",), (), ("192.0.2.2",)):
        registry.set_services({"switchback/relay": addresses})
        settle(registry)
        finish(claimed.count())
        assert claimed.zones() == ("example.org",)


def test_a_zone_that_vanished_leaves_with_the_next_count_only() -> None:
    registry = registry_of(claim("app.example.org"), claim("b.example.net"))
    claimed = ClaimedZones(registry)
    finish(claimed.count())
    registry.replace("ingress", "app.example.org", [])
    settle(registry)
    assert finish(claimed.add_fresh())
    assert claimed.zones() == ("example.net", "example.org")
    finish(claimed.count())
    assert claimed.zones() == ("example.net",)


def test_a_name_that_comes_during_a_count_is_in_the_next_addition() -> None:
    registry = registry_of(claim("a.example.org"), claim("b.example.net"))
    claimed = ClaimedZones(registry)
    steps = claimed.count()
    next(steps)
    registry.replace("ingress", "c", [claim("c.example.com")])
    settle(registry)
    finish(steps)
    assert finish(claimed.add_fresh())
    assert claimed.zones() == ("example.com", "example.net", "example.org")


def test_more_fresh_names_than_are_remembered_ask_for_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "MOST_FRESH", 2)
    registry = registry_of()
    claimed = ClaimedZones(registry)
    finish(claimed.count())
    for name in "abc":
        registry.replace("ingress", name, [claim(f"{name}.example.org")])
    settle(registry)
    assert not finish(claimed.add_fresh())
    finish(claimed.count())
    assert claimed.zones() == ("example.org",)
    assert finish(claimed.add_fresh())


def test_zones_are_bounded_and_those_beyond_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claimed_zones, "MOST", 2)
    claimed = ClaimedZones(registry_of(*(claim(f"app.example{number}.org") for number in range(5))))
    finish(claimed.count())
    assert len(claimed.zones()) == 2
    assert claimed.left_out == 3

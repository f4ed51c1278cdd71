"""A target without a ready endpoint: its names are forwarded, and nobody else gets them meanwhile."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace
from trio.testing import MockClock

from dnsproxy.answers.table import HostTable
from dnsproxy.dns.names import Reach, is_wildcard
from dnsproxy.hostnames.claims import Claim, Origin, Terms, with_terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.holds import Holds
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import Verdict, judge
from tests.kit.messages import addresses_of

OLD, NEW = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"
SERVICES = {"switchback/relay": ("10.96.0.1",), "edge/inner": ("10.96.0.2",)}
READY = Targets(("service:switchback/relay",), {"inner": ("service:edge/inner",)}, SERVICES)
DOWN = dataclasses.replace(READY, unready=frozenset(["switchback/relay"]))
WHY = "no endpoint of its target is ready (service:switchback/relay)"


def claim(
    name: str, *, namespace: str = "shop", created: str = OLD, inner: bool = False, hostname: str = "app.example.org"
) -> Claim:
    origin = Origin("Ingress", name, namespace, created)
    reach = Reach.ONE_LABEL if is_wildcard(hostname) else Reach.NAME
    return Claim(hostname, reach, origin, Terms(ingress_class="inner" if inner else None))


MINE = claim("mine")


def judged(*claims: Claim, targets: Targets = DOWN) -> Verdict:
    found = judge(claims, targets=targets, guards=Guards())
    assert found == judge(claims[::-1], targets=targets, guards=Guards())
    return found


def test_its_name_is_forwarded_and_the_reason_is_given() -> None:
    assert judged(MINE, targets=READY).winner == MINE
    found = judged(MINE)
    assert (found.winner, found.unready, found.owner, found.waits) == (None, MINE, MINE, True)
    assert [one.reason for one in found.excluded] == [WHY]


@pytest.mark.parametrize(
    "unaffected",
    [
        pytest.param(with_terms(MINE, target="10.96.0.1"), id="the same address, chosen as such"),
        pytest.param(with_terms(MINE, target="status", status=("192.0.2.1",)), id="its status"),
        pytest.param(with_terms(MINE, addresses=("10.96.0.1",)), id="a static name"),
        pytest.param(claim("mine", inner=True), id="another Service"),
    ],
)
def test_other_targets_are_not_affected(unaffected: Claim) -> None:
    assert judged(unaffected) == judged(unaffected, targets=READY)


def test_another_claim_of_its_namespace_stands_in() -> None:
    """As while a host moves from one controller to another."""
    other = claim("other", inner=True, created=NEW)
    found = judged(MINE, other)
    assert (found.winner, found.addresses, found.unready) == (other, ("10.96.0.2",), None)
    assert [one.reason for one in found.excluded] == [WHY]


@pytest.mark.parametrize("inner", [True, False], ids=["with a target that is ready", "with the same target"])
def test_a_claim_of_another_namespace_does_not(inner: bool) -> None:
    theirs = claim("theirs", namespace="other", created=NEW, inner=inner)
    found = judged(MINE, theirs)
    assert (found.winner, found.unready, found.rival, found.waits) == (None, MINE, None, True)
    assert [(one.claim, one.reason) for one in found.excluded] == [(MINE, WHY), (theirs, "Ingress shop/mine has it")]


def test_it_does_not_even_when_the_target_is_away_for_longer_than_a_name_is_held() -> None:
    registry = Registry(targets=READY, guards=Guards(), holds=Holds(600))
    registry.holds.begin()
    registry.replace("Ingress", "shop/mine", [MINE])
    assert [host.addresses for host in registry.changes(0)] == [("10.96.0.1",)]
    registry.set_services(SERVICES, unready=frozenset(["switchback/relay"]))
    registry.replace("Ingress", "other/theirs", [claim("theirs", namespace="other", created=NEW, inner=True)])
    for now in (1, 500, 700, 2000):
        registry.touch(["app.example.org"])
        assert {(host.addresses, host.service) for host in registry.changes(now)} == {
            (("10.96.0.1",), "switchback/relay")
        }
    assert registry.holds.contested == 0
    registry.set_services(SERVICES)
    list(registry.changes(2001))
    assert registry.verdict("app.example.org", Reach.NAME).winner == MINE


def test_an_older_claim_of_another_namespace_waits_as_it_does_for_a_ready_one() -> None:
    registry = Registry(targets=READY, guards=Guards(), holds=Holds(600))
    registry.holds.begin()
    registry.replace("Ingress", "shop/mine", [replace(MINE, origin=Origin("Ingress", "mine", "shop", NEW))])
    list(registry.changes(0))
    registry.set_services(SERVICES, unready=frozenset(["switchback/relay"]))
    theirs = claim("theirs", namespace="other", inner=True)
    registry.replace("Ingress", "other/theirs", [theirs])
    list(registry.changes(1))
    found = registry.verdict("app.example.org", Reach.NAME)
    assert (found.winner, found.rival) == (None, theirs.origin)
    list(registry.changes(700))
    assert registry.verdict("app.example.org", Reach.NAME).winner == theirs


async def test_the_table_forwards_all_at_once_and_answers_all_again(autojump_clock: MockClock) -> None:
    tables: list[HostTable] = []
    registry = Registry(targets=READY, guards=Guards())
    keeper = TableKeeper(registry, ttl=5, publish=tables.append, sources=[])
    names = [f"h{number}.example.org" for number in range(300)]
    registry.replace("Ingress", "shop/mine", [claim("mine", hostname=name) for name in [*names, "*.example.net"]])
    registry.replace("Ingress", "shop/inner", [claim("i", hostname="inner.example.org", inner=True)])
    await keeper.swap()
    for _ in range(2):
        registry.set_services(SERVICES, unready=frozenset(["switchback/relay"]))
        keeper.forward(registry.targets.unready)
        assert (keeper.names, len(tables[-1])) == (1, 1)
        assert addresses_of(tables[-1], "inner.example.org") == ("10.96.0.2",)
        await keeper.swap()
        assert keeper.names == 1
        assert registry.outcomes.waiting == 301
        assert not any(addresses_of(tables[-1], name) for name in (*names, "x.example.net"))
        registry.set_services(SERVICES)
        keeper.forward(registry.targets.unready)
        assert keeper.names == 302
        assert all(addresses_of(tables[-1], name) == ("10.96.0.1",) for name in (*names, "x.example.net"))
        await keeper.swap()
        assert (keeper.names, registry.outcomes.waiting) == (302, 0)
    count = len(tables)
    keeper.forward(frozenset())
    assert len(tables) == count

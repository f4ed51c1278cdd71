"""Enforced ownership fails closed: a name needs a look, a record that can be compared, and a domain that leads here."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.ownership import Mode
from dnsproxy.hostnames.ownership_schedule import DEFAULT_PACE
from tests.dnsproxy.serve.test_ownership_watch import (
    APP,
    BALANCER,
    CONFIRMED,
    ELSEWHERE,
    NXDOMAIN,
    RELAY,
    SERVFAIL,
    Watched,
    claim,
    passes,
    watching,
)


@asynccontextmanager
async def enforcing(
    records: Mapping[str, Sequence[str] | int | None], *claims: Claim, **settings: Any
) -> AsyncIterator[Watched]:
    async with watching(records, *claims, mode=Mode.ENFORCE, **settings) as watched:
        yield watched


def reason(watched: Watched, hostname: str = APP) -> str:
    reach = Reach.ONE_LABEL if hostname.startswith("*.") else Reach.NAME
    return watched.registry.verdict(hostname, reach).excluded[0].reason


async def test_a_name_is_not_answered_before_its_lookup(autojump_clock: MockClock) -> None:
    async with enforcing({APP: [BALANCER]}, claim(APP, "app", BALANCER)) as watched:
        assert (watched.answer(), reason(watched)) == (
            (),
            "its public record was not looked up yet, --ownership enforce",
        )
        await passes(1)
        assert (watched.answer(), watched.watch.new) == ((RELAY,), 0)


@pytest.mark.parametrize("trouble", [SERVFAIL, None], ids=["SERVFAIL", "silence"])
async def test_without_an_answer_a_name_waits_and_is_looked_up_again_soon(
    trouble: Any, autojump_clock: MockClock
) -> None:
    async with enforcing({APP: trouble}, claim(APP, "app", BALANCER)) as watched:
        await passes(CONFIRMED)
        assert watched.answer() == ()
        watched.dns.records[APP] = [BALANCER]
        await passes(CONFIRMED + DEFAULT_PACE.timeout)
        assert watched.answer() == (RELAY,)


@pytest.mark.parametrize(
    ("one", "record", "answered"),
    [
        pytest.param(claim(APP, "app", BALANCER), [BALANCER], True, id="it leads here"),
        pytest.param(claim(APP, "app", BALANCER), [ELSEWHERE], False, id="it leads elsewhere"),
        pytest.param(claim(APP, "app"), [ELSEWHERE], False, id="no status"),
        pytest.param(claim(APP, "app", ingress_class="nosuchclass"), [ELSEWHERE], False, id="a class of nobody"),
        pytest.param(claim(APP, "app", "10.0.0.5"), [ELSEWHERE], False, id="behind NAT"),
        pytest.param(claim(APP, "app", BALANCER), ["2001:db8::9"], False, id="another family"),
        pytest.param(claim(APP, "app", "lb.example.net"), [ELSEWHERE], False, id="a balancer without an answer"),
        pytest.param(claim(APP, "app", BALANCER), NXDOMAIN, True, id="no record"),
        pytest.param(claim(APP, "app"), [], True, id="no record and no status"),
    ],
)
async def test_a_record_that_exists_must_lead_here(
    one: Claim, record: Any, answered: bool, autojump_clock: MockClock
) -> None:
    async with enforcing({APP: record, "lb.example.net": NXDOMAIN}, one) as watched:
        await passes(CONFIRMED)
        assert (watched.answer() == (RELAY,)) is answered


async def test_a_record_that_cannot_be_compared_can_be_trusted(autojump_clock: MockClock) -> None:
    networks = (ip_network("198.51.100.0/24"),)
    async with enforcing({APP: [ELSEWHERE]}, claim(APP, "app", "10.0.0.5"), networks=networks) as watched:
        await passes(1)
        assert watched.answer() == (RELAY,)
    async with enforcing({APP: [ELSEWHERE]}, claim(APP, "app"), zones=("example.org",)) as watched:
        await passes(1)
        assert (watched.answer(), watched.dns.asked) == ((RELAY,), [])


async def test_a_status_that_the_controller_writes_later_brings_the_name(autojump_clock: MockClock) -> None:
    async with enforcing({APP: [BALANCER]}, claim(APP, "app")) as watched:
        await passes(1)
        assert watched.answer() == ()
        watched.put(claim(APP, "app", BALANCER))
        assert watched.answer() == (RELAY,)


async def test_a_later_claim_of_another_class_needs_its_own_proof(autojump_clock: MockClock) -> None:
    async with enforcing({APP: [BALANCER]}, claim(APP, "app", BALANCER)) as watched:
        await passes(1)
        watched.put(claim(APP, "thief", ingress_class="nosuchclass", created="2020-01-01T00:00:00Z"))
        verdict = watched.registry.verdict(APP, Reach.NAME)
        assert verdict.winner is not None
        assert verdict.winner.origin.name == "app"


async def test_a_record_that_moves_away_is_believed_when_it_is_confirmed(autojump_clock: MockClock) -> None:
    async with enforcing({APP: [BALANCER]}, claim(APP, "app", BALANCER)) as watched:
        await passes(10)
        watched.dns.records[APP] = [ELSEWHERE]
        await passes(1.1 * DEFAULT_PACE.every + CONFIRMED)
        assert (watched.answer(), watched.watch.doubted) == ((), 1)
        watched.dns.records[APP] = [BALANCER]
        await passes(DEFAULT_PACE.doubted + 1)
        assert (watched.answer(), watched.watch.doubted) == ((RELAY,), 0)


WILD = "*.example.org"


@pytest.mark.parametrize(
    ("records", "answered"),
    [
        pytest.param({"*.example.org": [BALANCER]}, True, id="a public wildcard leads here"),
        pytest.param({"*.example.org": [ELSEWHERE], "example.org": [BALANCER]}, False, id="it leads elsewhere"),
        pytest.param({"example.org": NXDOMAIN}, True, id="a domain that does not exist"),
        pytest.param({"example.org": []}, False, id="a domain without an address"),
        pytest.param({"example.org": [ELSEWHERE]}, False, id="a domain of others"),
        pytest.param({"example.org": [BALANCER]}, True, id="a domain that leads here"),
        pytest.param({"example.org": SERVFAIL}, False, id="no answer about the domain"),
        pytest.param({"example.org": [ELSEWHERE], "own.example.org": [BALANCER]}, True, id="another name leads here"),
    ],
)
async def test_a_wildcard_is_judged_by_the_public_one_or_by_its_domain(
    records: Any, answered: bool, autojump_clock: MockClock
) -> None:
    own, wild = claim("own.example.org", "own", BALANCER), claim(WILD, "wild", BALANCER)
    async with enforcing({"own.example.org": NXDOMAIN, **records}, own, wild) as watched:
        await passes(CONFIRMED)
        assert (watched.answer(WILD) == (RELAY,)) is answered


async def test_a_wildcard_is_looked_up_again_as_soon_as_a_name_of_its_domain_leads_here(
    autojump_clock: MockClock,
) -> None:
    records: Any = {"example.org": [ELSEWHERE], "own.example.org": [BALANCER], "*.example.org": NXDOMAIN}
    async with enforcing(records, claim(WILD, "wild", BALANCER)) as watched:
        await passes(2)
        assert watched.answer(WILD) == ()
        watched.put(claim("own.example.org", "own", BALANCER))
        await passes(2)
        assert watched.answer(WILD) == (RELAY,)


async def test_a_wildcard_below_a_domain_of_others_says_so(autojump_clock: MockClock) -> None:
    wild = claim("*.login.example.org", "wild", BALANCER)
    async with enforcing({"example.org": [ELSEWHERE], "login.example.org": NXDOMAIN}, wild) as watched:
        await passes(1)
        assert reason(watched, "*.login.example.org") == (
            "the domain example.org exists publicly, and no name of it in this namespace is known to lead here, "
            "--ownership enforce"
        )


def of(namespace: str, one: Claim) -> Claim:
    """The claim as one of another namespace."""
    return replace(one, origin=replace(one.origin, namespace=namespace, name=f"{namespace}-{one.origin.name}"))


@pytest.mark.parametrize("named", [WILD, APP], ids=["a wildcard", "a name without an address"])
@pytest.mark.parametrize(
    ("record", "answered"),
    [
        pytest.param({"own.example.org": [BALANCER]}, {"shop"}, id="a name of one namespace leads here"),
        pytest.param({"own.example.org": [ELSEWHERE]}, set(), id="it leads elsewhere"),
        pytest.param({"own.example.org": NXDOMAIN}, set(), id="it has no record"),
    ],
)
async def test_a_name_that_leads_here_counts_for_its_own_namespace(
    record: Any, answered: set[str], named: str, autojump_clock: MockClock
) -> None:
    """Tenants share the load balancer: a name of one of them says nothing for another one."""
    own, wanted = claim("own.example.org", "own", BALANCER), claim(named, "wanted", BALANCER)
    for namespace in ("shop", "rival"):
        records: Any = {"example.org": [ELSEWHERE], APP: [], WILD: NXDOMAIN, **record}
        async with enforcing(records, own, of(namespace, wanted)) as watched:
            await passes(CONFIRMED)
            assert (watched.answer(named) == (RELAY,)) is (namespace in answered)


async def test_the_record_of_a_domain_counts_for_the_namespace_that_has_it_as_a_name(autojump_clock: MockClock) -> None:
    apex, wild = claim("example.org", "apex", BALANCER), claim(WILD, "wild", BALANCER)
    for namespace, answered in (("shop", (RELAY,)), ("rival", ())):
        records: Any = {"example.org": [BALANCER], WILD: NXDOMAIN}
        async with enforcing(records, apex, of(namespace, wild)) as watched:
            await passes(CONFIRMED)
            assert watched.answer(WILD) == answered


@pytest.mark.parametrize(
    ("aliases", "trust", "answered"),
    [
        pytest.param(["gone.example.net."], (), False, id="an alias of nothing"),
        pytest.param(["lb.example.net."], (), True, id="an alias of the load balancer, which has no address now"),
        pytest.param(["gone.example.net."], ("example.net",), True, id="an alias in a trusted zone"),
    ],
)
async def test_an_alias_is_a_record(
    aliases: list[str], trust: tuple[str, ...], answered: bool, autojump_clock: MockClock
) -> None:
    records: Any = {APP: aliases, "lb.example.net": NXDOMAIN}
    async with enforcing(records, claim(APP, "app", "lb.example.net"), zones=trust) as watched:
        await passes(CONFIRMED)
        assert (watched.answer() == (RELAY,)) is answered


async def test_a_chosen_address_does_not_make_the_domain_ones_own(autojump_clock: MockClock) -> None:
    """An answer within the public record is harmless for the name, but proves nothing about a wildcard."""
    mirror = claim("www.example.org", "mirror", target=ELSEWHERE)
    records = {"www.example.org": [ELSEWHERE], "example.org": []}
    async with enforcing(records, mirror, claim(WILD, "wild", BALANCER)) as watched:
        await passes(CONFIRMED)
        assert (watched.answer("www.example.org"), watched.answer(WILD)) == ((ELSEWHERE,), ())


async def test_a_wildcard_too_long_for_a_name_below_it_is_judged_by_its_domain(autojump_clock: MockClock) -> None:
    longest = "*." + ".".join(["a" * 57] * 4) + ".example.org"
    async with enforcing({"example.org": [ELSEWHERE]}, claim(longest, "long", BALANCER)) as watched:
        await passes(1)
        assert watched.answer(longest) == ()


async def test_thousands_of_names_of_one_namespace_do_not_delay_the_others(autojump_clock: MockClock) -> None:
    names = [f"h{number}.example.net" for number in range(9_020)]
    async with enforcing({"*.example.net": [ELSEWHERE], APP: [BALANCER]}) as watched:
        flood = Origin("Ingress", "many", "flood", "2020-01-01T00:00:00Z")
        claims = [Claim(name, Reach.NAME, flood, Terms(status=(BALANCER,))) for name in names]
        watched.registry.replace("Ingress", "flood/many", claims)
        watched.watch.note(names)
        await passes(1)
        watched.put(claim(APP, "app", BALANCER))
        await passes(1)
        assert watched.answer() == (RELAY,)
        assert watched.watch.new > 5_000


async def test_what_nobody_claims_any_more_is_forgotten(autojump_clock: MockClock) -> None:
    async with enforcing({APP: [BALANCER]}, claim(APP, "app", BALANCER)) as watched:
        await passes(1)
        watched.registry.replace("Ingress", f"app {APP}", [])
        watched.watch.note([APP])
        await passes(1)
        assert not watched.registry.has_record(APP)
        watched.put(claim(APP, "app", BALANCER))
        assert watched.answer() == ()
        await trio.lowlevel.checkpoint()

"""By which claim a hostname is answered: the same as that of a look-up in the table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns.names import Reach, to_wire
from dnsproxy.hostnames.answering_claim import answering_claim
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets

NAMES = ["a.x.org", "b.a.x.org", "*.x.org", "*.a.x.org", "*.org"]


def claim(hostname: str, reach: Reach, address: str = "192.0.2.1", target: str | None = None) -> Claim:
    return Claim(
        hostname, reach, Origin("Ingress", f"{hostname} {reach.value}", "shop"), Terms(target=target or address)
    )


def registry_of(*claims: Claim, guards: Guards | None = None, unready: frozenset[str] = frozenset()) -> Registry:
    services = {"shop/x": ("10.96.0.7",)}
    registry = Registry(targets=Targets(services=services, unready=unready), guards=guards or Guards())
    for one in claims:
        registry.replace("Ingress", f"shop/{one.origin.name}", [one])
    return registry


def test_the_exact_name_comes_before_wildcards_and_the_narrowest_of_those() -> None:
    exact, narrow = claim("a.x.org", Reach.NAME), claim("*.x.org", Reach.ONE_LABEL)
    wide = claim("*.x.org", Reach.ANY_LABELS)
    registry = registry_of(exact, narrow, wide)
    assert answering_claim(registry, "a.x.org") == exact
    assert answering_claim(registry, "b.x.org") == narrow
    assert answering_claim(registry, "b.a.x.org") == wide
    assert answering_claim(registry, "x.org") is None


def test_a_name_whose_service_is_not_ready_is_still_its_claims() -> None:
    one = claim("a.x.org", Reach.NAME, target="service:shop/x")
    registry = registry_of(one, claim("*.x.org", Reach.ANY_LABELS), unready=frozenset({"shop/x"}))
    assert answering_claim(registry, "a.x.org") == one


@pytest.mark.parametrize(
    ("guards", "name"),
    [
        pytest.param(Guards(deny=("a.x.org",)), "a.x.org", id="a denied name below a wildcard"),
        pytest.param(Guards(search=("x.org",)), "a.x.org", id="a name in a search domain"),
    ],
)
def test_a_name_that_no_wildcard_reaches_has_none(guards: Guards, name: str) -> None:
    assert answering_claim(registry_of(claim("*.org", Reach.ANY_LABELS), guards=guards), name) is None


REACHES = {False: [Reach.NAME], True: [Reach.ONE_LABEL, Reach.ANY_LABELS]}
CLAIMS = st.sampled_from(NAMES).flatmap(
    lambda name: st.builds(
        claim,
        st.just(name),
        st.sampled_from(REACHES[name.startswith("*")]),
        st.sampled_from(["192.0.2.1", "192.0.2.2"]),
    )
)


@given(st.lists(CLAIMS), st.sampled_from([*NAMES[:2], "c.org", "x.org"]), st.sampled_from([(), ("a.x.org",)]))
def test_it_is_the_claim_that_the_table_answers_with(claims: list[Claim], name: str, denied: tuple[str, ...]) -> None:
    registry = registry_of(*claims, guards=Guards(deny=denied))
    writer = TableWriter(ttl=5, never=denied)
    writer.open()
    for host in registry.changes():
        writer.put(host)
    writer.close(registry.closed)
    found = writer.publish().find(to_wire(name))
    one = answering_claim(registry, name)
    assert (found.addresses if found is not None else ()) == (registry.targets.addresses_for(one) if one else ())

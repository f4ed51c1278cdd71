"""Wide wildcards: which wildcards of objects cover a whole registrable domain, and what is said of them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.outcomes import MOST_WIDE
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.registrable import covered_domain
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.wide_wildcards import LONGEST_ORIGIN, WideWildcard, find_wide, merge_wide

WILDCARD: Final = "*.example.org"


@pytest.mark.parametrize(
    ("hostname", "domain"),
    [
        pytest.param("*.example.org", "example.org", id="a registrable domain"),
        pytest.param("*.example.co.uk", "example.co.uk", id="below a suffix of two labels"),
        pytest.param("*.shop.github.io", "shop.github.io", id="below a private suffix"),
        pytest.param("*.home.lan", "home.lan", id="below an unknown top-level domain"),
        pytest.param("*.apps.example.org", "", id="a part of a domain"),
        pytest.param("*.org", "", id="a top-level domain"),
        pytest.param("*.co.uk", "", id="a public suffix"),
        pytest.param("example.org", "", id="the domain itself"),
        pytest.param("www.example.org", "", id="an exact name"),
        pytest.param("*.a.b.c.example.org", "", id="deep"),
    ],
)
def test_a_wildcard_is_wide_only_right_below_a_public_suffix(hostname: str, domain: str) -> None:
    assert covered_domain(hostname) == domain


def claim(hostname: str = WILDCARD, name: str = "web", reach: Reach = Reach.ONE_LABEL, **terms: Any) -> Claim:
    return Claim(hostname, reach, Origin("Ingress", name, "shop", "2026-01-01T00:00:00Z"), Terms(**terms))


def registry_of(*claims: Claim, mode: Mode = Mode.VERIFY, targets: Targets | None = None) -> Registry:
    ownership = OwnershipSettings(mode)
    registry = Registry(targets=targets or Targets(("192.0.2.1",)), guards=Guards(), ownership=ownership)
    for one in claims:
        put(registry, one)
    return registry


def put(registry: Registry, *claims: Claim, key: str = "") -> None:
    for one in claims:
        registry.replace("Ingress", key or f"shop/{one.origin.name}", [one])
    list(registry.judgements())


def names_of(registry: Registry) -> list[str]:
    return [one.hostname for one in find_wide(registry)]


def test_a_wildcard_is_named_with_its_object_while_it_has_the_name() -> None:
    registry = registry_of(claim(), claim("app.example.org", "app"))
    (found,) = find_wide(registry)
    assert (found.hostname, found.origin, found.verified) == (WILDCARD, "Ingress shop/web", True)
    registry.replace("Ingress", "shop/web", [])
    list(registry.judgements())
    assert find_wide(registry) == ()


def test_the_object_that_has_it_is_named_and_no_other() -> None:
    younger = Claim(WILDCARD, Reach.ONE_LABEL, Origin("Ingress", "young", "shop", "2026-02-02T00:00:00Z"))
    assert [one.origin for one in find_wide(registry_of(younger, claim()))] == ["Ingress shop/web"]


@pytest.mark.parametrize(
    ("made", "targets"),
    [
        pytest.param(claim("*.apps.example.org"), None, id="a part of a domain"),
        pytest.param(claim("*.co.uk"), None, id="denied: a public suffix"),
        pytest.param(claim(addresses=("192.0.2.9",)), None, id="the operator's own"),
        pytest.param(claim(), Targets(), id="without a target"),
        pytest.param(claim("www.example.org", reach=Reach.NAME), None, id="an exact name"),
    ],
)
def test_others_are_not_named(made: Claim, targets: Targets | None) -> None:
    assert names_of(registry_of(made, targets=targets)) == []


def test_a_wildcard_in_two_reaches_is_named_once_and_only_the_first_ten_are() -> None:
    registry = registry_of()
    for number in range(MOST_WIDE + 5):
        both = [claim(f"*.d{number:02}.org", f"w{number}", reach) for reach in (Reach.ONE_LABEL, Reach.ANY_LABELS)]
        registry.replace("Ingress", f"shop/w{number}", both)
    list(registry.judgements())
    assert names_of(registry) == [f"*.d{number:02}.org" for number in range(MOST_WIDE)]
    registry.replace("Ingress", "shop/w0", [])
    list(registry.judgements())
    assert names_of(registry) == [f"*.d{number:02}.org" for number in range(1, MOST_WIDE + 1)]


@pytest.mark.parametrize(
    ("mode", "terms", "verified"),
    [
        (Mode.VERIFY, {}, True),
        (Mode.ENFORCE, {}, True),
        (Mode.WARN, {}, False),
        (Mode.OFF, {}, False),
        (Mode.VERIFY, {"annotated": True}, False),
    ],
)
def test_it_says_whether_names_below_that_lead_elsewhere_are_answered(
    mode: Mode, terms: dict[str, Any], verified: bool
) -> None:
    (found,) = find_wide(registry_of(claim(**terms), mode=mode))
    assert found.verified is verified
    assert ("only names that lead here or have no record" in found.sentence) is verified
    assert ("also one whose record leads elsewhere" in found.sentence) is not verified
    assert found.sentence.startswith(
        "the wildcard *.example.org of Ingress shop/web covers the whole domain example.org;"
    )


def test_a_long_object_is_cut_to_what_readers_take() -> None:
    registry = registry_of(claim(name="a" * 5_000))
    assert len(find_wide(registry)[0].origin) == LONGEST_ORIGIN


def test_the_wildcards_of_several_servers_are_each_there_once() -> None:
    first, second = WideWildcard(hostname="*.a.org", origin="x"), WideWildcard(hostname="*.b.org", origin="y")
    assert merge_wide([[second], [first, second]]) == (first, second)
    many = [WideWildcard(hostname=f"*.d{number:02}.org", origin="x") for number in range(2 * MOST_WIDE)]
    assert merge_wide([many[MOST_WIDE:], many[:MOST_WIDE]]) == tuple(many[:MOST_WIDE])

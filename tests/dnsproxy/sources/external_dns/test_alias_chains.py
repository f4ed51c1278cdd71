"""Where an alias leads."""

from __future__ import annotations

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.sources.external_dns.alias_chains import Chain, claim_like, follow_aliases

INGRESS = Claim(
    "shop.org",
    Reach.NAME,
    Origin("Ingress", "web", "shop", "2026-01-01T00:00:00Z"),
    Terms(ingress_class="nginx", status=("192.0.2.1",), since="2025-01-01T00:00:00Z"),
)
STATIC = Claim("static.org", Reach.NAME, Origin("flag", "--host"), Terms(("192.0.2.7", "2001:db8::7")))
ALIASES = {
    "b.org": "c.org",
    "c.org": "end.org",
    "to-shop.org": "shop.org",
    "x.org": "y.org",
    "y.org": "x.org",
    "self.org": "self.org",
    **{f"h{number}.org": f"h{number + 1}.org" for number in range(9)},
}


def follow(hostname: str, alias: str) -> Chain:
    return follow_aliases(hostname, alias, own=ALIASES.get, answering={"shop.org": INGRESS, "b.org": None}.get)


@pytest.mark.parametrize(
    ("alias", "expected"),
    [
        pytest.param("end.org", Chain(("end.org",)), id="a name outside"),
        pytest.param("shop.org", Chain(("shop.org",), INGRESS), id="a name of the table"),
        pytest.param("to-shop.org", Chain(("to-shop.org", "shop.org"), INGRESS), id="an alias of one"),
        pytest.param("b.org", Chain(("b.org", "c.org", "end.org")), id="three aliases"),
        pytest.param("h1.org", Chain(tuple(f"h{n}.org" for n in range(1, 9)), fault="?"), id="nine aliases"),
        pytest.param("h2.org", Chain(tuple(f"h{n}.org" for n in range(2, 10))), id="eight aliases"),
    ],
)
def test_a_chain_ends_in_the_table_or_outside_of_it(alias: str, expected: Chain) -> None:
    found = follow("a.org", alias)
    if expected.fault:
        assert found.fault.startswith("more than 8 aliases (a.org -> h1.org -> ")
        assert (found.is_outside, found.claim) == (False, None)
    else:
        assert found == expected
        assert found.is_outside is (expected.claim is None)


@pytest.mark.parametrize(
    ("hostname", "alias", "shown"),
    [
        ("self.org", "self.org", "self.org -> self.org"),
        ("x.org", "y.org", "x.org -> y.org -> x.org"),
        ("a.org", "x.org", "a.org -> x.org -> y.org -> x.org"),
        ("c.org", "b.org", "c.org -> b.org -> c.org"),
    ],
    ids=["itself", "two", "behind another one", "the first again"],
)
def test_a_loop_has_no_end(hostname: str, alias: str, shown: str) -> None:
    found = follow(hostname, alias)
    assert shown in found.fault
    assert not found.is_outside
    assert set(found.path) <= set(shown.split(" -> "))


MINE = Origin("DNSEndpoint", "records", "mine", "2026-05-05T00:00:00Z")


def test_an_alias_is_answered_as_the_name_is() -> None:
    one = claim_like(INGRESS, "a.org", MINE, alias="shop.org")
    assert one == Claim(
        "a.org",
        Reach.NAME,
        MINE,
        Terms(ingress_class="nginx", status=("192.0.2.1",), annotated=True, declared=("shop.org",)),
    )


@pytest.mark.parametrize(
    ("namespace", "target_from", "expected"),
    [("shop", "", "shop"), ("mine", "", ""), ("shop", "edge", "edge"), ("shop", "mine", "")],
)
def test_a_target_stays_in_the_right_of_its_chooser(namespace: str, target_from: str, expected: str) -> None:
    chosen = Claim(
        "shop.org",
        Reach.NAME,
        Origin("Ingress", "web", namespace),
        Terms(target="service:shop/x", target_from=target_from),
    )
    one = claim_like(chosen, "*.a.org", MINE, alias="shop.org")
    assert (one.terms.target, one.terms.target_from, one.reach) == ("service:shop/x", expected, Reach.ANY_LABELS)


def test_the_addresses_of_a_static_name_are_no_right_of_an_alias() -> None:
    """Terms.addresses would skip every guard and the ownership check."""
    one = claim_like(STATIC, "a.org", MINE, alias="static.org")
    assert (one.terms.addresses, one.terms.target, one.terms.target_from) == ((), "192.0.2.7,2001:db8::7", "")

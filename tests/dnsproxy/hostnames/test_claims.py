"""Claims: the text of an origin."""

from __future__ import annotations

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames import claims
from dnsproxy.hostnames.claims import PLAIN, Claim, Origin, Terms, share_terms, with_terms


@pytest.mark.parametrize(
    ("origin", "shown"),
    [
        pytest.param(Origin("Ingress", "app", "shop"), "Ingress shop/app", id="object"),
        pytest.param(Origin("hosts file", "/etc/names:3"), "hosts file /etc/names:3", id="line"),
        pytest.param(Origin("flag", "--host a=192.0.2.1"), "flag --host a=192.0.2.1", id="flag"),
    ],
)
def test_an_origin_is_shown_as_people_look_for_it(origin: Origin, shown: str) -> None:
    assert str(origin) == shown


def test_claims_are_values() -> None:
    origin = Origin("Ingress", "app", "shop", "2026-01-01T00:00:00Z")
    one = Claim("app.example.org", Reach.NAME, origin)
    assert one == Claim("app.example.org", Reach.NAME, origin)
    assert len({one, Claim("app.example.org", Reach.NAME, origin)}) == 1


SMALL = Terms(ingress_class="nginx", status=("192.0.2.1",))
MANY = tuple(f"192.0.2.{number}" for number in range(100))


def test_equal_terms_are_one_value() -> None:
    assert share_terms(SMALL) is share_terms(Terms(ingress_class="nginx", status=("192.0.2.1",)))
    assert share_terms(SMALL) != share_terms(Terms(ingress_class="nginx"))


@pytest.mark.parametrize(
    "large",
    [
        pytest.param(Terms(status=MANY), id="status"),
        pytest.param(Terms(declared=MANY), id="declared"),
        pytest.param(Terms(MANY), id="addresses"),
        pytest.param(Terms(target=",".join(MANY)), id="target"),
        pytest.param(Terms(ingress_class=",".join(MANY)), id="class"),
    ],
)
def test_large_terms_live_no_longer_than_their_claim(large: Terms) -> None:
    """A tenant could write a thousand objects with a megabyte each, and delete them again."""
    known = claims._share.cache_info().currsize
    assert share_terms(large) is large
    assert claims._share.cache_info().currsize == known


def test_a_claim_with_other_terms_keeps_all_else() -> None:
    one = Claim("app.example.org", Reach.NAME, Origin("Ingress", "app"), SMALL)
    other = with_terms(one, ingress_class="traefik")
    assert (other.hostname, other.reach, other.origin) == (one.hostname, one.reach, one.origin)
    assert other.terms == Terms(ingress_class="traefik", status=SMALL.status)
    assert other.terms is with_terms(other).terms
    assert with_terms(one, ingress_class=None, status=()).terms == PLAIN

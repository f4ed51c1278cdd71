"""How names are counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.name_limits import count_names, first_names, weight_of

ORIGIN = Origin("Ingress", "web", "shop")
PLAIN = Claim("app.example.org", Reach.NAME, ORIGIN)


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (PLAIN, 1),
        (
            Claim(
                "app.example.org", Reach.NAME, ORIGIN, Terms(status=("a1b2c3-1234567890.elb.eu-west-1.amazonaws.com",))
            ),
            1,
        ),
        (Claim("a" * 124, Reach.NAME, ORIGIN), 1),
        (Claim("a" * 125, Reach.NAME, ORIGIN), 2),
        (Claim("app.example.org", Reach.NAME, Origin("Ingress", "w" * 253, "shop")), 3),
        (Claim("app.example.org", Reach.NAME, ORIGIN, Terms(target="192.0.2.1," * 1000)), 79),
        (Claim("app.example.org", Reach.NAME, ORIGIN, Terms(status=("192.0.2.1",) * 1000)), 71),
        (Claim("app.example.org", Reach.NAME, ORIGIN, Terms(ingress_class="c" * 253)), 3),
    ],
    ids=[
        "plain",
        "status-of-a-cloud",
        "just-one",
        "just-two",
        "long-object-name",
        "long-target",
        "long-status",
        "long-class",
    ],
)
def test_weight(claim: Claim, expected: int) -> None:
    """Long texts count, because they cost as much as many names."""
    assert weight_of(claim) == expected


@given(st.lists(st.integers(1, 250), max_size=20), st.integers(0, 30))
def test_first_names_are_as_many_as_fit(lengths: list[int], most: int) -> None:
    """In the object's order."""
    claims = [Claim("a" * length, Reach.NAME, ORIGIN) for length in lengths]
    kept = first_names(claims, most)
    assert list(kept) == claims[: len(kept)]
    assert count_names(kept) <= most
    assert len(kept) == len(claims) or count_names(claims[: len(kept) + 1]) > most

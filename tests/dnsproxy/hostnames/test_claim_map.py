"""The map of claims against a dict of tuples."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claim_map import ClaimMap
from dnsproxy.hostnames.claims import Claim, Origin

KEYS = ("a", "b", "c")
CLAIMS = tuple(Claim("a", Reach.NAME, Origin("Ingress", name)) for name in "xyz")


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.lists(st.sampled_from(CLAIMS), max_size=3).map(tuple))))
def test_what_was_put_last_is_there_whether_one_claim_or_several(puts: list[tuple[str, tuple[Claim, ...]]]) -> None:
    found = ClaimMap()
    expected: dict[str, tuple[Claim, ...]] = dict.fromkeys(KEYS, ())
    for key, claims in puts:
        found.put(key, claims)
        expected[key] = claims
    assert {key: found.get(key) for key in KEYS} == expected
    held = {key: claims for key, claims in expected.items() if claims}
    assert (set(found.keys()), len(found)) == (set(held), len(held))
    assert sorted(map(str, found.claims())) == sorted(str(claim) for claims in held.values() for claim in claims)


def test_keys_can_be_walked_through_while_the_map_changes() -> None:
    found = ClaimMap()
    for key in KEYS:
        found.put(key, CLAIMS[:1])
    for key in found.keys():  # noqa: SIM118  # a copy of them
        found.put(key, ())
    assert len(found) == 0

"""Laws of the ranking; which claim wins in which case is in test_verdict.py."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.ranking import rank

AGES: Final = st.sampled_from([f"2026-0{month}-01T00:00:00Z" for month in range(1, 5)])


def claim(name: str, *, created: str, kind: str = "Ingress", since: str = "", routed: bool = True) -> Claim:
    origin = Origin(kind, name, "shop", created)
    return Claim("app.example.org", Reach.NAME, origin, Terms((), None, routed=routed, since=since))


CLAIMS: Final = st.lists(
    st.builds(
        claim,
        st.sampled_from(["a", "b", "c"]),
        created=AGES,
        kind=st.sampled_from(["HTTPRoute", "Ingress"]),
        since=st.one_of(st.just(""), AGES),
        routed=st.booleans(),
    ),
    min_size=1,
    max_size=5,
)


@given(CLAIMS, AGES)
def test_who_had_the_name_first_changes_nothing_among_the_claims_of_its_namespace(
    claims: list[Claim], created: str
) -> None:
    """Otherwise a verdict, which makes its winner the holder, would be another one when the name is judged again."""
    holder = Origin("Ingress", "gone", "shop", created)
    alone = sorted(claims, key=rank)
    for one in (holder, alone[0].origin):
        if one.created <= min(claim.terms.since or claim.origin.created for claim in claims):
            assert sorted(claims, key=lambda claim: rank(claim, one)) == alone


@pytest.mark.parametrize("holder", [None, Origin("Ingress", "older", "shop", "2026-01-01T00:00:00Z")])
def test_an_older_object_stays_first_once_its_namespace_has_the_name(holder: Origin | None) -> None:
    younger = claim("a", created="2026-02-01T00:00:00Z")
    older = claim("older", created="2026-01-01T00:00:00Z")
    assert min([younger, older], key=lambda one: rank(one, holder)) is older

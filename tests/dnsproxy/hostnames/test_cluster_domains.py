"""Everything that tells a cluster domain counts; the usual ones only if nothing does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.hostnames.cluster_domains import USUAL, ClusterDomains
from dnsproxy.hostnames.guards import Guards, refusal

DOMAINS = st.lists(st.sampled_from(["a.test", "b.test", "cluster.local"]), max_size=3).map(tuple)


@given(DOMAINS, DOMAINS, DOMAINS)
def test_each_that_is_known_is_guarded_and_no_other(
    flags: tuple[str, ...], search: tuple[str, ...], corefile: tuple[str, ...]
) -> None:
    domains = ClusterDomains(flags, search, corefile)
    told = {*flags, *search, *corefile}
    assert set(domains.guarded) == (told or set(USUAL))
    assert len(domains.guarded) == len(set(domains.guarded))
    assert domains.is_known is bool(told)
    guards = Guards(cluster_domains=domains.guarded)
    for domain in ("a.test", "b.test", *USUAL):
        assert (refusal(f"web.{domain}", guards) is not None) is (domain in domains.guarded)
        assert (refusal(f"*.{domain.partition('.')[2]}", guards) is not None) is any(
            one.endswith("." + domain.partition(".")[2]) for one in domains.guarded
        )


@pytest.mark.parametrize(
    ("domains", "said"),
    [
        (ClusterDomains(), "nothing: the usual ones are guarded"),
        (ClusterDomains(("a.test",)), "--cluster-domain"),
        (ClusterDomains(("a.test",), ("b.test",), ("c.test",)), "the Corefile, the search list, --cluster-domain"),
    ],
    ids=["nothing", "the flag", "all"],
)
def test_the_log_says_what_tells_them(domains: ClusterDomains, said: str) -> None:
    assert domains.told_by == said

"""Guards: hostnames that no claim gets, and the comparison by whole labels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import is_within
from dnsproxy.hostnames.guards import Guards, overreach, refusal

CLUSTER = Guards()
ZONED = Guards(zones=("example.org", "example.net"))
DENYING = Guards(deny=("intern.example.org", "*.dev.example.org"))
OWN_DOMAIN = Guards(cluster_domains=("k8s.example.org",))


@pytest.mark.parametrize(
    ("hostname", "guards", "reason"),
    [
        pytest.param("localhost", CLUSTER, "localhost", id="localhost"),
        pytest.param("app.localhost", CLUSTER, "localhost", id="below localhost"),
        pytest.param("*.localhost", CLUSTER, "localhost", id="wildcard below localhost"),
        pytest.param("cluster.local", CLUSTER, "cluster domain", id="cluster domain"),
        pytest.param("kubernetes.default.svc.cluster.local", CLUSTER, "cluster domain", id="Service"),
        pytest.param("*.svc.cluster.local", CLUSTER, "cluster domain", id="wildcard inside the cluster domain"),
        pytest.param("*.cluster.local", CLUSTER, "cluster domain", id="wildcard of the cluster domain"),
        pytest.param("kubernetes.default.svc", CLUSTER, "name of a Service", id="Service without the cluster domain"),
        pytest.param("*.default.svc", OWN_DOMAIN, "name of a Service", id="wildcard over Services"),
        pytest.param("svc", CLUSTER, "name of a Service", id="what Services are below"),
        pytest.param("*.local", CLUSTER, "would cover the cluster domain", id="wildcard over the cluster domain"),
        pytest.param("a.k8s.example.org", OWN_DOMAIN, "cluster domain k8s.example.org", id="own cluster domain"),
        pytest.param("*.example.org", OWN_DOMAIN, "would cover", id="wildcard over an own cluster domain"),
        pytest.param("*.org", OWN_DOMAIN, "would cover", id="wildcard far over an own cluster domain"),
        pytest.param("intern.example.org", DENYING, "--deny", id="denied"),
        pytest.param("*.dev.example.org", DENYING, "--deny", id="denied wildcard"),
        pytest.param("example.com", ZONED, "outside the zones example.org, example.net", id="outside the zones"),
        pytest.param("anexample.org", ZONED, "outside the zones", id="end of a label"),
        pytest.param("example.org.example.com", ZONED, "outside the zones", id="zone in front"),
        pytest.param("org", ZONED, "outside the zones", id="above a zone"),
        pytest.param("*.org", ZONED, "outside the zones", id="wildcard above a zone"),
    ],
)
def test_a_hostname_is_kept_out_for_a_reason(hostname: str, guards: Guards, reason: str) -> None:
    found = refusal(hostname, guards)
    assert found is not None
    assert reason in found


@pytest.mark.parametrize(
    ("hostname", "guards"),
    [
        pytest.param("app.example.org", CLUSTER, id="any"),
        pytest.param("local", CLUSTER, id="exact name above the cluster domain"),
        pytest.param("mycluster.local", CLUSTER, id="end of a label"),
        pytest.param("cluster.local.example.org", CLUSTER, id="cluster domain in front"),
        pytest.param("svc.example.org", CLUSTER, id="svc in front"),
        pytest.param("a.xsvc", CLUSTER, id="ends like svc"),
        pytest.param("notlocalhost", CLUSTER, id="ends like localhost"),
        pytest.param("localhost.example.org", CLUSTER, id="localhost in front"),
        pytest.param("a.cluster.local", OWN_DOMAIN, id="another cluster's domain"),
        pytest.param("example.org", OWN_DOMAIN, id="apex above an own cluster domain"),
        pytest.param("x.intern.example.org", DENYING, id="below a denied name"),
        pytest.param("*.example.org", DENYING, id="wildcard over a denied name"),
        pytest.param("a.dev.example.org", DENYING, id="below a denied wildcard"),
        pytest.param("example.org", ZONED, id="apex of a zone"),
        pytest.param("*.example.org", ZONED, id="wildcard of a zone"),
        pytest.param("a.b.example.net", ZONED, id="inside a zone"),
    ],
)
def test_all_else_may_be_taken(hostname: str, guards: Guards) -> None:
    assert refusal(hostname, guards) is None


SEARCHING = Guards(search=("ec2.internal", "corp.example.net", "lan"), cluster_domains=("k8s.example.org",))


def allowing(*zones: str) -> Guards:
    return replace(SEARCHING, allow=zones)


@pytest.mark.parametrize(
    ("hostname", "guards", "rule"),
    [
        pytest.param("github.com.ec2.internal", SEARCHING, "search domain ec2.internal", id="asked before github.com"),
        pytest.param("github.com.corp.example.net", SEARCHING, "search domain corp.example.net", id="a public domain"),
        pytest.param("wpad.corp.example.net", SEARCHING, "search domain corp.example.net", id="one label in it"),
        pytest.param("corp.example.net", SEARCHING, "search domain corp.example.net", id="the search domain itself"),
        pytest.param("*.corp.example.net", SEARCHING, "search domain corp.example.net", id="a wildcard of it"),
        pytest.param("*.a.corp.example.net", SEARCHING, "search domain corp.example.net", id="a wildcard in it"),
        pytest.param("app.lan", SEARCHING, "search domain lan", id="in a search domain of one label"),
        pytest.param("metadata.google.internal", CLUSTER, "names in internal", id="metadata service"),
        pytest.param("*.internal", CLUSTER, "top-level domain internal", id="all of internal"),
        pytest.param("*.ec2.internal", CLUSTER, "names in internal", id="wildcard in internal"),
        pytest.param("printer.local", CLUSTER, "names in local", id="mDNS"),
        pytest.param("localhost.localdomain", CLUSTER, "names in localdomain", id="the host itself"),
        pytest.param("any.invalid", CLUSTER, "names in invalid", id="a name that never exists"),
        pytest.param("nas.home.arpa", CLUSTER, "names in home.arpa", id="home network"),
        pytest.param("home.arpa", CLUSTER, "public suffix", id="home network itself"),
        pytest.param("registry", CLUSTER, "one label", id="one label"),
        pytest.param("com", CLUSTER, "one label", id="a top-level domain"),
        pytest.param("local", CLUSTER, "one label", id="local itself"),
        pytest.param("*.org", CLUSTER, "top-level domain org", id="wildcard of a top level"),
        pytest.param("*.local", OWN_DOMAIN, "top-level domain local", id="wildcard of local"),
        pytest.param("*.xn--p1ai", CLUSTER, "top-level domain xn--p1ai", id="wildcard of an international top level"),
        pytest.param("co.uk", CLUSTER, "co.uk is a public suffix", id="suffix of a registry"),
        pytest.param("*.co.uk", CLUSTER, "co.uk is a public suffix", id="wildcard of a suffix"),
        pytest.param("github.io", CLUSTER, "public suffix", id="suffix of a hoster"),
        pytest.param("*.s3.amazonaws.com", CLUSTER, "public suffix", id="wildcard of a hoster's suffix"),
        pytest.param("any.ck", CLUSTER, "public suffix", id="suffix by a wildcard rule"),
        pytest.param("xn--55qx5d.cn", CLUSTER, "public suffix", id="international suffix"),
        pytest.param("a.ec2.internal", allowing("internal"), "search domain ec2.internal", id="allowed above it"),
        pytest.param("a.ec2.internal", allowing("."), "search domain ec2.internal", id="allowed the root"),
        pytest.param("a.ec2.internal", allowing("b.ec2.internal"), "search domain", id="allowed another name in it"),
        pytest.param("ab.ec2.internal", allowing("b.ec2.internal"), "search domain", id="allowed the end of a label"),
        pytest.param("a.lan", allowing("corp.example.net"), "search domain lan", id="allowed another search domain"),
        pytest.param("*.lan", allowing("a.lan"), "search domain lan", id="allowed below the wildcard"),
        pytest.param("co.uk", allowing("uk"), "public suffix", id="allowed above the suffix"),
        pytest.param("*.org", Guards(zones=("example.org",)), "top-level domain org", id="a zone below the wildcard"),
        pytest.param("registry", allowing("registry.example.org"), "one label", id="allowed a longer name"),
    ],
)
def test_the_clusters_objects_do_not_get_a_name_that_resolvers_build_or_many_share(
    hostname: str, guards: Guards, rule: str
) -> None:
    found = overreach(hostname, guards)
    assert found is not None
    assert rule in found
    assert found.endswith(f"; --allow {hostname.removeprefix('*.')} allows that")


@pytest.mark.parametrize(
    ("hostname", "guards"),
    [
        pytest.param("*.example.org", CLUSTER, id="two labels"),
        pytest.param("a.internal.example.org", CLUSTER, id="internal inside a name"),
        pytest.param("a.xinternal.example", CLUSTER, id="ends like internal"),
        pytest.param("a.homearpa.example", CLUSTER, id="ends like home.arpa"),
        pytest.param("team.github.io", CLUSTER, id="below a hoster's suffix"),
        pytest.param("www.ck", CLUSTER, id="an exception among suffixes"),
        pytest.param("a.lan", CLUSTER, id="an unknown top level"),
        pytest.param("acorp.example.net", SEARCHING, id="ends like a search domain"),
        pytest.param("corp.example.net.example.org", SEARCHING, id="search domain in front"),
        pytest.param("example.net", SEARCHING, id="above a search domain"),
        pytest.param("*.example.net", SEARCHING, id="wildcard above a search domain"),
        pytest.param("*.lan", Guards(zones=("lan",)), id="a zone that was named"),
        pytest.param("a.corp.example.net", replace(SEARCHING, zones=("corp.example.net",)), id="a named search domain"),
        pytest.param("a.b.corp.example.net", allowing("corp.example.net"), id="an allowed search domain"),
        pytest.param("app.ec2.internal", allowing("app.ec2.internal"), id="an allowed name"),
        pytest.param("*.lan", allowing("lan"), id="an allowed wildcard of a search domain"),
        pytest.param("registry", allowing("registry"), id="an allowed name of one label"),
        pytest.param("nas.home.arpa", allowing("home.arpa"), id="an allowed local zone"),
        pytest.param("co.uk", allowing("co.uk"), id="an allowed suffix"),
    ],
)
def test_all_else_an_object_may_have(hostname: str, guards: Guards) -> None:
    assert overreach(hostname, guards) is None


@pytest.mark.parametrize(
    ("guards", "closed"),
    [
        pytest.param(CLUSTER, (), id="no search list"),
        pytest.param(SEARCHING, ("ec2.internal", "corp.example.net", "lan"), id="all"),
        pytest.param(allowing("corp.example.net", "internal"), ("ec2.internal", "lan"), id="without the allowed ones"),
        pytest.param(allowing("a.lan"), SEARCHING.search, id="a part of one is allowed"),
        pytest.param(
            replace(SEARCHING, zones=("lan",)), ("ec2.internal", "corp.example.net"), id="without named zones"
        ),
        pytest.param(Guards(search=("a.svc.cluster.local", "cluster.local")), (), id="without the cluster domain"),
    ],
)
def test_search_domains_are_closed_to_wildcards_from_above(guards: Guards, closed: tuple[str, ...]) -> None:
    assert guards.closed == closed


LABELS = st.lists(
    st.sampled_from(["a", "corp", "example", "net", "internal", "uk", "co", "lan"]), min_size=1, max_size=4
)


@given(LABELS, st.booleans(), st.lists(LABELS, max_size=2))
def test_what_a_reason_advises_allows_the_name_and_nothing_beside_it(
    labels: list[str], wildcard: bool, others: list[list[str]]
) -> None:
    base = ".".join(labels)
    hostname = f"*.{base}" if wildcard else base
    found = overreach(hostname, SEARCHING)
    advised = found.partition("--allow ")[2].split()[0] if found else base
    opened = allowing(advised)
    assert overreach(hostname, opened) is None
    for other in map(".".join, others):
        if not is_within(other, base):
            assert overreach(other, opened) == overreach(other, SEARCHING)


@given(LABELS)
def test_a_name_is_in_a_search_domain_exactly_if_its_last_labels_are(labels: list[str]) -> None:
    expected = any(labels[-len(domain.split(".")) :] == domain.split(".") for domain in SEARCHING.search)
    assert ("in the search domain" in (overreach(".".join(labels), SEARCHING) or "")) is expected

"""Guards: hostnames that no claim gets, and the comparison by whole labels."""

from __future__ import annotations

import pytest

from dnsproxy.hostnames.guards import Guards, overreach, refusal

CLUSTER = Guards()
ZONED = Guards(zones=("example.org", "example.net"))
DENYING = Guards(deny=("intern.example.org", "*.dev.example.org"))
OWN_DOMAIN = Guards(cluster_domain="k8s.example.org")


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


@pytest.mark.parametrize("hostname", ["*.org", "*.local", "*.xn--p1ai"])
def test_no_object_gets_a_whole_top_level_domain(hostname: str) -> None:
    found = overreach(hostname, CLUSTER)
    assert found is not None
    assert f"--zone {hostname[2:]} allows that" in found


@pytest.mark.parametrize(
    ("hostname", "guards"),
    [
        pytest.param("*.example.org", CLUSTER, id="two labels"),
        pytest.param("org", CLUSTER, id="the domain itself"),
        pytest.param("app", CLUSTER, id="a name of one label"),
        pytest.param("*.lan", Guards(zones=("lan",)), id="a zone that was named"),
    ],
)
def test_all_else_an_object_may_have(hostname: str, guards: Guards) -> None:
    assert overreach(hostname, guards) is None

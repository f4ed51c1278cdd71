"""Whether zones are free, and which forward serves them today."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.install.change.zones import (
    check_free,
    check_named,
    check_not_clusters,
    notes_on_keys,
    notes_on_plugins,
    route_of,
)
from tests.dnsproxy.cluster_dns.test_routes import routes

ROOT = "kubernetes cluster.test 10.in-addr.arpa\nhosts {\n}\nrewrite name a b\nforward . 192.0.2.1"


@pytest.mark.parametrize("zones", [[], ["."], ["example.org", "."]], ids=str)
def test_every_name_is_no_zone_of_its_own(zones: Sequence[str]) -> None:
    with pytest.raises(ChangeRefused, match="zones have to be named: because"):
        check_named(zones, "because")


@pytest.mark.parametrize(
    "zone",
    [
        "cluster.test",
        "svc.cluster.test",
        "test",
        "CLUSTER.Test.",
        "in-addr.arpa",
        "96.10.in-addr.arpa",
        "ip6.arpa",
        "arpa",
    ],
)
def test_what_the_plugin_kubernetes_answers_is_the_clusters(zone: str) -> None:
    with pytest.raises(ChangeRefused, match="the cluster's own names"):
        check_free([zone], routes(ROOT))


@pytest.mark.parametrize("zone", ["a.test", "other.test", "example.org", "cluster.test.example.org", "mycluster.test"])
def test_what_only_looks_like_it_is_free(zone: str) -> None:
    check_free([zone], routes(ROOT))
    check_named([zone], "because")


@pytest.mark.parametrize("zone", ["cluster.local", "local", "a.svc.cluster.local", "in-addr.arpa"])
def test_where_no_corefile_tells_the_usual_ones_are_the_clusters(zone: str) -> None:
    with pytest.raises(ChangeRefused, match="the cluster's own names"):
        check_not_clusters([zone])
    check_not_clusters(["example.org", "local.example.org"])


FORWARDS = (
    "forward a.example.org 192.0.2.1\nforward example.org 192.0.2.2\nforward . 192.0.2.3 {\n except example.net\n}"
)


@pytest.mark.parametrize(
    ("zone", "named", "upstream"),
    [
        ("a.example.org", [], "192.0.2.1"),
        ("x.a.example.org", [], "192.0.2.1"),
        ("b.example.org", [], "192.0.2.2"),
        ("example.org", ["a.example.org"], "192.0.2.2"),
        ("example.com", [], "192.0.2.3"),
        ("net", [], "192.0.2.3"),
    ],
)
def test_the_route_of_a_zone_is_the_first_forward_that_takes_all_of_it(
    zone: str, named: list[str], upstream: str
) -> None:
    route = route_of(zone, routes(FORWARDS).forwards(), [zone, *named])
    assert route.forward.upstreams == (upstream,)


@pytest.mark.parametrize(
    ("zone", "reason"),
    [
        ("example.org", "add --zone a.example.org"),
        ("org", "add --zone a.example.org"),
        ("example.net", "no forward serves example.net"),
        ("a.example.net", "no forward serves a.example.net"),
    ],
)
def test_a_zone_that_would_hide_others_or_goes_nowhere_is_refused(zone: str, reason: str) -> None:
    with pytest.raises(ChangeRefused) as refused:
        route_of(zone, routes(FORWARDS).forwards(), [zone])
    assert reason in str(refused.value)


def test_a_forward_whose_zone_the_environment_decides_may_be_any() -> None:
    found = routes("forward {$ZONE} 192.0.2.1\nforward . 192.0.2.2").forwards()
    with pytest.raises(ChangeRefused, match=r"names below example\.org go to"):
        route_of("example.org", found, ["example.org"])


def test_notes_say_what_does_not_come_to_dnsproxy_and_what_does_not_see_its_names() -> None:
    found = routes(ROOT, a_server="a.example.org {\n}\nexample.net {\n}\n")
    (note,) = notes_on_keys(["example.org"], found.keys)
    assert note.endswith("a.example.org (a.server in ConfigMap kube-system/coredns-custom, line 1)")
    assert list(notes_on_keys(["example.com"], found.keys)) == []
    (note,) = notes_on_plugins(found)
    assert "hosts (Corefile" in note
    assert "rewrite (Corefile" in note
    assert list(notes_on_plugins(routes("forward . 192.0.2.1"))) == []

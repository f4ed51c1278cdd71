"""Which names keep their own answers for the sake of others."""

from __future__ import annotations

import pytest

from dnsproxy.cluster_dns.found import FoundCorefile
from dnsproxy.cluster_dns.method_choice import Method, choose_method
from dnsproxy.cluster_dns.routes import find_routes
from dnsproxy.corefile.rewrite_lines import Rewrite
from dnsproxy.dns.names import Reach
from dnsproxy.install.change.importing import path_of_key
from dnsproxy.install.change.rewrite_rules import Rules
from tests.dnsproxy.cluster_dns.test_rewrite_place import tenant
from tests.kit.manifest_cluster import Manifest, discover

RELAY = "switchback/relay"
LATE = "import /etc/coredns/custom/*.override"


def rules(objects: list[Manifest], absent: frozenset[str] = frozenset()) -> Rules:
    found = discover(objects)
    choice = choose_method(found, Method.OVERRIDE_REWRITES)
    server = found.asked_by_pods
    assert server is not None
    assert isinstance(server.corefile, FoundCorefile)
    assert choice.hook is not None
    assert choice.target is not None, choice.why
    routes = find_routes(server.corefile, choice.target, path_of_key(choice.hook, choice.target))
    return Rules(routes, choice.domain, absent)


def corefile(*lines: str, after: str = "") -> str:
    inner = ["kubernetes cluster.local in-addr.arpa ip6.arpa", *lines]
    return "\n".join([".:53 {", *(f"    {line}" for line in inner), "}", after])


def name(hostname: str) -> Rewrite:
    return Rewrite(hostname, Reach.NAME, RELAY)


def wildcard(hostname: str) -> Rewrite:
    return Rewrite(hostname, Reach.ANY_LABELS, RELAY)


FORWARD = "forward . /etc/resolv.conf"
CORP = "forward corp.example.org 10.0.0.5"


@pytest.mark.parametrize(
    ("objects", "rewrite", "why"),
    [
        pytest.param(tenant(), name("app.example.org"), "", id="a name of nobody else"),
        pytest.param(tenant(), wildcard("*.example.org"), "", id="a wildcard of nobody else"),
        pytest.param(
            tenant(), name("api.cluster.local"), "the cluster's own names are in cluster.local", id="a cluster name"
        ),
        pytest.param(tenant(), name("cluster.local"), "are in cluster.local", id="the cluster domain"),
        pytest.param(tenant(), wildcard("*.local"), "are in cluster.local", id="a wildcard above the cluster domain"),
        pytest.param(tenant(), name("1.0.10.in-addr.arpa"), "are in in-addr.arpa", id="a reverse name"),
        pytest.param(
            tenant(corefile(FORWARD, LATE).replace("cluster.local", "cluster.local k8s.example.org")),
            name("a.k8s.example.org"),
            "are in k8s.example.org",
            id="the second cluster domain",
        ),
        pytest.param(
            tenant(corefile(CORP, FORWARD, LATE)),
            name("app.corp.example.org"),
            "names of corp.example.org go to `forward corp.example.org` (Corefile in ConfigMap kube-system/coredns",
            id="another forward",
        ),
        pytest.param(
            tenant(corefile(FORWARD, CORP, LATE)), wildcard("*.corp.example.org"), "go to `forward corp", id="its zone"
        ),
        pytest.param(tenant(corefile(CORP, FORWARD, LATE)), wildcard("*.example.org"), "", id="above its zone"),
        pytest.param(
            tenant(corp_override=f"{CORP}\n"),
            name("app.corp.example.org"),
            "(corp.override in ConfigMap kube-system/coredns-custom, line 1)",
            id="another forward in a file",
        ),
        pytest.param(
            tenant(corefile(f"{FORWARD} {{", "except corp.example.org", "}", LATE)),
            name("app.corp.example.org"),
            "names of corp.example.org go to the upstreams beside `forward .`",
            id="except",
        ),
        pytest.param(
            tenant(corefile(FORWARD, LATE, after="corp.example.org:53 {\n forward . 10.0.0.5\n}\n")),
            name("app.corp.example.org"),
            "names of corp.example.org go to the server block of corp.example.org:53",
            id="another server block",
        ),
        pytest.param(
            tenant(a_override="rewrite name app.example.org other.example.net\n"),
            name("app.example.org"),
            "rewrite (a.override in ConfigMap kube-system/coredns-custom, line 1) has it",
            id="a rewrite before ours",
        ),
        pytest.param(
            tenant(z_override="rewrite name suffix .example.org .example.net\n"),
            name("app.example.org"),
            "rewrite (z.override in ConfigMap kube-system/coredns-custom, line 1) has it",
            id="a rewrite after ours",
        ),
        pytest.param(
            tenant(z_override="rewrite name app.example.org other.example.net\n"),
            wildcard("*.example.org"),
            "has names below it",
            id="a rewrite after our wildcard",
        ),
        pytest.param(
            tenant(a_override="rewrite name app.example.org other.example.net\n"),
            wildcard("*.example.org"),
            "",
            id="a rewrite before our wildcard",
        ),
        pytest.param(
            tenant(hosts_override="hosts {\n 192.0.2.9 app.example.org\n fallthrough\n}\n"),
            name("app.example.org"),
            "hosts (hosts.override in ConfigMap kube-system/coredns-custom, line 1) has it",
            id="hosts",
        ),
        pytest.param(
            tenant(corefile("hosts {", "192.0.2.9 app.example.org", "fallthrough", "}", FORWARD, LATE)),
            name("other.example.org"),
            "",
            id="another name in hosts",
        ),
    ],
)
def test_a_name_is_refused_for_the_sake_of_others(objects: list[Manifest], rewrite: Rewrite, why: str) -> None:
    said = rules(objects).refuse(rewrite)
    assert (why in said) if why else (said == "")


def test_a_service_that_the_clusters_dns_does_not_know_is_refused() -> None:
    found = rules(tenant(), frozenset([RELAY]))
    assert found.refuse(name("app.example.org")) == f"the cluster's DNS has no address of Service {RELAY}"
    assert found.refuse(Rewrite("app.example.org", Reach.NAME, "web/other")) == ""


def test_our_own_lines_are_none_of_others() -> None:
    ours = "# BEGIN switchback\nrewrite stop name exact app.example.org. a.b.svc.cluster.local. answer auto\n"
    found = rules(tenant(switchback_override=f"{ours}# END switchback\n"))
    assert found.refuse(name("app.example.org")) == ""


def test_zones_of_others_are_named_once_and_only_if_hosts_may_have_them() -> None:
    blocks = "10.0.0.0/8 {\n forward . 10.0.0.5\n}\ncorp.example.org:53 {\n forward . 10.0.0.5\n}\n"
    found = rules(tenant(corefile(CORP, "forward under_score.example.org 10.0.0.5", FORWARD, LATE, after=blocks)))
    assert sorted(found.foreign) == ["corp.example.org", "under_score.example.org"]


def test_lines_whose_names_are_not_known_are_noted() -> None:
    text = "rewrite name regex (.*)\\.example\\.org {1}.example.net\ntemplate IN A example.org {\n rcode NXDOMAIN\n}\n"
    bypassed, regex = rules(tenant(a_override=text)).notes()
    assert bypassed.startswith("rewritten names bypass these directives of the block of .: template (a.override in")
    assert regex.startswith("a rewrite of others has a regular expression, which is not compared with names (a.")
    assert list(rules(tenant()).notes()) == []

"""Which hosts another line of the cluster's DNS answers before the stanza."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import pytest

from dnsproxy.cluster_dns.found import Found
from dnsproxy.cluster_dns.method_choice import Method
from dnsproxy.cluster_dns.taken_hosts import find_taken_hosts, find_taken_lines
from dnsproxy.corefile.plan import plan_install
from dnsproxy.corefile.zones import ROOT
from sidecar.values.endpoints import Endpoint
from tests.kit.manifest_cluster import discover, manifests, pick

HOSTS = ["app.example.org", "*.apps.example.org", "shop.example.net", "app.example.org"]


def taken(lines: str, *, block: str = "", method: Method = Method.COREFILE, zone: str = ROOT) -> list[str]:
    """The hosts that are taken, where a stock Corefile has these lines before its forward, and another block."""
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace("    forward", f"{lines}\n    forward", 1) + block
    found = find_taken_lines(discover(objects), method, [zone])
    return [host for host, _ in find_taken_hosts(found, HOSTS, [zone]).hosts]


@pytest.mark.parametrize(
    ("lines", "hosts"),
    [
        pytest.param("", [], id="a stock Corefile"),
        pytest.param("    forward example.org 192.0.2.9", ["*.apps.example.org", "app.example.org"], id="a forward"),
        pytest.param(
            "    template IN A apps.example.org {\n        rcode NXDOMAIN\n    }", ["*.apps.example.org"], id="a zone"
        ),
        pytest.param("    rewrite name exact app.example.org a.example", ["app.example.org"], id="a name"),
        pytest.param("    rewrite name exact x.apps.example.org a.example", [], id="one name below a wildcard"),
        pytest.param("    rewrite name suffix ample.org .example", [HOSTS[1], HOSTS[0]], id="a suffix amid a label"),
        pytest.param("    rewrite name regex .*[.]example[.]org a.example", [], id="a regular expression"),
        pytest.param("    hosts /etc/hosts {\n        fallthrough\n    }", [], id="a file"),
        pytest.param("    hosts /etc/hosts example.net", ["shop.example.net"], id="a file that leaves nothing"),
    ],
)
def test_a_line_takes_what_it_answers(lines: str, hosts: list[str]) -> None:
    assert taken(lines) == hosts


def test_a_block_of_a_longer_zone_takes_its_names_and_one_of_another_port_none() -> None:
    assert taken("", block="example.net:53 {\n    forward . 192.0.2.9\n}\n") == ["shop.example.net"]
    assert taken("", block="example.net:5353 {\n    forward . 192.0.2.9\n}\n") == []


def test_before_a_server_block_of_our_own_no_line_of_another_block_counts() -> None:
    line = "    rewrite name exact app.example.org a.example"
    assert taken(line, method=Method.IMPORT, zone="example.org.") == []
    assert taken(line, method=Method.STUB_DOMAINS, zone="example.org.") == []


def test_a_host_outside_the_zones_of_the_stanza_is_not_its_business() -> None:
    line = "    rewrite name suffix .example.org .example"
    assert taken(line, zone="example.net.") == []
    assert taken(line, zone="apps.example.org.") == ["*.apps.example.org"]


def test_a_forward_leaves_what_it_excepts_and_one_after_the_stanza_takes_nothing() -> None:
    lines = "    forward example.org 192.0.2.9 {\n        except apps.example.org\n    }"
    assert taken(lines) == ["app.example.org"]
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace("    cache", "    forward example.org 192.0.2.9\n    cache", 1)
    lines_after = find_taken_lines(discover(objects), Method.COREFILE, [ROOT])
    assert find_taken_hosts(lines_after, HOSTS, [ROOT]).hosts == ()
    data["Corefile"] = data["Corefile"].replace("       max_concurrent 1000", "       except example.net", 1)
    (host,) = find_taken_hosts(find_taken_lines(discover(objects), Method.COREFILE, [ROOT]), HOSTS, [ROOT]).hosts
    assert host[0] == "shop.example.net"
    assert host[1].startswith("the upstreams beside `forward .` (")


def installed(lines: str, *, zones: tuple[str, ...] = (ROOT,), after: str = "") -> Found:
    """A stock Corefile with these lines before its forward, a stanza of ours, and lines after the forward."""
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    text = (
        data["Corefile"]
        .replace("    forward", f"{lines}\n    forward", 1)
        .replace("    cache", f"{after}\n    cache", 1)
    )
    data["Corefile"] = plan_install(
        text, addresses=[Endpoint("10.96.0.53", 53)], coredns_version=(1, 11, 1), zones=zones
    ).new
    return discover(objects)


def test_the_forward_that_the_stanza_of_a_zone_stands_before_takes_nothing_from_it() -> None:
    zones = ("example.org.",)
    found = installed("    forward example.org 192.0.2.9 {\n        except apps.example.org\n    }", zones=zones)
    lines = find_taken_lines(found, Method.COREFILE, zones)
    ((host, what),) = find_taken_hosts(lines, HOSTS, zones).hosts
    assert host == "*.apps.example.org"
    assert what.startswith("the upstreams beside `forward example.org` (")


def test_the_number_of_a_line_after_the_stanza_is_that_of_the_file_as_it_is() -> None:
    found = installed("", after="    hosts {\n        192.0.2.1 app.example.org\n        fallthrough\n    }")
    (line,) = find_taken_lines(found, Method.COREFILE, [ROOT])
    assert found.server is not None
    assert found.server.corefile is not None
    number = found.server.corefile.text.splitlines().index("    hosts {") + 1
    assert line.what == f"hosts (Corefile in ConfigMap kube-system/coredns, line {number})"
    assert line.text == "192.0.2.1 app.example.org"


@pytest.mark.parametrize(
    ("lines", "block", "first"),
    [
        pytest.param(
            "    hosts {\n        192.0.2.1 app.example.org\n        fallthrough\n    }\n"
            "    rewrite name app.example.org a.example",
            "",
            "rewrite (",
            id="a rewrite below hosts",
        ),
        pytest.param(
            "    rewrite name app.example.org a.example",
            "example.org:53 {\n    forward . 192.0.2.9\n}\n",
            "the server block of example.org:53 (",
            id="a rewrite of the block of the root",
        ),
        pytest.param(
            "    rewrite name suffix .example.org .example\n    rewrite name app.example.org a.example",
            "",
            "rewrite (Corefile in ConfigMap kube-system/coredns, line 13)",
            id="two rewrites",
        ),
    ],
)
def test_of_several_lines_the_one_that_coredns_asks_first_is_named(lines: str, block: str, first: str) -> None:
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace("    forward", f"{lines}\n    forward", 1) + block
    found = find_taken_lines(discover(objects), Method.COREFILE, [ROOT])
    whats = dict(find_taken_hosts(found, HOSTS, [ROOT]).hosts)
    assert whats["app.example.org"].startswith(first)


def test_a_cache_on_the_nodes_that_asks_the_upstreams_itself_has_the_only_lines_that_count() -> None:
    objects = manifests("kubeadm-nodelocal")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace(
        "    forward", "    rewrite name app.example.org a.example\n    forward", 1
    )
    found = discover(objects)
    assert found.node_local is not None
    counted = {
        passes: find_taken_lines(
            replace(found, node_local=replace(found.node_local, passes_on=passes)), Method.COREFILE, [ROOT]
        )
        for passes in (True, False)
    }
    rewrites = {
        passes: [line for line in lines if line.what.startswith("rewrite (")] for passes, lines in counted.items()
    }
    assert (len(rewrites[True]), rewrites[False]) == (1, [])


def test_thousands_of_hosts_and_lines_are_compared_within_a_second() -> None:
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    hosts = [f"h{number}.example.org" for number in range(8000)]
    lines = "\n".join(f"    rewrite name {host} a.example" for host in hosts)
    data["Corefile"] = data["Corefile"].replace("    forward", f"{lines}\n    forward", 1)
    found = find_taken_lines(discover(objects), Method.COREFILE, [ROOT])
    started = process_time()
    assert len(find_taken_hosts(found, hosts, [ROOT]).hosts) == len(hosts)
    assert process_time() - started < 1


def test_what_coredns_would_not_load_takes_nothing() -> None:
    assert taken("    hosts {\n        192.0.2.1 app.example.org\n    }\n    hosts {\n    }") == []


def test_a_sentence_names_the_line_and_its_hosts() -> None:
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace("    forward", "    rewrite name suffix .org .example\n    forward", 1)
    lines = find_taken_lines(discover(objects), Method.COREFILE, [ROOT])
    (sentence,) = find_taken_hosts(lines, HOSTS, [ROOT]).sentences()
    assert sentence.startswith("rewrite (Corefile in ConfigMap kube-system/coredns, line ")
    assert sentence.endswith(") answers *.apps.example.org, app.example.org")

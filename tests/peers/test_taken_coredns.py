"""What is said of a line before the stanza is what a real CoreDNS does: what it takes never comes to dnsproxy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dnsproxy.cluster_dns.method_choice import Method
from dnsproxy.cluster_dns.taken_hosts import find_taken_hosts, find_taken_lines
from dnsproxy.corefile.plan import plan_install
from dnsproxy.corefile.zones import ROOT
from sidecar.values.endpoints import Endpoint
from tests.kit.coredns import answering, coredns_version, running_coredns
from tests.kit.manifest_cluster import discover, manifests, pick

pytestmark = pytest.mark.peer("coredns")

RELAY = "192.0.2.81"
"""What dnsproxy answers for its hosts, and for no other name."""
HOSTS = ["app.example.org", "x.apps.example.org", "apps.example.org", "shop.example.net", "badexample.org"]
LINES = {
    "nothing": "",
    "hosts": "hosts {\n 192.0.2.9 app.example.org\n fallthrough\n }",
    "hosts of IPv6": "hosts {\n 2001:db8::9 app.example.org\n fallthrough\n }",
    "hosts that leave a zone": "hosts {\n 192.0.2.9 other.example.com\n fallthrough example.org\n }",
    "hosts that leave nothing": "hosts {\n 192.0.2.9 other.example.com\n }",
    "hosts of a zone": "hosts /dev/null example.net {\n 192.0.2.9 other.example.net\n }",
    "a rewrite": "rewrite name app.example.org nothing.example.com",
    "a suffix": "rewrite name suffix example.org example.com",
    "a prefix": "rewrite stop name prefix x. y.",
    "a substring": "rewrite name substring shop. other.",
    "another type": "rewrite type MX A",
    "a template": "template IN A example.org {\n rcode NXDOMAIN\n }",
    "a template for both": "template ANY ANY apps.example.org example.net {\n rcode NXDOMAIN\n }",
    "a template for MX": "template IN MX example.org {\n rcode NXDOMAIN\n }",
    "a forward": "forward example.org 127.0.0.1:{other}",
    "a forward with an exception": "forward example.org 127.0.0.1:{other} {\n except apps.example.org\n }",
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """The ports of dnsproxy, whose part a CoreDNS plays here, and of the original upstream."""
    folder = tmp_path_factory.mktemp("servers")
    hosts = "\n".join(f"{RELAY} {host}" for host in HOSTS)
    table = f". {{\n bind 127.0.0.1\n hosts {{\n {hosts}\n }}\n}}\n"
    with running_coredns(folder, table) as own, running_coredns(folder, answering("198.51.100.7")) as other:
        yield own.port, other.port


@pytest.mark.parametrize(
    ("before", "option", "after"),
    [
        *(pytest.param(line, "", "", id=name) for name, line in LINES.items()),
        pytest.param("", "except example.org", "", id="an exception of the original"),
        pytest.param("", "", "forward example.org 127.0.0.1:{other}", id="a forward after the original"),
        pytest.param("", "", "}\nexample.org {\n bind 127.0.0.1\n forward . 127.0.0.1:{other}", id="a block"),
    ],
)
def test_a_host_comes_to_dnsproxy_if_and_only_if_no_line_takes_it(
    before: str, option: str, after: str, servers: tuple[int, int], tmp_path: Path
) -> None:
    own, other = servers
    text = f". {{\n bind 127.0.0.1\n {before}\n forward . 127.0.0.1:{{other}} {{\n {option}\n }}\n {after}\n}}\n"
    text = text.replace("{other}", str(other))
    stanza = plan_install(text, addresses=[Endpoint("127.0.0.1", own)], coredns_version=coredns_version()).new
    objects = manifests("kubeadm")
    pick(objects, "ConfigMap", "coredns")["data"]["Corefile"] = stanza
    lines = find_taken_lines(discover(objects), Method.COREFILE, [ROOT])
    taken = {host for host, _ in find_taken_hosts(lines, HOSTS, [ROOT]).hosts}
    with running_coredns(tmp_path, stanza) as coredns:
        answers = {host: coredns.addresses(host) for host in HOSTS}
    assert {host for host, found in answers.items() if found != [RELAY]} == taken

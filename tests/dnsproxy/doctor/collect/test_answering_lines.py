"""The lines of others in a cluster's DNS become facts, with and without what we installed."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from dnsproxy.cluster_dns.requests import Answer, Denied, Request
from dnsproxy.corefile.plan import plan_install
from dnsproxy.corefile.taken_names import Match
from dnsproxy.doctor.collect import looking
from dnsproxy.doctor.collect.bounded_work import Finished
from dnsproxy.doctor.collect.looking import look
from dnsproxy.doctor.collect.read_own import make_dns
from dnsproxy.doctor.facts.cluster_dns import AnsweringLine, ClusterDns
from dnsproxy.doctor.facts.model import VERSION, Facts
from dnsproxy.doctor.facts.probes import Lookup
from dnsproxy.doctor.judge.paths import Paths
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.doctor.collect.cluster_api import PLACES
from tests.dnsproxy.doctor.making import DNSPROXY, HOST, STANZA
from tests.kit.manifest_cluster import discover, manifests, pick

REWRITE = f"    rewrite name {HOST} hairpin-proxy.hairpin-proxy.svc.cluster.local # another tool\n"
WHAT = "rewrite (Corefile in ConfigMap kube-system/coredns, line {line})"


def read(line: str, *, zones: tuple[str, ...] = (), forbidden: bool = False) -> ClusterDns:
    """A stock cluster's DNS with a line of others above the plugin `ready`, and with a stanza if there are zones."""
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    text = data["Corefile"].replace("    ready\n", f"{line}    ready\n", 1)
    own = [Endpoint(DNSPROXY, 53)]
    data["Corefile"] = plan_install(text, addresses=own, coredns_version=(1, 11, 1), zones=zones).new if zones else text

    def denies(request: Request) -> Answer:
        return Denied("no") if forbidden and request.kind.name == "ConfigMap" else None

    return make_dns(discover(objects, denies=denies), own)


@pytest.mark.parametrize("zones", [(), (".",), ("example.org.",)], ids=["no stanza", "a stanza", "a stanza of a zone"])
def test_a_line_is_a_fact_of_no_host_in_particular(zones: tuple[str, ...]) -> None:
    to = "hairpin-proxy.hairpin-proxy.svc.cluster.local"
    line = AnsweringLine(WHAT.format(line=6), Match.EXACT, f"{HOST}.", to, f"rewrite name {HOST} {to}")
    assert read(REWRITE, zones=zones).lines == (line,)


def test_a_long_line_is_cut() -> None:
    (line,) = read(f"    rewrite name {HOST} {'a.' * 120}\n").lines
    assert len(line.text) < 130
    assert line.text.endswith("...")


def test_what_a_line_leaves_to_others_is_a_fact_too() -> None:
    lines = read("    hosts /etc/hosts {\n        fallthrough example.org\n    }\n", zones=(".",)).lines
    assert {one.name for line in lines for one in line.excepted} == {"example.org.", ".example.org."}
    assert all(not line.gives for line in lines)


@pytest.mark.parametrize(
    "dns",
    [
        pytest.param(read(REWRITE, zones=(".",), forbidden=True), id="forbidden"),
        pytest.param(read("    hosts {\n    }\n    hosts {\n    }\n"), id="what CoreDNS does not load"),
        pytest.param(read("    errors }\n"), id="no Corefile"),
        pytest.param(read(""), id="a stock Corefile"),
    ],
)
def test_without_a_readable_line_there_is_no_fact(dns: ClusterDns) -> None:
    assert dns.lines == ()


@pytest.mark.parametrize(
    ("dns", "asked"),
    [
        pytest.param(read(REWRITE, zones=(".",)), [HOST], id="a line before the stanza"),
        pytest.param(read(REWRITE, zones=("example.net.",)), [], id="a stanza of another zone"),
        pytest.param(read(REWRITE), [], id="no stanza"),
        pytest.param(ClusterDns(stanzas=(STANZA,)), [], id="no line"),
    ],
)
async def test_dnsproxy_is_asked_only_for_the_hosts_that_it_does_not_get(
    dns: ClusterDns, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    async def look_up_all(hostnames: Any, servers: dict[str, Endpoint], *_: object) -> Finished[Any]:
        await trio.lowlevel.checkpoint()
        names.extend(hostnames if "dnsproxy" in servers else ())
        return Finished(tuple(Lookup(name, "dnsproxy", DNSPROXY) for name in hostnames if "dnsproxy" in servers), 0, 0)

    async def ask_all(*_: object) -> tuple[()]:
        await trio.lowlevel.checkpoint()
        return ()

    monkeypatch.setattr(looking, "look_up_all", look_up_all)
    monkeypatch.setattr(looking, "ask_all", ask_all)
    monkeypatch.setattr(looking, "public_server", lambda *_: None)
    seen = await look(Facts(VERSION, hostname=HOST, dns=dns), Paths(()), PLACES, lambda _: None)
    assert names == asked
    assert [one.hostname for one in seen.own_lookups] == asked

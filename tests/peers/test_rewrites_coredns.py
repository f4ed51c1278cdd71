"""Rewrite lines in the oldest and the newest CoreDNS, whose plugin kubernetes follows a real, dual-stack API server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import pytest
import trio

from dnsproxy.answers.table import Host
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.cluster_dns.probe_results import Presence
from dnsproxy.cluster_dns.probing import ask
from dnsproxy.corefile.model import Scope
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.rewrite_lines import Rewrite, format_rewrites, parse_rewrites
from dnsproxy.dns.names import Reach, to_wire
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.admin.test_rewritable_names import found_in, lines_of
from tests.dnsproxy.corefile.rewrite_shapes import REWRITES, golden_of
from tests.dnsproxy.corefile.shapes import read
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.coredns import CoreDns, answering, running_coredns
from tests.kit.polling import poll_until
from tests.kit.ports import free_port
from tests.kit.tenant_dns import CUSTOM, TENANT, with_kubeconfig

pytestmark = [pytest.mark.peer("coredns", "etcd", "kube-apiserver"), pytest.mark.timeout(300)]

BOTH: Final = [
    pytest.param("coredns", id="newest"),
    pytest.param("coredns-old", id="oldest", marks=pytest.mark.peer("coredns-old")),
]
DOMAIN: Final = "cluster.local"
BY_UPSTREAM: Final = "192.0.2.2"
FAMILIES: Final = {"relay": ["IPv4", "IPv6"], "four": ["IPv4"], "six": ["IPv6"], "other": ["IPv4", "IPv6"]}
"""The Services of the namespace `web`."""


@dataclass(frozen=True)
class Cluster:
    """An API server, and the ClusterIPs of its Services by family."""

    server: ApiServer
    addresses: Mapping[str, Mapping[str, str]]

    def of(self, service: str, qtype: str) -> list[str]:
        """The addresses of `NAMESPACE/NAME`."""
        family = "IPv4" if qtype == "A" else "IPv6"
        found = self.addresses[service.partition("/")[2]].get(family)
        return [found] if found else []


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("dual-stack")
    with running_apiserver(folder, service_range="10.96.0.0/16,fd00:10:96::/112") as server:
        server.create_namespace("web")
        addresses = {}
        for name, families in FAMILIES.items():
            policy = "PreferDualStack" if len(families) > 1 else "SingleStack"
            spec = {"ports": [{"name": "https", "port": 443}], "ipFamilies": families, "ipFamilyPolicy": policy}
            service = {"metadata": {"name": name}, "spec": {**spec, "selector": {"app": name}}}
            made = server.request("POST", "/api/v1/namespaces/web/services", service)
            addresses[name] = dict(zip(families, made["spec"]["clusterIPs"], strict=True))
        yield Cluster(server, addresses)


@dataclass(frozen=True)
class Asker:
    """A CoreDNS, asked for any type."""

    coredns: CoreDns

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.coredns.address, self.coredns.port)

    def ask(self, name: str, qtype: str = "A", *, tcp: bool = False, **options: Any) -> dns.message.Message:
        query = dns.message.make_query(name, qtype, **options)
        exchange = dns.query.tcp if tcp else dns.query.udp
        return exchange(query, self.coredns.address, port=self.coredns.port, timeout=10)

    def addresses(self, name: str, qtype: str = "A") -> list[str]:
        return [str(one) for answer in self.ask(name, qtype).answer for one in answer]


@contextmanager
def rewriting(
    cluster: Cluster, folder: Path, peer: str, files: Mapping[str, Iterable[str]], corefile: str = TENANT
) -> Iterator[Asker]:
    """A tenant's CoreDNS with these files in its import, and an upstream that gives every name one address."""
    custom = folder / "custom"
    custom.mkdir()
    for name, lines in files.items():
        (custom / name).write_text("".join(f"{line}\n" for line in lines))
    with running_coredns(folder, answering(BY_UPSTREAM)) as upstream:
        port = free_port()
        text = with_kubeconfig(corefile, cluster.server.kubeconfig).replace(CUSTOM, str(custom))
        text = text.replace(":53", f":{port}").replace("/etc/resolv.conf", f"127.0.0.1:{upstream.port}")
        with running_coredns(folder, text, port=port, peer=peer) as coredns:
            asker = Asker(coredns)
            reference = f"six.web.svc.{DOMAIN}"
            poll_until(lambda: asker.addresses(reference, "AAAA"), "the Services in CoreDNS", seconds=60)
            yield asker


def name(hostname: str, service: str = "web/relay") -> Rewrite:
    return Rewrite(hostname, Reach.NAME, service)


def ours(*rewrites: Rewrite) -> dict[str, tuple[str, ...]]:
    return {"switchback.override": format_rewrites(rewrites, DOMAIN)}


@pytest.mark.parametrize("peer", BOTH)
@pytest.mark.parametrize("golden", REWRITES)
def test_coredns_loads_every_golden(golden: str, peer: str, tmp_path: Path) -> None:
    text = read(golden_of(golden))
    with running_coredns(tmp_path, f". {{\n{text}\n whoami\n}}\n", peer=peer) as coredns:
        assert coredns.ask("other.example.com").question


@pytest.mark.parametrize("peer", BOTH)
def test_a_name_is_answered_with_the_addresses_of_its_service_under_its_own_name(
    peer: str, cluster: Cluster, tmp_path: Path
) -> None:
    files = ours(name("app.example.org"), name("four.example.org", "web/four"), name("six.example.org", "web/six"))
    with rewriting(cluster, tmp_path, peer, files) as dns_:
        for qtype in ("A", "AAAA"):
            reply = dns_.ask("app.example.org", qtype)
            (answer,) = reply.answer
            assert (str(answer.name), dns.rdatatype.to_text(answer.rdtype)) == ("app.example.org.", qtype)
            assert [str(one) for one in answer] == cluster.of("web/relay", qtype)
            assert str(reply.question[0].name) == "app.example.org."
        for hostname, missing in (("four.example.org", "AAAA"), ("six.example.org", "A")):
            reply = dns_.ask(hostname, missing)
            assert (reply.rcode(), reply.answer) == (dns.rcode.NOERROR, [])
            assert [dns.rdatatype.to_text(one.rdtype) for one in reply.authority] == ["SOA"]
        # Case is echoed in the question, and names are compared without it (RFC 4343).
        mixed = dns_.ask("aPP.Example.ORG")
        assert str(mixed.question[0].name) == "aPP.Example.ORG."
        assert [str(one) for one in mixed.answer[0]] == cluster.of("web/relay", "A")
        edns = dns_.ask("app.example.org", use_edns=0, payload=1232)
        assert (edns.edns, edns.rcode()) == (0, dns.rcode.NOERROR)
        assert [str(one) for one in edns.answer[0]] == cluster.of("web/relay", "A")
        assert [str(one) for one in dns_.ask("app.example.org", tcp=True).answer[0]] == cluster.of("web/relay", "A")


@pytest.mark.parametrize("peer", BOTH)
def test_other_types_get_no_data_and_other_names_are_left_alone(peer: str, cluster: Cluster, tmp_path: Path) -> None:
    with rewriting(cluster, tmp_path, peer, ours(name("app.example.org"))) as dns_:
        for qtype in ("MX", "TXT", "HTTPS", "CAA", "NS", "SOA", "CNAME"):
            reply = dns_.ask("app.example.org", qtype)
            assert (reply.rcode(), reply.answer) == (dns.rcode.NOERROR, []), qtype
        for other in ("example.org", "a.app.example.org", "xapp.example.org", "app.example.org.example.net", "org"):
            assert dns_.addresses(other) == [BY_UPSTREAM], other
        assert dns_.addresses(f"relay.web.svc.{DOMAIN}") == cluster.of("web/relay", "A")
        assert dns_.ask(f"none.web.svc.{DOMAIN}").rcode() == dns.rcode.NXDOMAIN


@pytest.mark.parametrize("peer", BOTH)
def test_a_service_that_does_not_exist_makes_its_names_vanish(peer: str, cluster: Cluster, tmp_path: Path) -> None:
    """Worse than before: so such a name must leave the lines."""
    with rewriting(cluster, tmp_path, peer, ours(name("app.example.org", "web/gone"))) as dns_:
        assert dns_.ask("app.example.org").rcode() == dns.rcode.NXDOMAIN


@pytest.mark.parametrize("peer", BOTH)
async def test_a_probe_shows_exactly_the_loaded_lines(peer: str, cluster: Cluster, tmp_path: Path) -> None:
    files = ours(name("app.example.org"))
    with rewriting(cluster, tmp_path, peer, files) as dns_:
        for lines, state, said in (
            (files["switchback.override"], Presence.YES, "8 of 8 rewritten"),
            (format_rewrites([name("shop.example.org")], DOMAIN), Presence.NO, "8 of 8 NXDOMAIN"),
            (format_rewrites([], "other.local"), Presence.NO, "1 of 1 the address of kubernetes.default.svc.other"),
        ):
            marker = parse_rewrites(parse_corefile("\n".join(lines), Scope.ROOT_PLUGINS)).marker
            with trio.fail_after(30):
                asked = await ask(dns_.endpoint, marker)
            assert asked.state is state
            assert asked.said.startswith(said)


WILD: Final = ["a", "b", "c"]


def some_table() -> TableWriter:
    """Rows of every kind below one another: of two Services, with plain addresses, of an unready Service, denied."""
    services = ["web/relay", "web/other", "web/dead", ""]
    writer = TableWriter(ttl=5, never=["c.b.example.org", "c.c.c.example.org"])
    bases = ["example.org", *(f"{one}.example.org" for one in WILD)]
    bases += [f"{a}.{b}.example.org" for a in WILD for b in WILD]
    for number, base in enumerate(bases):
        rows = [(f"{'x' if number % 3 else 'y'}.{base}", Reach.NAME), (f"*.{base}", list(Reach)[1 + number % 2])]
        for shift, (hostname, reach) in enumerate(rows):
            service = services[(number + 2 * shift) % 4]
            writer.put(Host(hostname, reach, ("192.0.2.9",), service=service))
    writer.close(["b.b.example.org"])
    writer.forward(frozenset(["web/dead"]))
    return writer


@pytest.mark.parametrize("peer", BOTH)
def test_coredns_gives_each_name_what_the_table_gives_it(peer: str, cluster: Cluster, tmp_path: Path) -> None:
    table = some_table().publish()
    lines = lines_of(found_in(table))
    labels = ["x", "y", *WILD]
    asked = {
        f"{'.'.join(one)}.example.org".lstrip(".")
        for one in [(), *((a,) for a in labels), *((a, b) for a in labels for b in labels)]
    }
    asked |= {f"{a}.{b}.{c}.example.org" for a in labels for b in WILD for c in WILD}
    asked |= {f"z.{one}" for one in sorted(asked)[:40]}
    with rewriting(cluster, tmp_path, peer, {"switchback.override": lines}) as dns_:
        for hostname in sorted(asked):
            answers = table.find(to_wire(hostname))
            service = answers.service if answers is not None and answers.addresses else ""
            expected = cluster.of(service, "A") if service else [BY_UPSTREAM]
            assert dns_.addresses(hostname) == expected, hostname


@pytest.mark.parametrize("peer", BOTH)
def test_of_two_files_for_one_name_the_first_by_name_counts(peer: str, cluster: Cluster, tmp_path: Path) -> None:
    """Why a name of another file is left to it, wherever that file stands."""
    theirs = f"rewrite name exact app.example.org other.web.svc.{DOMAIN}"
    for number, (file, service) in enumerate((("another.override", "web/other"), ("z.override", "web/relay"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        with rewriting(cluster, folder, peer, {**ours(name("app.example.org")), file: [theirs]}) as dns_:
            assert dns_.addresses("app.example.org") == cluster.of(service, "A")


@pytest.mark.parametrize("peer", BOTH)
def test_autopath_answers_past_the_lines(peer: str, cluster: Cluster, tmp_path: Path) -> None:
    """Why a Corefile with autopath is refused: `app.example.org` is what a pod with ndots:5 asks for last."""
    (tmp_path / "search").write_text(f"search default.svc.{DOMAIN}\nnameserver 127.0.0.1\n")
    corefile = TENANT.replace("    cache 30\n", f"    autopath {tmp_path}/search\n    cache 30\n")
    with rewriting(cluster, tmp_path, peer, ours(name("app.example.org")), corefile) as dns_:
        assert dns_.addresses("app.example.org") == cluster.of("web/relay", "A")
        assert dns_.addresses(f"app.example.org.default.svc.{DOMAIN}")[-1] == BY_UPSTREAM

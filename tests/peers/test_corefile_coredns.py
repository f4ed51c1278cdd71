"""The real CoreDNS accepts the same files as our parser, and every Corefile that the installer writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from dnsproxy.corefile.edits import replace_word
from dnsproxy.corefile.model import Corefile, Directive, Key, format_corefile
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.plan import plan_uninstall
from tests.dnsproxy.corefile.shapes import NEWEST, SHAPES, golden_path, installed, read, stock
from tests.dnsproxy.corefile.verdicts import ACCEPTED, REFUSED, REFUSED_SINCE
from tests.kit.coredns import CoreDns, Refused, answering, running_coredns
from tests.kit.ports import free_port

pytestmark = pytest.mark.peer("coredns")

BOTH = [
    pytest.param("coredns", id="newest"),
    pytest.param("coredns-old", id="oldest", marks=pytest.mark.peer("coredns-old")),
]

NAME = "shop.example.org"
BY_DNSPROXY, BY_UPSTREAM, BY_OTHER = "192.0.2.1", "192.0.2.2", "192.0.2.3"


@pytest.mark.parametrize("peer", BOTH)
@pytest.mark.parametrize("text", ACCEPTED)
def test_coredns_accepts_what_the_parser_accepts(text: str, peer: str, tmp_path: Path) -> None:
    with running_coredns(tmp_path, text, peer=peer):
        pass


@pytest.mark.parametrize("peer", BOTH)
@pytest.mark.parametrize("text", REFUSED)
def test_coredns_refuses_what_the_parser_refuses(text: str, peer: str, tmp_path: Path) -> None:
    with pytest.raises(Refused), running_coredns(tmp_path, text, peer=peer):
        pass


@pytest.mark.parametrize("text", REFUSED_SINCE)
def test_the_newest_coredns_refuses_what_the_parser_refuses(text: str, tmp_path: Path) -> None:
    with pytest.raises(Refused), running_coredns(tmp_path, text):
        pass


@pytest.mark.parametrize("shape", SHAPES)
def test_coredns_loads_every_golden_and_answers(shape: str, tmp_path: Path) -> None:
    port = free_port()
    text = localized(read(golden_path(shape)), port)
    assert "# BEGIN switchback" in text
    with running_coredns(tmp_path, text, port=port) as coredns:
        # The kubernetes plugin answers by itself; no query leaves the machine.
        assert coredns.ask("kubernetes.default.svc.cluster.local").question


def localized(text: str, port: int, words: dict[str, str] | None = None) -> str:
    """The Corefile on free loopback ports, without a cluster behind it, and with some words replaced."""
    corefile = parse_corefile(text)
    rewritten = {key.index: f"{key.origin.scheme}://{key.origin.zone}:{port}" for key in keys_of(corefile)}
    for block in corefile.blocks:
        for directive in block.directives:
            rewritten |= local_words(corefile, directive)
    rewritten |= {at: words[token.text] for at, token in enumerate(corefile.tokens) if words and token.text in words}
    # From the end, so that earlier indexes stay valid.
    for index in sorted(rewritten, reverse=True):
        comma = "," if corefile.tokens[index].text.endswith(",") else ""
        corefile = replace_word(corefile, index, rewritten[index] + comma)
    return format_corefile(corefile)


def keys_of(corefile: Corefile) -> list[Key]:
    return [key for block in corefile.blocks for key in block.keys]


def local_words(corefile: Corefile, directive: Directive) -> dict[int, str]:
    index, endpoint = directive.index, f"127.0.0.1:{free_port()}"
    match directive.name:
        case "health" | "ready":
            return {index: f"{directive.name} {endpoint}"}
        case "prometheus":
            return {index + 1: endpoint}
        case "kubernetes":
            options = f"{{\n endpoint http://{endpoint}\n startup_timeout 1ms\n"
            last = index + len(directive.arguments)
            return {last + 1: options} if directive.options else {last: f"{corefile.tokens[last].raw} {options}}}"}
        case _:
            return {}


@dataclass(frozen=True)
class Servers:
    """The upstreams of the tested CoreDNS; each answers every name with its own address."""

    dnsproxy: CoreDns
    upstream: CoreDns
    other: CoreDns


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    with ExitStack() as stack:
        started = [
            stack.enter_context(running_coredns(tmp_path, answering(address)))
            for address in (BY_DNSPROXY, BY_UPSTREAM, BY_OTHER)
        ]
        yield Servers(*started)


def endpoint_of(server: CoreDns) -> str:
    return f"127.0.0.1:{server.port}"


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape not in ("crlf", "snippets")])
def test_a_stock_corefile_asks_dnsproxy_first_and_its_upstreams_without_it(
    shape: str, servers: Servers, tmp_path: Path
) -> None:
    change = installed(stock(shape), endpoint_of(servers.dnsproxy), version=NEWEST)
    words = {"/etc/resolv.conf": endpoint_of(servers.upstream)}
    port = free_port()
    with running_coredns(tmp_path, localized(plan_uninstall(change.new).new, port, words), port=port) as coredns:
        assert coredns.addresses(NAME) == [BY_UPSTREAM]
    with running_coredns(tmp_path, localized(change.new, port, words), port=port) as coredns:
        # New names each time, because of the `cache` of the stock Corefile.
        assert [coredns.addresses(f"before{n}.{NAME}") for n in range(5)] == [[BY_DNSPROXY]] * 5
        servers.dnsproxy.kill()
        assert [coredns.addresses(f"after{n}.{NAME}") for n in range(5)] == [[BY_UPSTREAM]] * 5


@pytest.mark.parametrize(
    "options",
    [
        "",
        "policy round_robin",
        "max_fails 0",
        "max_connect_attempts 1",
        "force_tcp",
        "prefer_udp",
        "tls_servername dns.example.org",
        "max_concurrent 1000 expire 20s",
        "health_check 1s no_rec domain example.org",
        "failover NXDOMAIN",
        "except corp.example.org",
        "next NXDOMAIN",
        "read_timeout 1s",
        "failfast_all_unhealthy_upstreams",
    ],
    ids=lambda options: options or "none",
)
def test_the_fallback_works_under_every_option(options: str, servers: Servers, tmp_path: Path) -> None:
    forward = f"forward . {endpoint_of(servers.upstream)} {{\n  {options}\n }}"
    change = installed(f". {{\n {forward}\n}}\n", endpoint_of(servers.dnsproxy), version=NEWEST)
    with running_coredns(tmp_path, change.new) as coredns:
        assert [coredns.addresses(NAME) for _ in range(4)] == [[BY_DNSPROXY]] * 4
        servers.dnsproxy.kill()
        assert [coredns.addresses(NAME) for _ in range(4)] == [[BY_UPSTREAM]] * 4


@pytest.mark.parametrize(
    "options", ["", "max_fails 0", "max_connect_attempts 1"], ids=lambda options: options or "none"
)
def test_a_dnsproxy_that_hangs_is_passed_over(options: str, servers: Servers, tmp_path: Path) -> None:
    forward = f"forward . {endpoint_of(servers.upstream)} {{\n  {options}\n }}"
    change = installed(f". {{\n {forward}\n}}\n", endpoint_of(servers.dnsproxy), version=NEWEST)
    with running_coredns(tmp_path, change.new) as coredns:
        assert coredns.addresses(NAME) == [BY_DNSPROXY]
        servers.dnsproxy.hang()
        assert coredns.addresses(NAME) == [BY_UPSTREAM]


def test_an_address_beside_a_resolv_conf_and_another_transport_is_taken(servers: Servers, tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    upstreams = f"{tmp_path}/resolv.conf tls://127.0.0.1:{servers.upstream.port}"
    text = f". {{\n forward . {upstreams} {{\n  tls_servername dns.example.org\n }}\n}}\n"
    with running_coredns(tmp_path, installed(text, endpoint_of(servers.dnsproxy)).new) as coredns:
        assert [coredns.addresses(NAME) for _ in range(4)] == [[BY_DNSPROXY]] * 4


def test_smaller_zones_go_on_going_where_they_went(servers: Servers, tmp_path: Path) -> None:
    text = (
        f". {{\n forward corp.example.org {endpoint_of(servers.other)}\n"
        f" forward . {endpoint_of(servers.upstream)} {{\n  except lab.example.org\n }}\n"
        f" forward lab.example.org {endpoint_of(servers.other)}\n}}\n"
    )
    with running_coredns(tmp_path, installed(text, endpoint_of(servers.dnsproxy)).new) as coredns:
        assert coredns.addresses(NAME) == [BY_DNSPROXY]
        assert coredns.addresses("a.corp.example.org") == [BY_OTHER]
        assert coredns.addresses("a.lab.example.org") == [BY_OTHER]


def test_named_zones_alone_go_to_dnsproxy(servers: Servers, tmp_path: Path) -> None:
    text = f". {{\n forward . {endpoint_of(servers.upstream)}\n}}\n"
    zones = ("example.org", "shop.example.net")
    with running_coredns(tmp_path, installed(text, endpoint_of(servers.dnsproxy), zones=zones).new) as coredns:
        assert coredns.addresses(NAME) == coredns.addresses("shop.example.net") == [BY_DNSPROXY]
        assert coredns.addresses("example.net") == [BY_UPSTREAM]


def test_a_stanza_on_the_line_of_a_brace_and_one_out_of_a_snippet_work(servers: Servers, tmp_path: Path) -> None:
    upstream = endpoint_of(servers.upstream)
    for text in (f". {{ forward . {upstream}\n}}", f"(up) {{\n forward . {upstream}\n}}\n. {{\n import up\n}}\n"):
        change = installed(text, endpoint_of(servers.dnsproxy), version=NEWEST)
        with running_coredns(tmp_path, change.new) as coredns:
            assert coredns.addresses(NAME) == [BY_DNSPROXY]


def test_failover_asks_the_upstreams_where_dnsproxy_refuses(servers: Servers, tmp_path: Path) -> None:
    text = f". {{\n forward . {endpoint_of(servers.upstream)}\n}}\n"
    refusing = ". {\n template ANY ANY . {\n  rcode REFUSED\n }\n}\n"
    with running_coredns(tmp_path, refusing) as dnsproxy:
        for version, expected in ((NEWEST, [BY_UPSTREAM]), (None, [])):
            with running_coredns(tmp_path, installed(text, endpoint_of(dnsproxy), version=version).new) as coredns:
                assert coredns.addresses(NAME) == expected

"""Other names go where they went before: real CoreDNS, NSD and API server, and two upstreams that answer differently.

The node's nameserver is B; the Corefile forwards to A. dnsproxy has the rights of deploy/ alone.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
import trustme

from dnsproxy.corefile.plan import plan_install, plan_uninstall
from sidecar.values.endpoints import Endpoint
from tests.deploy.manifests import BASE, render, roles_of
from tests.kit.accounts import create_account, write_kubeconfig
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.coredns import CoreDns, coredns_version, running_coredns, started_coredns
from tests.kit.networks import root
from tests.kit.nsd import running_nsd
from tests.kit.ports import free_port
from tests.kit.processes import wait_for
from tests.kit.programs import program
from tests.kit.serve_process import Serving, serving

__all__ = ["root"]

pytestmark = [
    pytest.mark.peer("coredns", "kube-apiserver", "etcd", "nsd", "kubectl"),
    pytest.mark.usefixtures("root"),
]

NAME, ALSO, OURS, RELAY = "a.corp.example.org", "b.corp.example.org", "shop.example.org", "192.0.2.1"
AT_A, AT_B, AT_C = "192.0.2.10", "192.0.2.20", "192.0.2.30"
_PROCESS: Final = f"{os.getpid() >> 8 & 0xFF}.{os.getpid() & 0xFF}"
NODE, NOBODY = f"127.53.{_PROCESS}", f"127.54.{_PROCESS}"
"""The address of B, for port 53, because a resolv.conf has no ports; and one that must never be asked."""
CONFIG_MAPS: Final = "/api/v1/namespaces/kube-system/configmaps"


@dataclass
class World:
    """The cluster: its API server, the ports of A and C, and the files of dnsproxy."""

    api: ApiServer
    folder: Path
    a: int
    c: int
    kubeconfig: Path

    def put(self, corefile: str) -> None:
        """Write the ConfigMap, as its owner does."""
        body = {"metadata": {"name": "coredns"}, "data": {"Corefile": corefile}}
        names = [one["metadata"]["name"] for one in self.api.request("GET", CONFIG_MAPS)["items"]]
        if "coredns" in names:
            self.api.request("PUT", f"{CONFIG_MAPS}/coredns", body)
        else:
            self.api.request("POST", CONFIG_MAPS, body)

    @contextmanager
    def dnsproxy(
        self, *more: str, port: int | None = None, environment: Mapping[str, str] = MappingProxyType({})
    ) -> Iterator[Serving]:
        """The program with the flags of deploy/, ready."""
        resolv_conf = self.folder / "resolv.conf"
        resolv_conf.write_text(f"nameserver {NODE}\n", encoding="utf-8")
        words = ("--resolv-conf", str(resolv_conf), "--host", f"{OURS}={RELAY}", *more)
        with serving(self.folder, *words, port=port, environment=environment) as server:
            yield server

    def following(self) -> tuple[str, ...]:
        return ("--upstream-configmap", "kube-system/coredns", "--kubeconfig", str(self.kubeconfig))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    with ExitStack() as stack:

        def nsd(name: str, address: str, *addresses: str) -> int:
            (folder / name).mkdir()
            records = "".join(f"{one}. IN A {address}\n" for one in (NAME, ALSO, OURS))
            return stack.enter_context(running_nsd(folder / name, records, addresses=addresses))

        nsd("b", AT_B, NODE)
        ports = nsd("a", AT_A), nsd("c", AT_C)
        api = stack.enter_context(running_apiserver(folder))
        api.create_namespace("switchback")
        token = create_account(api, "switchback", "dnsproxy", roles_of(render(BASE), "dnsproxy"))
        yield World(api, folder, *ports, write_kubeconfig(api, token, folder / "dnsproxy.kubeconfig"))


def block(*lines: str) -> str:
    return "\n".join([".:53 {", "    bind 127.0.0.1", "    errors", *(f"    {line}" for line in lines), "}", ""])


def installed(text: str, server: Serving) -> str:
    return plan_install(text, addresses=[server.endpoint], coredns_version=coredns_version()).new


def on_port(text: str, port: int) -> str:
    return text.replace(".:53 {", f".:{port} {{")


@contextmanager
def coredns(folder: Path, text: str, **environment: str) -> Iterator[CoreDns]:
    """CoreDNS with a Corefile on a port of its own."""
    port = free_port()
    if not environment:
        with running_coredns(folder, on_port(text, port), port=port) as server:
            yield server
        return
    path = folder / f"Corefile-{port}"
    path.write_text(on_port(text, port), encoding="utf-8")
    with started_coredns([program("coredns"), "-conf", str(path)], folder=folder, environment=environment) as process:
        yield CoreDns(port, process)


def test_without_the_flag_another_server_would_answer_after_the_installation(world: World, tmp_path: Path) -> None:
    """The fault: dnsproxy's own upstreams are the node's."""
    before = block(f"forward . 127.0.0.1:{world.a}")
    with world.dnsproxy() as server, coredns(tmp_path, installed(before, server)) as dns:
        assert dns.addresses(NAME) == [AT_B]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["forward . 127.0.0.1:{a}"], id="an address"),
        pytest.param(["forward . 127.0.0.1:{a} {{", "    force_tcp", "}}"], id="over TCP"),
        pytest.param(["forward . 127.0.0.1:{a} {{", "    policy sequential", "}}"], id="in order"),
        pytest.param(["forward corp.example.org 127.0.0.1:{a}", "forward . 127.0.0.1:{c}"], id="a zone of its own"),
        pytest.param(
            [
                "forward . 127.0.0.1:{c} {{",
                "    except corp.example.org",
                "}}",
                "forward corp.example.org 127.0.0.1:{a}",
            ],
            id="except",
        ),
    ],
)
def test_the_same_server_answers_before_and_after_the_installation_with_dnsproxy_alive_and_dead(
    world: World, tmp_path: Path, lines: Sequence[str]
) -> None:
    before = block(*(line.format(a=world.a, c=world.c) for line in lines))
    world.put(before)
    with coredns(tmp_path, before) as dns:
        assert dns.addresses(NAME) == [AT_A]
    with world.dnsproxy(*world.following()) as server:
        until(server, lambda: asked(server.endpoint, NAME) in ([AT_A], [AT_C]))
        after = installed(before, server)
        world.put(after)
        with coredns(tmp_path, after) as dns:
            assert dns.addresses(OURS) == [RELAY]
            assert dns.addresses(NAME) == [AT_A]
            assert asked(server.endpoint, NAME) == [AT_A], "dnsproxy itself sends the name there, too"
            server.kill()
            assert dns.addresses(ALSO) == [AT_A]


@pytest.mark.parametrize("nameservers", ["", f"nameserver {NODE}\n"], ids=["an air gap", "a node that could ask"])
def test_where_nothing_is_forwarded_our_names_are_answered_and_others_go_nowhere(
    world: World, tmp_path: Path, nameservers: str
) -> None:
    before = block("hosts {", "    fallthrough", "}")
    world.put(before)
    resolv_conf = tmp_path / "resolv.conf"
    resolv_conf.write_text(nameservers, encoding="utf-8")
    with world.dnsproxy(*world.following(), "--resolv-conf", str(resolv_conf)) as server:
        after = installed(before, server)
        world.put(after)
        with coredns(tmp_path, after) as dns:
            assert dns.addresses(OURS) == [RELAY]
            assert dns.addresses(NAME) == []
        assert plan_uninstall(after).new == before


def test_a_forward_that_the_corefile_imports_is_followed_as_coredns_reads_it(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "custom"
    folder.mkdir()
    imported = f"forward . 127.0.0.1:{world.a}\n"
    (folder / "a.override").write_text(imported, encoding="utf-8")
    before = block(f"import {folder}/*.override", f"forward . 127.0.0.1:{world.c}")
    world.put(before)
    body = {"metadata": {"name": "coredns-custom"}, "data": {"a.override": imported}}
    world.api.request("POST", CONFIG_MAPS, body)
    try:
        with coredns(tmp_path, before) as dns:
            assert dns.addresses(NAME) == [AT_A]
        with world.dnsproxy(*world.following(), "--upstream-imports", "kube-system/coredns-custom") as server:
            seen: list[list[str]] = []

            def is_answered() -> bool:
                seen.append(asked(server.endpoint, NAME))
                return bool(seen[-1])

            until(server, is_answered)
            assert seen[-1] == [AT_A], "the first answer, after the ConfigMaps are read"
    finally:
        world.api.request("DELETE", f"{CONFIG_MAPS}/coredns-custom")


def test_a_change_of_the_corefile_is_followed_and_outlives_the_object(world: World) -> None:
    world.put(block(f"forward . 127.0.0.1:{world.a}"))
    with world.dnsproxy(*world.following()) as server:
        until(server, lambda: asked(server.endpoint, NAME) == [AT_A])
        world.put(block(f"forward . 127.0.0.1:{world.c}"))
        until(server, lambda: asked(server.endpoint, NAME) == [AT_C])
        world.put(block("forward . /etc/resolv.conf"))
        until(server, lambda: asked(server.endpoint, NAME) == [AT_B])
        world.put(block(f"forward . 127.0.0.1:{world.a}"))
        until(server, lambda: asked(server.endpoint, NAME) == [AT_A])
        world.api.request("DELETE", f"{CONFIG_MAPS}/coredns")
        until(server, lambda: "there is no such ConfigMap; the last good upstreams stay" in server.log.read_text())
        assert asked(server.endpoint, NAME) == [AT_A]


def test_its_own_address_in_the_corefile_is_never_an_upstream(world: World) -> None:
    """A stanza that the owner of the Corefile wrote without our markers."""
    port = free_port()
    world.put(block(f"forward . 127.0.0.1:{port} 127.0.0.1:{world.a} {{", "    policy sequential", "}"))
    with world.dnsproxy(*world.following(), port=port) as server:
        until(server, lambda: asked(server.endpoint, NAME) == [AT_A])


def test_a_restart_without_the_api_server_has_the_last_upstreams(world: World, tmp_path: Path) -> None:
    world.put(block(f"forward . 127.0.0.1:{world.a}"))
    world.api.create_ingress("shop", ["cluster.example.org"])
    snapshot = tmp_path / "snapshot"
    more = ("--source", "ingress", "--target", "192.0.2.1", "--snapshot", str(snapshot))
    with world.dnsproxy(*world.following(), *more) as server:
        until(server, lambda: snapshot.exists() and b"kube-system/coredns" in snapshot.read_bytes())
    world.api.kill()
    try:
        with world.dnsproxy(*world.following(), *more) as server:
            assert asked(server.endpoint, NAME) == [AT_A]
    finally:
        world.api.start()


def test_encrypted_lookups_stay_encrypted(world: World, tmp_path: Path) -> None:
    """A is CoreDNS over TLS; nothing reaches the node's nameserver, or A in plain text."""
    authority = trustme.CA()
    certificate = authority.issue_cert("dns.example.org")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    trusted = {"SSL_CERT_FILE": str(tmp_path / "ca.pem")}
    over_tls = free_port()
    upstream = f"tls://.:{over_tls} {{\n bind 127.0.0.1\n tls cert.pem key.pem\n forward . 127.0.0.1:{world.a}\n}}\n"
    before = block(f"forward . tls://127.0.0.1:{over_tls} {{", "    tls_servername dns.example.org", "}")
    world.put(before)
    with ExitStack() as stack:
        stack.enter_context(running_coredns(tmp_path, upstream))
        assert secured(over_tls, tmp_path / "ca.pem")
        plain = [stack.enter_context(heard(address)) for address in (("127.0.0.1", over_tls), (NOBODY, 53))]
        resolv_conf = tmp_path / "resolv.conf"
        resolv_conf.write_text(f"nameserver {NOBODY}\n", encoding="utf-8")
        flags = (*world.following(), "--resolv-conf", str(resolv_conf))
        server = stack.enter_context(world.dnsproxy(*flags, environment=trusted))
        until(server, lambda: asked(server.endpoint, NAME) == [AT_A])
        after = installed(before, server)
        world.put(after)
        with coredns(tmp_path, after, **trusted) as dns:
            assert dns.addresses(OURS) == [RELAY]
            assert dns.addresses(NAME) == [AT_A]
            server.kill()
            assert dns.addresses(ALSO) == [AT_A]
        assert [datagrams() for datagrams in plain] == [[], []]


def asked(endpoint: Endpoint, name: str) -> list[str]:
    """The addresses that a server gives; empty while it has none."""
    return CoreDns(endpoint.port, None, endpoint.host).addresses(name)  # type: ignore[arg-type]


def until(server: Serving, condition: Callable[[], bool]) -> None:
    wait_for(condition, process=server.process, log=server.log)


def secured(port: int, authority: Path) -> bool:
    context = ssl.create_default_context(cafile=os.fspath(authority))
    stream = socket.create_connection(("127.0.0.1", port), timeout=10)
    with stream, context.wrap_socket(stream, server_hostname="dns.example.org") as tls:
        return tls.version() is not None


@contextmanager
def heard(address: tuple[str, int]) -> Iterator[Callable[[], list[bytes]]]:
    """The datagrams that arrive at an address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(address)
        listening.setblocking(False)

        def read() -> list[bytes]:
            found = []
            while True:
                try:
                    found.append(listening.recv(4096))
                except BlockingIOError:
                    return found

        yield read

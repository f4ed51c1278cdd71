"""A cluster whose names are not all its own: real API server, CoreDNS with our stanza, dnsproxy, NSD as public DNS.

The law: public DNS has the records of a domain as companies have them; objects of the cluster claim more of it than
they serve. What NSD says is the truth: a test compares with it, and with a CoreDNS without our stanza.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import dns.exception
import dns.message
import dns.query
import dns.rcode

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.own_service import FoundOwn
from dnsproxy.corefile.plan import plan_install
from sidecar.values.endpoints import Endpoint
from tests.kit import gateway_api
from tests.kit.apiserver import ApiServer, collection_path, running_apiserver
from tests.kit.coredns import CoreDns, coredns_version, running_coredns
from tests.kit.polling import poll_until
from tests.kit.ports import free_port
from tests.kit.processes import is_listening, wait_for
from tests.kit.programs import program
from tests.kit.ready_services import put_endpoint
from tests.kit.scraping import is_ready
from tests.kit.serve_process import Serving, serving

BALANCER: Final = "203.0.113.10"
"""The load balancer of the ingress controller."""
NEW_BALANCER: Final = "203.0.113.11"
GATEWAY: Final = "203.0.113.20"
ROUTER: Final = "198.51.100.1"
"""A router in front of a load balancer: no status names it."""
CDN: Final = "198.51.100.30"
SECOND: Final = "198.51.100.77"
"""The second address of a name: a server elsewhere."""
ELSEWHERE: Final = "198.51.100.7"
RELAY: Final = "10.96.7.7"
GATEWAY_RELAY: Final = "10.96.7.8"
SECONDS: Final = 30.0
_TRIES: Final = 5

_OWN: Final = "switchback"
AUTO: Final = ("--target", "auto", "--routes-namespace", _OWN)
NEVER: Final = 60.0
"""Seconds of delay on a path: longer than anybody waits."""
_RECORDS: Final[Mapping[str, str]] = {
    "example.org": """@ A {elsewhere}
@ MX 10 mail
app A {balancer}
api A {balancer}
api A {second}
www A {elsewhere}
www AAAA 2001:db8:e::7
www TXT "v=spf1 -all"
mail A 198.51.100.8
mail MX 10 mail
shop CNAME shop.cdn.example.com.
nas A 198.51.100.9
a.b.c A 198.51.100.9
gate A {gateway}
home A {router}
*.apps A {balancer}
*.www A {elsewhere}
""",
    "example.com": "shop.cdn A {cdn}\nshop.cdn HTTPS 1 . ipv4hint={cdn}\n",
    "example.net": "customers A {balancer}\nother A {elsewhere}\n",
}


class PublicDns:
    """NSD on one port, for as long as the block lasts; its answers arrive by way of `port`, which can delay them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._serial = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.nsd_port = free_port()
        self.balancer = BALANCER
        self.is_changed = False
        self._write(_RECORDS)

    def start(self) -> None:
        """Start NSD, and wait until it answers."""
        log = self._folder / "nsd.log"
        with log.open("ab") as output:
            command = [program("nsd"), "-d", "-c", "nsd.conf"]
            self._process = subprocess.Popen(command, cwd=self._folder, stdout=output, stderr=output, process_group=0)
        wait_for(lambda: is_listening(self.nsd_port), process=self._process, log=log)

    def end(self) -> None:
        """End NSD: its port refuses."""
        if self._process is not None:
            # Ended in the middle of a reload, it would leave processes behind that keep its port.
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def reset(self) -> None:
        """Have the first records again, and answer."""
        if self._process is None or self.is_changed:
            self.end()
            self.balancer, self.is_changed = BALANCER, False
            self._write(_RECORDS)
            self.start()

    def lie(self) -> None:
        """Say of every name that it does not exist."""
        self._change(dict.fromkeys(_RECORDS, ""))
        poll_until(lambda: self.reading("app.example.org").rcode == "NXDOMAIN", "NSD lies", seconds=SECONDS)

    def move(self, balancer: str) -> None:
        """Have another address for the load balancer, without a moment in which nothing is answered."""
        self.balancer = balancer
        self._change(_RECORDS)
        poll_until(lambda: balancer in self.reading("app.example.org").contents(), "NSD has it", seconds=SECONDS)

    def reading(self, name: str, rtype: str = "A") -> Reading:
        """What NSD says; while it reads a zone again it may lose a query."""
        for _ in range(_TRIES):
            with suppress(dns.exception.Timeout):
                return read(self.nsd_port, name, rtype, timeout=2)
        raise AssertionError(f"NSD says nothing of {name}")

    def _change(self, records: Mapping[str, str]) -> None:
        self.is_changed = True
        self._write(records)
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def _write(self, records: Mapping[str, str]) -> None:
        self._serial += 1
        values = {"balancer": self.balancer, "gateway": GATEWAY, "router": ROUTER, "cdn": CDN}
        values |= {"second": SECOND, "elsewhere": ELSEWHERE}
        for zone, lines in records.items():
            head = f"$ORIGIN {zone}.\n$TTL 2\n@ SOA ns.example.net. hostmaster.example.net. {self._serial} 60 60 60 2\n"
            text = head + "@ NS ns.example.net.\n" + lines.format(**values)
            (self._folder / f"{zone}.zone").write_text(text, encoding="utf-8")
        rows = ["server:", "  server-count: 1", f"  ip-address: 127.0.0.1@{self.nsd_port}"]
        rows += [f'  zonesdir: "{self._folder}"', f'  xfrdir: "{self._folder}"', "  rrl-ratelimit: 0"]
        rows += [f'  {key}: "{self._folder}/{key}"' for key in ("xfrdfile", "zonelistfile", "pidfile")]
        rows += ['  username: ""', '  chroot: ""', '  database: ""', "remote-control:", "  control-enable: no"]
        for zone in records:
            rows += ["zone:", f'  name: "{zone}"', f'  zonefile: "{zone}.zone"']
        (self._folder / "nsd.conf").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


class DnsPath:
    """A path to a DNS server on loopback, on a port of its own, that can be slow."""

    def __init__(self, server: int) -> None:
        self.delay = 0.0
        """Seconds until a query is there."""
        self._server = ("127.0.0.1", server)
        self.port = free_port()
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._datagrams.bind(("127.0.0.1", self.port))
        self._streams = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self._ended = False

    def __enter__(self) -> DnsPath:
        for work in (self._carry_datagrams, self._carry_streams):
            threading.Thread(target=work, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        for one in (self._datagrams, self._streams):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _carry_datagrams(self) -> None:
        while not self._ended:
            with suppress(OSError):
                message, client = self._datagrams.recvfrom(65535)
                threading.Thread(target=self._carry, args=[message, client], daemon=True).start()

    def _carry(self, message: bytes, client: tuple[str, int]) -> None:
        time.sleep(self.delay)
        # A server that has ended refuses: nothing comes back.
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
            there.settimeout(5)
            there.connect(self._server)
            there.send(message)
            self._datagrams.sendto(there.recv(65535), client)

    def _carry_streams(self) -> None:
        while not self._ended:
            with suppress(OSError):
                client, _ = self._streams.accept()
                threading.Thread(target=self._carry_stream, args=[client], daemon=True).start()

    def _carry_stream(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(self._server, 5) as there:
            back = threading.Thread(target=_copy, args=[there, client, None], daemon=True)
            back.start()
            _copy(client, there, self)
            back.join(5)


def _copy(source: socket.socket, sink: socket.socket, path: DnsPath | None) -> None:
    """Copy to the end of the source; towards the server with the delay of the path."""
    with suppress(OSError):
        while octets := source.recv(65535):
            time.sleep(path.delay if path is not None else 0)
            sink.sendall(octets)
        sink.shutdown(socket.SHUT_WR)


@dataclass(frozen=True)
class Reading:
    """What a server says of a name and type."""

    rcode: str
    answers: frozenset[tuple[str, str, str]]
    """Owner, type and contents of each record."""

    def contents(self) -> set[str]:
        """The contents of the address records."""
        return {content for _, rtype, content in self.answers if rtype in {"A", "AAAA"}}


def read(port: int, name: str, rtype: str = "A", *, timeout: float = 10) -> Reading:
    """Ask a loopback port."""
    reply = dns.query.udp(dns.message.make_query(name, rtype), "127.0.0.1", port=port, timeout=timeout)
    answers = frozenset(
        (str(found.name).lower(), dns.rdatatype.to_text(found.rdtype), str(one))
        for found in reply.answer
        for one in found
    )
    return Reading(dns.rcode.to_text(reply.rcode()), answers)


def reply_of(port: int, message: bytes) -> bytes:
    """The reply of a loopback port, as it is."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(10)
        client.connect(("127.0.0.1", port))
        client.send(message)
        return client.recv(65535)


@dataclass
class World:
    """What a dnsproxy meets: a cluster and public DNS."""

    api: ApiServer
    public: PublicDns
    path: DnsPath
    folder: Path

    def reset(self) -> None:
        """Have public DNS and the statuses as at the beginning."""
        self.path.delay = 0
        self.public.reset()
        set_status(self.api, *INGRESSES, address=BALANCER)


@dataclass
class Scene:
    """A running dnsproxy in a world, and CoreDNS with our stanza and without it."""

    world: World
    dnsproxy: Serving
    coredns: CoreDns
    plain: CoreDns
    """With the Corefile as it was before."""

    def ask(self, name: str, rtype: str = "A") -> Reading:
        """What a pod gets."""
        return read(self.coredns.port, name, rtype)

    def wait_for(self, name: str, *addresses: str) -> None:
        """Ask until these are the addresses."""
        poll_until(lambda: self.ask(name).contents() == set(addresses), f"{name}: {addresses}", seconds=SECONDS)


@contextmanager
def running_world(folder: Path) -> Iterator[World]:
    """An API server with the objects, and public DNS."""
    (folder / "api").mkdir()
    (folder / "public").mkdir()
    with ExitStack() as stack:
        api = stack.enter_context(running_apiserver(folder / "api"))
        public = PublicDns(folder / "public")
        stack.callback(public.end)
        public.start()
        path = stack.enter_context(DnsPath(public.nsd_port))
        _put_objects(api)
        yield World(api, public, path, folder)


@contextmanager
def playing(world: World, *flags: str, target: Sequence[str] = AUTO) -> Iterator[Scene]:
    """A dnsproxy with these flags, once it is ready, and both CoreDNS."""
    where = ["--kubeconfig", str(world.api.kubeconfig), "--upstream", f"127.0.0.1:{world.path.port}"]
    sources = ["--source", "ingress", "--source", "gateway"]
    with ExitStack() as stack:
        dnsproxy = stack.enter_context(serving(world.folder, *where, *sources, *target, *flags))
        poll_until(lambda: is_ready(dnsproxy.admin), "/readyz", seconds=SECONDS)
        service = FoundOwn(ObjectRef(_OWN, "dnsproxy"), (dnsproxy.endpoint,))
        ports = free_port(), free_port()
        texts = [_corefile(port, Endpoint("127.0.0.1", world.path.port)) for port in ports]
        texts[0] = plan_install(texts[0], addresses=service.stanza_addresses, coredns_version=coredns_version()).new
        ours, plain = (
            stack.enter_context(running_coredns(world.folder, text, port=port))
            for text, port in zip(texts, ports, strict=True)
        )
        yield Scene(world, dnsproxy, ours, plain)


def set_status(api: ApiServer, *names: str, address: str) -> None:
    """What the ingress controller writes when its load balancer has this address."""
    patch = {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}
    for name in names:
        path = f"{collection_path('default')}/{name}/status"
        api.request("PATCH", path, patch, content_type="application/merge-patch+json")


INGRESSES: Final = ("shop", "preview", "apps", "home")
"""The names of the Ingresses."""


def _put_objects(api: ApiServer) -> None:
    gateway_api.install_crds(api)
    api.create_namespace(_OWN)
    one: dict[str, Any] = {"metadata": {"name": "nginx"}, "spec": {"controller": "k8s.io/ingress-nginx"}}
    api.request("POST", "/apis/networking.k8s.io/v1/ingressclasses", one)
    for name, subject, address in (
        ("relay-nginx", "ingressclass/nginx", RELAY),
        ("relay-main", "gateway/default/main", GATEWAY_RELAY),
    ):
        metadata = {"name": name, "annotations": {"switchback.dev/for": subject}}
        ports = [{"name": "http", "port": 80}, {"name": "https", "port": 443}]
        spec = {"clusterIP": address, "ports": ports, "selector": {"app": "relay"}}
        api.request("POST", f"/api/v1/namespaces/{_OWN}/services", {"metadata": metadata, "spec": spec})
        put_endpoint(api, f"{_OWN}/{name}")
    # The certificate has the whole domain, as those of cert-manager with a DNS challenge.
    wild = ["example.org", "*.example.org"]
    _put_ingress(api, "shop", ["app.example.org", "shop.example.org", "api.example.org"], wild)
    _put_ingress(api, "preview", ["*.preview.example.org"], ["*.preview.example.org"])
    _put_ingress(api, "apps", ["*.apps.example.org"], wild)
    _put_ingress(api, "home", ["home.example.org"], ["home.example.org"])
    set_status(api, *INGRESSES, address=BALANCER)
    _put_gateway(api)


def _put_ingress(api: ApiServer, name: str, hosts: Sequence[str], tls: Sequence[str]) -> None:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    spec = {
        "ingressClassName": "nginx",
        "rules": [{"host": host, "http": {"paths": paths}} for host in hosts],
        "tls": [{"hosts": list(tls), "secretName": "wildcard"}],
    }
    api.request("POST", collection_path("default"), {"metadata": {"name": name}, "spec": spec})


def _put_gateway(api: ApiServer) -> None:
    """A listener for the whole domain, the redirect to HTTPS that everybody has, and a route for one name.

    The status also names a host of the CDN: its owner may choose what stands there.
    """
    listeners = [
        gateway_api.listener("http", "*.example.org"),
        gateway_api.listener("https", "*.example.org", port=8080),
    ]
    gateway_api.create(api, "gateways", gateway_api.gateway(*listeners))
    addresses = [{"type": "IPAddress", "value": GATEWAY}, {"type": "Hostname", "value": "shop.cdn.example.com"}]
    path = "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways/main/status"
    api.request("PATCH", path, {"status": {"addresses": addresses}}, content_type="application/merge-patch+json")
    redirect = gateway_api.route("HTTPRoute", "redirect.example.org")
    del redirect["spec"]["hostnames"]
    redirect["spec"]["rules"] = [
        {"filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301}}]}
    ]
    redirect["spec"]["parentRefs"][0]["sectionName"] = "http"
    gateway_api.create(api, "httproutes", redirect)
    gateway_api.create(api, "httproutes", gateway_api.route("HTTPRoute", "gate.example.org"))


def _corefile(port: int, upstream: Endpoint) -> str:
    lines = ["bind 127.0.0.1", "errors", f"forward . {upstream}", "cache 30", "loop", "loadbalance"]
    return "\n".join([f".:{port} {{", *(f"    {line}" for line in lines), "}", ""])

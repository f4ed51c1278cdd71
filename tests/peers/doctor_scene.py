"""A cluster for the doctor: a real API server whose Services have loopback addresses, and the programs behind them.

CoreDNS with and without our stanza, dnsproxy, the relay, and nginx that requires the PROXY header: it listens on the
controller's ClusterIP and on the load balancer's address, as if kube-proxy short-circuited the latter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

from click.testing import CliRunner

from dnsproxy.cli import main
from dnsproxy.corefile.plan import plan_install
from sidecar.values.endpoints import Endpoint
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.coredns import answering, running_coredns
from tests.kit.manifest_cluster import manifests, pick
from tests.kit.nginx import nginx_expecting_proxy
from tests.kit.polling import poll_until
from tests.kit.ports import free_port, free_ports
from tests.kit.relays import relay_to
from tests.kit.serve_process import Serving, serving

HOST: Final = "app.example.org"
PLAIN_HOST: Final = "plain.example.org"
RANGE: Final = "127.96.0.0/16"
DNS: Final = "127.96.0.10"
DNSPROXY: Final = "127.96.0.53"
CONTROLLER: Final = "127.96.0.80"
PLAIN: Final = "127.96.0.81"
RELAY: Final = "127.96.0.90"
ASTRAY: Final = "127.96.0.91"
BALANCER: Final = "127.0.9.10"
PLAIN_BALANCER: Final = "127.0.9.11"
SECONDS: Final = 30.0
MERGE: Final = "application/merge-patch+json"

COREFILE: Final = """.:{port} {{
    bind 127.0.0.1
    errors
    forward . 127.0.0.1:{public}
    reload
}}
"""


class PlainHandler(BaseHTTPRequestHandler):
    """A controller without the PROXY protocol: 200 to a valid request, 400 to any other input."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name in the standard library
        """No log on stderr."""


@contextmanager
def plain_controller(port: int) -> Iterator[None]:
    """The same server at the address of its Service and of its load balancer."""
    with ExitStack() as stack:
        for address in (PLAIN, PLAIN_BALANCER):
            server = stack.enter_context(ThreadingHTTPServer((address, port), PlainHandler))
            thread = Thread(target=server.serve_forever)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
        yield


@dataclass(frozen=True)
class Scene:
    """The running programs and their addresses."""

    api: ApiServer
    stock: str
    """The Corefile without our stanza."""
    installed: str
    with_stanza: str
    """The CoreDNS with our stanza: `ADDR:PORT`."""
    without_stanza: str
    public: str
    dnsproxy: Serving
    relay_admin: str
    astray_admin: str
    addresses: Callable[[str], list[str]]
    """The cluster DNS's answer for a name."""

    def doctor(self, *arguments: str, kubeconfig: Path | None = None, dns: str | None = None) -> tuple[int, Any, str]:
        """`dnsproxy doctor --probe` as a pod: status, document, stderr."""
        where = ["--kubeconfig", str(kubeconfig or self.api.kubeconfig), "--dns", dns or self.with_stanza]
        where += ["--public-dns", self.public, "--admin", self.dnsproxy.admin, "--probe", "--output", "json"]
        done = CliRunner().invoke(main, ["doctor", *where, *arguments])
        return done.exit_code, json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout, done.stderr

    def patch(self, path: str, patch: Mapping[str, Any]) -> None:
        self.api.request("PATCH", path, patch, content_type=MERGE)

    def write_corefile(self, text: str) -> None:
        """Write it into the ConfigMap of CoreDNS's Deployment; the CoreDNS processes here have their own files."""
        self.patch("/api/v1/namespaces/kube-system/configmaps/coredns", {"data": {"Corefile": text}})


@contextmanager
def running_scene(folder: Path) -> Iterator[Scene]:
    """The whole scene, installed and healthy."""
    with ExitStack() as stack:
        enter = stack.enter_context
        (port,) = free_ports(1)
        hosts = ("127.0.0.1", CONTROLLER, BALANCER)
        enter(nginx_expecting_proxy(folder, hosts=hosts, port=port))
        enter(plain_controller(port))
        api = enter(running_apiserver(folder, service_range=RANGE))
        public = enter(running_coredns(folder, answering(BALANCER)))
        dns_port, own_port = free_port(), free_port()
        backends = {RELAY: f"{CONTROLLER}:{port}", ASTRAY: "127.0.0.1:1"}
        relays = [enter(relay_to(to, _made(folder / at), host=at)) for at, to in backends.items()]
        make_objects(api, port, own_port, [relay.port for relay in relays])
        dnsproxy = enter(
            serving(
                folder,
                *("--listen", f"{DNSPROXY}:{own_port}", "--upstream", f"127.0.0.1:{public.port}", "--ttl", "1"),
                *("--source", "ingress", "--kubeconfig", str(api.kubeconfig), "--target", "service:switchback/relay"),
            )
        )
        stock = COREFILE.format(port=dns_port, public=public.port)
        installed = plan_install(stock, addresses=[Endpoint(DNSPROXY, own_port)]).new
        loaded = enter(running_coredns(_made(folder / "installed"), installed, port=dns_port))
        bare_port = free_port()
        enter(running_coredns(_made(folder / "bare"), stock.replace(str(dns_port), str(bare_port), 1), port=bare_port))
        scene = Scene(
            api,
            stock,
            installed,
            f"127.0.0.1:{dns_port}",
            f"127.0.0.1:{bare_port}",
            f"127.0.0.1:{public.port}",
            dnsproxy,
            relays[0].admin,
            relays[1].admin,
            loaded.addresses,
        )
        scene.write_corefile(installed)
        wait_until(lambda: scene.addresses(HOST) == [RELAY])
        yield scene


def wait_until(condition: Callable[[], bool]) -> None:
    """Poll for a condition of the scene."""
    poll_until(condition, "the condition", seconds=SECONDS)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def make_objects(api: ApiServer, port: int, own_port: int, relay_ports: Sequence[int]) -> None:
    """The objects in the API server."""
    for namespace in ("switchback", "ingress-nginx", "plain"):
        api.create_namespace(namespace)
    kubeadm = manifests("kubeadm")
    for kind, name in (("ConfigMap", "coredns"), ("Deployment", "coredns"), ("DaemonSet", "kube-proxy")):
        create(api, pick(kubeadm, kind, name), "kube-system")
    web = [{"name": "http", "port": port}]
    create_service(api, "kube-system", "kube-dns", DNS, [{"name": "dns", "port": 53, "protocol": "UDP"}], "kube-dns")
    create_service(api, "ingress-nginx", "controller", CONTROLLER, web, balancer=BALANCER)
    create_service(api, "plain", "controller", PLAIN, web, balancer=PLAIN_BALANCER)
    own = [{"name": "dns", "port": own_port, "protocol": "UDP"}]
    create_service(api, "switchback", "dnsproxy", DNSPROXY, own)
    names = ("relay", "relay-astray")
    for name, address, relay_port in zip(names, (RELAY, ASTRAY), relay_ports, strict=True):
        create_service(api, "switchback", name, address, [{"name": "http", "port": relay_port}])
        create_slice(api, "switchback", name, "10.244.0.6", [{"name": "http", "port": relay_port}])
    create_slice(api, "switchback", "dnsproxy", "10.244.0.5")
    create_deployment(api, "switchback", "dnsproxy", ["dnsproxy", "serve", "--upstream", "192.0.2.53"])
    route = f"{port}=controller.ingress-nginx.svc:{port}"
    create_deployment(api, "switchback", "relay", ["proxy"], {"PROXY_ROUTE": route})
    create_deployment(api, "ingress-nginx", "controller", ["/nginx", "--configmap=$(POD_NAMESPACE)/controller"])
    trust = {"use-proxy-protocol": "true", "proxy-real-ip-cidr": "10.244.0.0/16", "ssl-protocols": "TLSv1.3"}
    create_config_map(api, "ingress-nginx", "controller", trust)
    for name, address, host in (("nginx", BALANCER, HOST), ("plain", PLAIN_BALANCER, PLAIN_HOST)):
        classes = "/apis/networking.k8s.io/v1/ingressclasses"
        api.request("POST", classes, {"metadata": {"name": name}, "spec": {"controller": f"example.org/{name}"}})
        if name == "nginx":
            create_ingress(api, name, host, address)


def create_ingress(api: ApiServer, name: str, host: str, address: str) -> None:
    api.create_ingress(name, [host], ingress_class=name)
    status = {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}
    path = f"/apis/networking.k8s.io/v1/namespaces/default/ingresses/{name}/status"
    api.request("PATCH", path, status, content_type=MERGE)


def create(api: ApiServer, one: dict[str, Any], namespace: str) -> None:
    """An object of the corpus, without the fields that the API server sets."""
    group = {"ConfigMap": "/api/v1", "Service": "/api/v1"}.get(one["kind"], "/apis/apps/v1")
    made = {key: value for key, value in one.items() if key != "status"}
    kept = {key: made["metadata"][key] for key in ("name", "labels", "annotations") if key in made["metadata"]}
    plural = f"{one['kind'].lower()}s"
    api.request("POST", f"{group}/namespaces/{namespace}/{plural}", made | {"metadata": kept})


def create_service(  # one row of a table of Services
    api: ApiServer, namespace: str, name: str, address: str, ports: list[Any], label: str = "", *, balancer: str = ""
) -> None:
    selector = {"k8s-app": label} if label else {"app": name}
    kind = "LoadBalancer" if balancer else "ClusterIP"
    spec = {"clusterIP": address, "ports": ports, "selector": selector, "type": kind}
    path = f"/api/v1/namespaces/{namespace}/services"
    api.request("POST", path, {"metadata": {"name": name, "labels": selector}, "spec": spec})
    if balancer:
        status = {"status": {"loadBalancer": {"ingress": [{"ip": balancer, "ipMode": "VIP"}]}}}
        api.request("PATCH", f"{path}/{name}/status", status, content_type=MERGE)


def create_slice(
    api: ApiServer, namespace: str, service: str, address: str, ports: Sequence[Mapping[str, Any]] = ()
) -> None:
    labels = {"kubernetes.io/service-name": service}
    endpoints = [{"addresses": [address], "conditions": {"ready": True}}]
    one = {"metadata": {"name": service, "labels": labels}, "addressType": "IPv4", "endpoints": endpoints}
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    api.request("POST", path, {**one, "ports": list(ports)})


def create_deployment(
    api: ApiServer, namespace: str, name: str, args: list[str], settings: Mapping[str, str] | None = None
) -> None:
    container: dict[str, Any] = {"name": name, "image": "localhost/x:1", "args": args}
    if settings:
        create_config_map(api, namespace, f"{name}-settings", settings)
        container["envFrom"] = [{"configMapRef": {"name": f"{name}-settings"}}]
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "dnsPolicy": "Default"}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    api.request("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", {"metadata": {"name": name}, "spec": spec})


def create_config_map(api: ApiServer, namespace: str, name: str, data: Mapping[str, str]) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    api.request("POST", path, {"metadata": {"name": name}, "data": dict(data)})

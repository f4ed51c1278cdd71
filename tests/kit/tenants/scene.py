"""The scene of the attacks: a cluster with our manifests, public DNS, and `dnsproxy serve` once for each column.

The law: both servers watch the same API server, with the token of the shipped account; an object of the owner that both
answer for shows that everything created before it was read.
"""

from __future__ import annotations

import itertools
import json
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from tests.deploy.calls import account
from tests.deploy.putting import put
from tests.kit import gateway_api
from tests.kit.accounts import RBAC
from tests.kit.apiserver import ingress, running_apiserver
from tests.kit.polling import poll_until
from tests.kit.ready_services import put_endpoint
from tests.kit.scraping import is_ready
from tests.kit.serve_process import Serving, serving
from tests.kit.tenants.owner import Watch, watching
from tests.kit.tenants.public_dns import BALANCER, OTHER_BALANCER, Answer, answer_of, running_public_dns
from tests.kit.tenants.session import Session, session
from tests.kit.tenants.settings import COLUMNS, manifests, settings
from tests.kit.tenants.tenant import GATEWAY_RIGHTS, Tenant, create_tenant, set_status

SECONDS: Final = 60.0
"""Longer than anything here takes."""
OTHER_TARGET: Final = "192.0.2.99"
"""What the class `other` is answered with: a name that moves from `public` to `other` shows in DNS."""
SEARCH: Final = ("ec2.internal", "corp.example.net")
"""The search domains of the node."""
TRUSTED: Final = "mark.example.org"
"""The zone of the marks, which the owner trusts: a mark shows what was read, whatever public DNS says."""
STATIC: Final = "static.shop.example.org"
STATIC_ADDRESS: Final = "192.0.2.8"
"""A static name of the owner."""
DENIED: Final = "bank.denied.shop.example.org"
"""A name that the owner denies to everybody."""
OWNED: Final = "www.owner.example.org"
"""The owner's name, which is answered all the time."""

_CLASSES: Final = """
{apiVersion: networking.k8s.io/v1, kind: IngressClass, spec: {controller: example.org/public},
 metadata: {name: public, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, spec: {controller: example.org/other}, metadata: {name: other}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, spec: {controller: example.org/idle}, metadata: {name: idle}}
"""
_RELAY: Final = """
{apiVersion: v1, kind: Service, metadata: {name: relay, namespace: switchback},
 spec: {selector: {app.kubernetes.io/name: relay}, ports: [{name: http, port: 80}, {name: https, port: 443}]}}
"""
GATEWAYS: Final = "/apis/gateway.networking.k8s.io/v1"
_ALL: Final = {"namespaces": {"from": "All"}}


@dataclass
class Scene:
    """Everything that an attack meets."""

    server: Session
    public_dns: int
    kubeconfig: Path
    resolv_conf: Path
    folder: Path
    relay: str
    """The address of our relay's Service."""
    servers: dict[str, Serving] = field(default_factory=dict)
    """By column."""
    watches: dict[str, Watch] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def tenant(self, name: str = "tenant", *, labels: Mapping[str, str] | None = None) -> Tenant:
        """A new tenant with a namespace of its own."""
        return create_tenant(self.server, f"{name}-{next(self._numbers)}", labels=labels)

    def balance(self, tenant: Tenant, *names: str, address: str = BALANCER) -> None:
        """The controller of the class writes the status of these Ingresses."""
        set_status(self.server, tenant.namespace, names or ("web",), address)

    def answer(self, column: str, name: str) -> Answer:
        """What a column's server says."""
        return answer_of(self.servers[column].port, name)

    def forwarded(self, name: str) -> Answer:
        """What public DNS says."""
        return answer_of(self.public_dns, name)

    def explain(self, column: str, name: str) -> dict[str, Any]:
        """What a column's server knows about a name."""
        url = f"http://{self.servers[column].admin}/explain?name={name}"
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30) as reply:
            read: dict[str, Any] = json.load(reply)
            return read

    def wait_until_ready(self, column: str) -> None:
        """Wait until a column's server is ready."""
        admin = self.servers[column].admin
        self.wait(lambda: is_ready(admin), f"{column}: /readyz")

    def save(self, snapshot: str) -> None:
        """Wait until a snapshot has everything that exists now."""
        # The second mark exists only when the first is answered: a file that has it has everybody's verdict before it.
        self.mark()
        name, path = self.mark().encode(), self.folder / snapshot
        self.wait(lambda: path.exists() and name in path.read_bytes(), f"{snapshot}: saved")

    def mark(self) -> str:
        """Wait until both servers have read every Ingress and route that exists now. Returns the mark's name."""
        name = f"mark-{next(self._numbers)}"
        path = "/apis/networking.k8s.io/v1/namespaces/owner/ingresses"
        hosts = {"ingress": f"{name}.{TRUSTED}", "route": f"r{name}.{TRUSTED}"}
        self.server.request("POST", path, ingress(name, [hosts["ingress"]], namespace="owner", ingress_class="public"))
        patch = {"status": {"loadBalancer": {"ingress": [{"ip": BALANCER}]}}}
        self.server.request("PATCH", f"{path}/{name}/status", patch)
        route = gateway_api.route("HTTPRoute", hosts["route"], namespace="owner")
        self.server.request("POST", f"{GATEWAYS}/namespaces/owner/httproutes", route)
        for host in hosts.values():
            self.wait_for(host, self.relay)
        return hosts["ingress"]

    @contextmanager
    def beside(self, column: str, server: Serving) -> Iterator[None]:
        """Ask this server in place of the column's own until the block ends."""
        own, self.servers[column] = self.servers[column], server
        try:
            yield
        finally:
            self.servers[column] = own

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Poll until a condition holds; each round waits for the replies of the servers. Fails after SECONDS."""
        poll_until(condition, what, seconds=SECONDS)

    def wait_for(self, name: str, address: str) -> None:
        """Poll until every server answers a name with this address."""

        def answered() -> bool:
            return all(self.answer(column, name).addresses == {address} for column in self.servers)

        self.wait(answered, f"{name}: {address}")


@contextmanager
def playing(folder: Path) -> Iterator[Scene]:
    """A scene with both servers, in which the owner's name is answered."""
    with ExitStack() as stack:
        scene = stack.enter_context(_cluster(folder))
        for column in COLUMNS:
            scene.servers[column] = stack.enter_context(started(scene, column))
        scene.wait(lambda: all(scene.answer(one, OWNED).addresses == {scene.relay} for one in COLUMNS), OWNED)
        for column in COLUMNS:
            scene.watches[column] = stack.enter_context(watching(scene.servers[column].port, OWNED, scene.relay))
        yield scene


@contextmanager
def started(
    scene: Scene, column: str, *flags: str, snapshot: str | None = None, upstream: int | None = None
) -> Iterator[Serving]:
    """`dnsproxy serve` with the settings of a column; `snapshot` names a file that outlives it.

    `upstream` is the port of a resolver in place of public DNS.
    """
    # What the target `auto` of the manifests means by itself.
    environment = {
        "DNSPROXY_OWNERSHIP": "verify",
        **settings(column),
        "DNSPROXY_TARGET_FOR": f"other={OTHER_TARGET}",
        "DNSPROXY_LAMEDUCK": "0",
    }
    environment |= {"DNSPROXY_TRUST": TRUSTED, "DNSPROXY_HOST": f"{STATIC}={STATIC_ADDRESS}", "DNSPROXY_DENY": DENIED}
    # As if every class and Gateway were steered, those of tenants too: with `auto` the others are never answered.
    environment |= {"DNSPROXY_TARGET": "service:switchback/relay"}
    where = scene.folder / (snapshot or f"snapshot-{next(scene._numbers)}")
    given = ["--upstream", f"127.0.0.1:{upstream or scene.public_dns}", "--kubeconfig", str(scene.kubeconfig)]
    given += ["--resolv-conf", str(scene.resolv_conf), "--snapshot", str(where), *flags]
    with serving(scene.folder, *given, environment=environment) as one:
        yield one


@contextmanager
def _cluster(folder: Path) -> Iterator[Scene]:
    (folder / "api").mkdir()
    with ExitStack() as stack:
        server = stack.enter_context(running_apiserver(folder / "api"))
        public_dns = stack.enter_context(running_public_dns(folder / "public"))
        gateway_api.install_crds(server)
        put(server, [*manifests("default"), *yaml.safe_load_all(_CLASSES), *yaml.safe_load_all(_RELAY)])
        put_endpoint(server, "switchback/relay")
        own = stack.enter_context(session(server))
        own.request("POST", f"{RBAC}/clusterroles", GATEWAY_RIGHTS)
        kubeconfig = account(server, "switchback", "dnsproxy").write_kubeconfig(folder / "kubeconfig")
        resolv_conf = folder / "resolv.conf"
        resolv_conf.write_text(f"nameserver 127.0.0.1\nsearch {' '.join(SEARCH)}\n", encoding="utf-8")
        relay = own.request("GET", "/api/v1/namespaces/switchback/services/relay")["spec"]["clusterIP"]
        _own(own)
        yield Scene(own, public_dns, kubeconfig, resolv_conf, folder, relay)


def _own(server: Session) -> None:
    """The owner's Ingress, the first one of the class `other`, and a Gateway for routes of every namespace."""
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "owner"}})
    for name, host, ingress_class, address in (
        ("www", OWNED, "public", BALANCER),
        ("other", "other.gw.example.org", "other", OTHER_BALANCER),
    ):
        one = ingress(name, [host], namespace="owner", ingress_class=ingress_class)
        server.request("POST", "/apis/networking.k8s.io/v1/namespaces/owner/ingresses", one)
        set_status(server, "owner", [name], address)
    listeners = [
        gateway_api.listener(zone, f"*.{zone}.example.org", port=80 + number, allowedRoutes=_ALL)
        for number, zone in enumerate(("gw", "mark"))
    ]
    one = gateway_api.gateway(*listeners)
    one["metadata"]["namespace"] = "owner"
    server.request("POST", f"{GATEWAYS}/namespaces/owner/gateways", one)
    accept_gateway(server, "owner", "main", OTHER_BALANCER)


def accept_gateway(server: Session, namespace: str, name: str, address: str | None) -> None:
    """What the controller of the Gateway's class writes; without an address, that it does not accept it."""
    accepted = {"type": "Accepted", "status": "True" if address else "False", "reason": "Test", "message": ""}
    addresses = [{"type": "IPAddress", "value": address}] if address else []
    conditions = [{**accepted, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    status = {"status": {"addresses": addresses, "conditions": conditions}}
    server.request("PATCH", f"{GATEWAYS}/namespaces/{namespace}/gateways/{name}/status", status)

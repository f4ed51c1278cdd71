"""The scene: a big cluster's API server, its DNS, dnsproxy and controllers, all on loopback addresses.

The law: what a command reads and asks is real; only the kubelets are missing. dnsproxy stands for the whole of the
cluster's DNS, because the stanza leads each query to it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

from dnsproxy.corefile.plan import plan_install
from sidecar.values.endpoints import Endpoint
from tests.bench.doctor.audit import POLICY
from tests.bench.doctor.filling import fill
from tests.bench.doctor.objects import CONTROLLERS, Size, balancer_of, class_of
from tests.bench.kit.cpus import Cpus, pinned
from tests.bench.sync.upstream import knowing_nothing
from tests.kit.apiserver import ApiServer, running_apiserver, send
from tests.kit.doctor_stage.objects import (
    BASE,
    KUBE_PROXY,
    Object,
    config_map,
    endpoint_slice,
    ingress_class,
    path_of,
    point,
    service,
    workload,
)
from tests.kit.ports import free_ports
from tests.kit.processes import wait_for
from tests.kit.progress import Progress
from tests.kit.scraping import is_ready
from tests.kit.serve_process import Serving, serving

RANGE: Final = "127.96.0.0/16"
_DNS: Final = "127.96.0.10"
_DNSPROXY: Final = "127.96.0.53"
_RELAY: Final = "127.96.0.90"
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Scene:
    """What runs."""

    api: ApiServer
    dnsproxy: Serving
    account: Path
    """The files that a kubelet would put into a pod."""
    audit: Path
    """The log of all requests of an administrator."""

    def environment(self) -> dict[str, str]:
        """That of a pod."""
        return {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.api.port),
            "KUBECONFIG": "",
        }


@contextmanager
def running_scene(data: Path | None, size: Size, cpus: Cpus, progress: Progress) -> Iterator[Scene]:
    """The scene, from the moment at which dnsproxy answers every name; `data`: where the objects are kept."""
    with ExitStack() as stack:
        enter = stack.enter_context
        folder = data or Path(enter(tempfile.TemporaryDirectory(prefix="bench-doctor-")))
        folder.mkdir(parents=True, exist_ok=True)
        audit = folder / "audit.log"
        with _api_server(folder, audit, os.sched_getaffinity(0)) as api:
            fill(api, size, tell=progress.note)
        enter(pinned(cpus.load))
        api = enter(_api_server(folder, audit, cpus.load))
        port, own = free_ports(2)
        for number in range(CONTROLLERS):
            for address in (_controller(number), balancer_of(number)):
                enter(_controller_at(address, port))
        upstream = f"127.0.0.1:{enter(knowing_nothing())}"
        _apply(api, [*_dns(own, upstream), KUBE_PROXY, *_controllers(port), *_switchback(own, upstream)])
        where = ["--upstream", upstream, "--kubeconfig", str(api.kubeconfig), "--source", "ingress"]
        targets = [f"{class_of(number)}={_controller(number)}" for number in range(CONTROLLERS)]
        flags = [part for target in targets for part in ("--target-for", target)]
        dnsproxy = enter(serving(folder, *where, "--target", _controller(0), *flags, "--listen", f"{_DNSPROXY}:{own}"))
        wait_for(lambda: is_ready(dnsproxy.admin), process=dnsproxy.process, log=dnsproxy.log)
        yield Scene(api, dnsproxy, _write_account(api, folder), audit)


@contextmanager
def _api_server(folder: Path, audit: Path, cpus: Collection[int]) -> Iterator[ApiServer]:
    policy = folder / "audit.yaml"
    policy.write_text(json.dumps(POLICY))
    audit.unlink(missing_ok=True)
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={audit}")
    with pinned(cpus), running_apiserver(folder, service_range=RANGE, flags=flags) as api:
        yield api


def _apply(api: ApiServer, objects: list[Object]) -> None:
    with api.connection() as connection:
        for name in ("switchback", *(f"ingress-{number}" for number in range(CONTROLLERS))):
            made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            send(connection, "PATCH", f"/api/v1/namespaces/{name}{_HOW}", made, content_type=_APPLY)
        for one in objects:
            path = path_of(one)
            version = path.partition("/namespaces/")[0].removeprefix("/apis/").removeprefix("/api/")
            version = "/".join(version.split("/")[:2]) if path.startswith("/apis/") else "v1"
            made = {key: value for key, value in one.items() if key != "status"} | {"apiVersion": version}
            send(connection, "PATCH", f"{path}{_HOW}", made, content_type=_APPLY)
            if "status" in one:
                send(connection, "PATCH", f"{path}/status", {"status": one["status"]}, content_type=_MERGE)


_HOW: Final = "?fieldManager=bench&force=true"


def _dns(own: int, upstream: str) -> Iterator[Object]:
    for one in BASE:
        if one["kind"] == "Service":
            yield {**one, "spec": one["spec"] | {"clusterIP": _DNS, "clusterIPs": [_DNS]}}
        elif one["kind"] == "ConfigMap":
            text = one["data"]["Corefile"].replace("/etc/resolv.conf", upstream)
            yield {**one, "data": {"Corefile": plan_install(text, addresses=[Endpoint(_DNSPROXY, own)]).new}}
        elif one["kind"] != "Node":
            yield one


def _controller(number: int) -> str:
    return f"127.96.0.8{number % CONTROLLERS}"


def _controllers(port: int) -> Iterator[Object]:
    for number in range(CONTROLLERS):
        key = f"ingress-{number}/controller"
        points = [point(balancer_of(number))]
        yield ingress_class(class_of(number))
        yield service(key, _controller(number), points=points, ports={"http": port})
        yield workload(key, "/nginx-ingress-controller", "--configmap=$(POD_NAMESPACE)/controller")
        yield config_map(key, {"use-proxy-protocol": "false"})


def _switchback(own: int, upstream: str) -> Iterator[Object]:
    labels = {"app": "dnsproxy"}
    how: dict[str, Any] = {"kind": "ClusterIP", "ports": {"dns": own}, "protocol": "UDP"}
    settings = {"DNSPROXY_TARGET": "service:switchback/relay"}
    yield service("switchback/dnsproxy", _DNSPROXY, labels=labels, selector=labels, **how)
    yield endpoint_slice("switchback/dnsproxy", "10.244.0.5")
    arguments = ("dnsproxy", "serve", "--upstream", upstream)
    yield workload("switchback/dnsproxy", *arguments, labels=labels, variables=settings)
    labels = {"app": "relay"}
    yield service("switchback/relay", _RELAY, kind="ClusterIP", labels=labels, selector=labels)
    yield endpoint_slice("switchback/relay", "10.244.0.6")
    yield workload(
        "switchback/relay", "proxy", labels=labels, variables={"PROXY_ROUTE": "8080=controller.ingress-0.svc:80"}
    )


class _Handler(BaseHTTPRequestHandler):
    """A controller without the PROXY protocol."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name in the standard library
        """No log on stderr."""


@contextmanager
def _controller_at(address: str, port: int) -> Iterator[None]:
    with ThreadingHTTPServer((address, port), _Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def _write_account(api: ApiServer, folder: Path) -> Path:
    account = folder / "account"
    account.mkdir(exist_ok=True)
    (account / "token").write_text(api.token)
    (account / "ca.crt").write_bytes(api.ca_file.read_bytes())
    return account

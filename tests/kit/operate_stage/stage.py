"""The stage: its network, servers and control plane for a module, and a cluster on it for each test."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.kit.apiserver import ApiServer, running_apiserver, send
from tests.kit.doctor_stage.objects import collection_of, path_of
from tests.kit.doctor_stage.servers import Server, running_servers
from tests.kit.gateway_api import RESOURCES, install_crds
from tests.kit.launched import ROOT
from tests.kit.log_lines import whole_lines
from tests.kit.networks import POD_ADDRESS, Network, one_network
from tests.kit.operate_stage.objects import (
    DNSPROXY_LABELS,
    OWN,
    RELAY_LABELS,
    Object,
    pod,
    pod_status,
    service,
)
from tests.kit.operate_stage.programs import create_node, endpoint_slice_controller, kube_proxy, running
from tests.kit.polling import poll_until
from tests.kit.programs import program

PEERS: Final = (
    *("etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "coredns", "nginx", "haproxy", "nft", "ip"),
    *("curl", "dig", "gateway-api"),
)
MERGE: Final = "application/merge-patch+json"
SERVICE_RANGE: Final = "10.96.0.0/16,2001:db8:96::/112"
DNSPROXY_POD: Final = "10.244.2.1"
RELAY_POD: Final = "10.244.2.2"
PUBLIC_DNS: Final = "192.0.2.53"
PUBLIC: Final = "203.0.113.10"
"""The address that the public DNS has for every name."""
ADMIN: Final = "127.0.0.1:8085"
SECONDS: Final = 150.0
"""Longest wait: a first handshake that fails, as on a busy machine, is made again a minute later."""
_ZONE: Final = """\
$ORIGIN example.org.
$TTL 1
@ IN SOA ns.invalid. root.invalid. 1 60 60 60 1
* IN A {public}
"""


class Visit(NamedTuple):
    """One request."""

    at: float
    """Seconds since the epoch."""
    address: str
    said: str
    """The status or the error."""


@dataclass(frozen=True)
class Visits:
    """What a visitor got."""

    log: Path

    def all(self) -> list[Visit]:
        """The requests that have ended."""
        lines = whole_lines(self.log)
        return [Visit(float(at), address, said) for at, address, said in (line.split(" ", 2) for line in lines)]

    def failed(self, *, since: float = 0.0) -> list[Visit]:
        """What was no 200."""
        return [one for one in self.all() if not one.said.startswith("200") and one.at >= since]

    def wait_for_more(self, count: int) -> None:
        """Until there are so many more."""
        before = len(self.all())
        poll_until(lambda: len(self.all()) >= before + count, f"{count} more requests", seconds=60)

    def addresses(self) -> list[str]:
        """The address of each request."""
        return [one.address for one in self.all()]


@dataclass
class Stage:
    """A running stage."""

    folder: Path
    network: Network
    api: ApiServer
    kubeconfigs: dict[str, Path] = field(default_factory=dict)
    """By program, where it is not an administrator's."""
    environments: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """By program, beside what all of them have."""
    created: dict[str, None] = field(default_factory=dict)
    """The paths of the objects of a test."""
    _namespaces: set[str] = field(default_factory=lambda: {"default", "kube-system"})

    def put(self, *objects: Object) -> None:
        """Create objects, with their statuses."""
        with self.network.entered(), self.api.connection() as connection:
            for one in objects:
                self._create_namespace(one["metadata"].get("namespace"))
                made = {key: value for key, value in one.items() if key != "status"}
                send(connection, "POST", collection_of(one), made)
                self.created[path_of(one)] = None
                if "status" in one:
                    send(connection, "PATCH", f"{path_of(one)}/status", {"status": one["status"]}, content_type=MERGE)

    def create_namespaces(self, *names: str) -> None:
        """Create those that are not there yet."""
        with self.network.entered():
            for name in names:
                self._create_namespace(name)

    def remove(self, *objects: Object) -> None:
        """Delete objects."""
        for one in objects:
            self.created.pop(path_of(one), None)
            self.request("DELETE", path_of(one))

    def set_status(self, one: Object, points: Sequence[Object]) -> None:
        """Write the status of a load balancer, of a Service or an Ingress."""
        status = {"loadBalancer": {"ingress": list(points)}}
        self.request("PATCH", f"{path_of(one)}/status", {"status": status})

    def set_ready(self, one: Object, *, ready: bool) -> None:
        """Make a pod ready or not, as its kubelet."""
        addresses = [entry["ip"] for entry in one["status"]["podIPs"]]
        self.request("PATCH", f"{path_of(one)}/status", {"status": pod_status(*addresses, ready=ready)})

    def annotate(self, one: Object, **annotations: str | None) -> None:
        """Set our annotations, without their prefix and with underscores."""
        changed = {f"switchback.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
        self.request("PATCH", path_of(one), {"metadata": {"annotations": changed}})

    def request(self, method: str, path: str, body: object = None) -> Any:
        """One request to the API server; a patch is a merge patch."""
        kind = MERGE if method == "PATCH" else "application/json"
        with self.network.entered():
            return self.api.request(method, path, body, content_type=kind)

    def routes(self) -> dict[str, Object]:
        """The route Services by name."""
        found = self.request("GET", f"/api/v1/namespaces/{OWN}/services")["items"]
        return {one["metadata"]["name"]: {"kind": "Service", **one} for one in found if _annotation(one, "relay-to")}

    def events(self) -> list[tuple[str, str, str]]:
        """Reason, name of the object and note of every Event of operate."""
        found = self.request("GET", "/apis/events.k8s.io/v1/events")["items"]
        own = [one for one in found if one["reportingController"] == "switchback.dev/dnsproxy-operate"]
        return [(one["reason"], one["regarding"]["name"], one["note"]) for one in own]

    def dig(self, name: str, kind: str = "A") -> tuple[str, ...]:
        """What the pods' DNS answers."""
        command = [program("dig"), f"@{DNSPROXY_POD}", "+short", "+tries=3", "+time=2", name, kind]
        with self.network.entered():
            done = subprocess.run(command, check=False, capture_output=True, text=True)
        return tuple(sorted(line for line in done.stdout.splitlines() if line and not line.startswith(";")))

    def curl(self, host: str, port: int = 443, *, at: str = "", source: str = POD_ADDRESS) -> str:
        """The HTTP status that a pod gets at a host, or `000`; `at`: an address in place of the DNS answer."""
        address = at or next(iter(self.dig(host)), "")
        if not address:
            return "no address"
        scheme = "https" if port != 80 else "http"
        command = [program("curl"), "-sk", "-o", "/dev/null", "-w", "%{http_code}"]
        # A program that a busy machine does not run is connected to all the same: the kernel does it.
        command += ["--connect-timeout", "4", "--max-time", "10"]
        command += [
            "--interface",
            source,
            "--connect-to",
            f"{host}:{port}:{address}:{port}",
            f"{scheme}://{host}:{port}/",
        ]
        with self.network.entered():
            return subprocess.run(command, check=False, capture_output=True, text=True).stdout

    @contextmanager
    def visited(self, host: str) -> Iterator[Visits]:
        """A visitor of a host for the duration of a block."""
        log = self.folder / f"visits-{host}.log"
        command = [sys.executable, "-m", "tests.kit.operate_stage.visitor", DNSPROXY_POD, host]
        with ExitStack() as stack:
            with self.network.entered():
                stack.enter_context(running(command, log, lambda: log.stat().st_size > 0, PYTHONPATH=str(ROOT)))
            yield Visits(log)

    def steering(self, *, at: str = ADMIN) -> Object:
        """What operate says; `at`: its admin port."""
        host, _, port = at.rpartition(":")
        # Asked hundreds of times in a test: a program for each would take a sixth of the test's processor time.
        with self.network.entered(), closing(http.client.HTTPConnection(host, int(port), timeout=30)) as connection:
            try:
                connection.request("GET", "/steering")
                return dict(json.loads(connection.getresponse().read()))
            except (OSError, http.client.HTTPException, ValueError):
                return {"subjects": [], "routes": []}

    def subject(self, name: str = "ingressclass/nginx", *, at: str = ADMIN) -> Object:
        """What operate says about one subject."""
        return next((one for one in self.steering(at=at)["subjects"] if one["subject"] == name), {})

    def eventually(self, what: str, condition: Callable[[], bool], *, seconds: float = SECONDS) -> float:
        """Wait for a condition; the seconds that it took."""
        begun = time.monotonic()
        while not condition():
            if time.monotonic() - begun > seconds:
                raise AssertionError(f"not within {seconds:g} s: {what}\n{self.explain()}")
            time.sleep(0.05)
        return time.monotonic() - begun

    def explain(self) -> str:
        """What a failure may be explained with."""
        logs = [f"{path.name}:\n{path.read_text(errors='replace')[-3000:]}" for path in self.folder.glob("test-*.log")]
        return "\n".join([json.dumps(self.steering(), indent=1)[-4000:], *logs])

    @contextmanager
    def serving(self, address: str, server: Server) -> Iterator[None]:
        """A data plane that serves an address itself, with a server; kube-proxy never sees its connections."""
        rule = f"ip daddr {address} tcp dport {{ 80, 443 }} dnat to {server.ipv4}"
        chain = f"chain output {{\n type nat hook output priority -110\n {rule}\n}}\n"
        with self.network.entered():
            subprocess.run([program("nft"), "add", "table", "ip", "served"], check=True)
            subprocess.run([program("nft"), f"table ip served {{\n{chain}}}\n"], check=True)
        try:
            yield
        finally:
            with self.network.entered():
                subprocess.run([program("nft"), "delete", "table", "ip", "served"], check=True)

    @contextmanager
    def cluster(self, *operate: str, relay: bool = True) -> Iterator[Running]:
        """The programs of Switchback for the duration of a block; every object of the test is deleted at its end."""
        running_one = Running(self)
        try:
            self.put(
                pod("dnsproxy", OWN, DNSPROXY_LABELS, DNSPROXY_POD),
                service("dnsproxy", OWN, [{"name": "dns", "port": 53, "protocol": "UDP"}], selector=DNSPROXY_LABELS),
            )
            # Outside of the network, which the timer of a test would otherwise not leave.
            with running_one:
                running_one.start_dnsproxy()
                if relay:
                    running_one.start_relay()
                running_one.start_operate(*operate)
                yield running_one
        finally:
            self._clear()

    def _clear(self) -> None:
        leases = "/apis/coordination.k8s.io/v1/namespaces/switchback/leases/switchback-operate"
        events = [f"/apis/events.k8s.io/v1/namespaces/{name}/events" for name in self._namespaces]
        paths = [*reversed(self.created), *map(path_of, self.routes().values()), leases, *events]
        with self.network.entered(), self.api.connection() as connection:
            for path in paths:
                with suppress(AssertionError):
                    send(connection, "DELETE", path)
        self.created.clear()

    def _create_namespace(self, name: str | None) -> None:
        if name is not None and name not in self._namespaces:
            self._namespaces.add(name)
            self.api.create_namespace(name)


class Running:
    """The programs of Switchback on a stage; each can be ended and started again."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._stacks: dict[str, ExitStack] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.relay_pod = pod("relay", OWN, RELAY_LABELS, RELAY_POD)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._stacks):
            self.end(name)

    def start_dnsproxy(self) -> None:
        """`dnsproxy serve --target auto`, from its readiness."""
        self._start(
            "dnsproxy",
            "dnsproxy",
            *("serve", "--listen", f"{DNSPROXY_POD}:53", "--admin", f"{DNSPROXY_POD}:8081", "--ttl", "1"),
            *("--source", "ingress", "--source", "gateway", "--target", "auto", "--routes-namespace", OWN),
            *("--upstream", PUBLIC_DNS),
            # All names lead to one router, which passes each on to the load balancer of its class.
            *("--trust", PUBLIC),
            ready=f"http://{DNSPROXY_POD}:8081/readyz",
        )

    def start_relay(self) -> None:
        """`proxy --routes-from services`, and its pod, from its readiness."""
        if "/api/v1/namespaces/switchback/pods/relay" not in self._stage.created:
            self._stage.put(self.relay_pod)
        self._start(
            "relay",
            "proxy",
            *("--routes-from", "services", "--routes-namespace", OWN, "--admin", f"{RELAY_POD}:8082"),
            ready=f"http://{RELAY_POD}:8082/healthz",
        )

    def start_operate(self, *arguments: str, name: str = "operate", admin: str = ADMIN) -> None:
        """`dnsproxy operate`, from the moment at which its admin port answers."""
        self._start(
            name,
            "dnsproxy",
            *("operate", "--method", "print", "--admin", admin, *arguments),
            ready=f"http://{admin}/healthz",
        )

    def end(self, name: str, *, politely: bool = False) -> None:
        """End one of the programs; `politely` with SIGTERM."""
        if politely:
            self._processes[name].send_signal(signal.SIGTERM)
            self._processes[name].wait(timeout=20)
        self._stacks.pop(name).close()

    def hang(self, name: str) -> None:
        """Stop a program without ending it."""
        self._processes[name].send_signal(signal.SIGSTOP)

    def log(self, name: str) -> str:
        """What a program logged."""
        return (self._stage.folder / f"test-{name}.log").read_text(errors="replace")

    def _start(self, name: str, module: str, *arguments: str, ready: str) -> None:
        stack = self._stacks[name] = ExitStack()
        kubeconfig = self._stage.kubeconfigs.get(name, self._stage.api.kubeconfig)
        command = [sys.executable, "-m", module, *arguments, "--kubeconfig", str(kubeconfig)]
        log = self._stage.folder / f"test-{name}.log"

        def is_ready() -> bool:
            asked = [program("curl"), "-sf", "-o", "/dev/null", "--max-time", "2", ready]
            return subprocess.run(asked, check=False).returncode == 0

        with self._stage.network.entered():
            environment = {"NO_COLOR": "1", "PYTHONPATH": str(ROOT), **self._stage.environments.get(name, {})}
            process = stack.enter_context(running(command, log, is_ready, **environment))
        self._processes[name] = process


def _annotation(one: Object, name: str) -> str:
    annotations: Mapping[str, str] = one["metadata"].get("annotations") or {}
    return annotations.get(f"switchback.dev/{name}", "")


def annotation(one: Object, name: str) -> str:
    """One of our annotations; empty if it is not there."""
    return _annotation(one, name)


@contextmanager
def running_stage(folder: Path) -> Iterator[Stage]:
    """The stage, from its readiness."""
    with one_network() as network, ExitStack() as stack:
        network.ip("link", "add", "pod", "type", "veth", "peer", "name", "nowhere")
        network.ip("addr", "add", f"{POD_ADDRESS}/24", "dev", "pod")
        for device in ("pod", "nowhere"):
            network.ip("link", "set", device, "up")
        network.ip("route", "add", "default", "dev", "pod")
        # A connection that kube-proxy does not translate fails after 50 ms, instead of three seconds of ARP.
        with network.entered():
            for name, number in (("mcast_solicit", 1), ("retrans_time_ms", 50)):
                Path(f"/proc/sys/net/ipv4/neigh/pod/{name}").write_text(f"{number}\n", encoding="ascii")
        for address in (DNSPROXY_POD, RELAY_POD, PUBLIC_DNS, *(server.ipv4 for server in Server)):
            network.own(address)
        for server in Server:
            network.own(server.ipv6)
        with network.entered():
            stack.enter_context(running_servers(folder))
            api = stack.enter_context(running_apiserver(folder, service_range=SERVICE_RANGE))
            create_node(api, POD_ADDRESS)
            install_crds(api, (*RESOURCES, "gatewayclasses"))
            stack.enter_context(endpoint_slice_controller(api, folder))
            stack.enter_context(kube_proxy(api, folder))
            stack.enter_context(_public_dns(folder))
        yield Stage(folder, network, api)


@contextmanager
def _public_dns(folder: Path) -> Iterator[None]:
    (folder / "public.zone").write_text(_ZONE.format(public=PUBLIC), encoding="utf-8")
    corefile = folder / "Corefile"
    corefile.write_text(f"example.org:53 {{\n    bind {PUBLIC_DNS}\n    file {folder / 'public.zone'}\n}}\n")
    asked = [program("dig"), f"@{PUBLIC_DNS}", "+short", "+tries=1", "+time=1", "any.example.org"]

    def answers() -> bool:
        return PUBLIC.encode() in subprocess.run(asked, check=False, capture_output=True).stdout

    with running([program("coredns"), "-conf", str(corefile)], folder / "public.log", answers):
        yield


@pytest.fixture(scope="session")
def operate_stage(root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:  # noqa: ARG001  # may skip
    """One stage for all modules of a worker. Import it in the conftest.py of their folder, with `root`."""
    with running_stage(tmp_path_factory.mktemp("stage")) as one:
        yield one


@pytest.fixture(scope="module")
def stage(operate_stage: Stage) -> Stage:
    """Import it where it is used."""
    return operate_stage

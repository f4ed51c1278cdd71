"""`dnsproxy ip-mode --watch` against real API servers of 1.34 and 1.35, without a policy, with rights by name alone."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.kit.accounts import create_account, role, write_kubeconfig
from tests.kit.apiserver import TOKEN, ApiServer, running_apiserver
from tests.kit.ip_mode import APPLY, JSON_PATCH, Services, entries_of, status_of
from tests.kit.launched import ROOT
from tests.kit.polling import poll_until
from tests.kit.programs import built_versions
from tests.kit.watching import Watching, launched_watch

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver"), pytest.mark.timeout(300)]

HEADER: Final = {"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}
"""Of a load balancer that ends connections."""
METALLB: Final = {"metallb.io/ip-allocated-from-pool": "pool"}
VIP: Final = {"ip": "192.0.2.80", "ipMode": "VIP"}
PROXY: Final = {"ip": "192.0.2.80", "ipMode": "Proxy"}
OURS: Final = "switchback-ip-mode-watch"
_numbers = itertools.count()


def rights(name: str) -> list[Mapping[str, Any]]:
    """Those that --help states, for one Service."""
    return [
        {"apiGroups": [""], "resources": ["services"], "resourceNames": [name], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["services/status"], "resourceNames": [name], "verbs": ["patch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
    ]


@dataclass
class Scene:
    """A namespace, the Service `front` in it, and watches of it."""

    services: Services
    folder: Path
    stack: ExitStack

    def account(self, rules: list[Mapping[str, Any]]) -> Path:
        """The kubeconfig of an account with these rights alone."""
        name, space = f"watch-{next(_numbers)}", self.services.namespace
        token = create_account(self.services.server, space, name, [role(space, rules)])
        return write_kubeconfig(self.services.server, token, self.folder / f"{name}.kubeconfig")

    def watch(self, *arguments: str, rules: list[Mapping[str, Any]] | None = None) -> Watching:
        return self.stack.enter_context(self.watching(*arguments, rules=rules))

    def watching(
        self, *arguments: str, rules: list[Mapping[str, Any]] | None = None
    ) -> AbstractContextManager[Watching]:
        """A watch of `front`."""
        return launched_watch(self.command(*arguments, rules=rules), self.folder)

    def command(self, *arguments: str, rules: list[Mapping[str, Any]] | None = None) -> list[str]:
        """The command of a watch of `front`, by default with the rights for it alone."""
        kubeconfig = self.account(rights("front") if rules is None else rules)
        given = ["--watch", "--kubeconfig", str(kubeconfig), "--service", f"{self.services.namespace}/front"]
        return [sys.executable, "-m", "dnsproxy", "ip-mode", *given, *arguments]

    def create(self, annotations: Mapping[str, str] = HEADER, **spec: Any) -> Any:
        ports = [{"name": "https", "port": 443}]
        body = {
            "metadata": {"name": "front", "annotations": dict(annotations)},
            "spec": {"type": "LoadBalancer", "ports": ports, **spec},
        }
        return self.services.server.request("POST", self.services.path, body)

    def entries(self) -> list[Mapping[str, Any]]:
        return list(entries_of(self.services.get("front")))

    def wait_entries(self, *entries: Mapping[str, Any], seconds: float = 30) -> None:
        poll_until(lambda: self.entries() == list(entries), f"the entries {entries}", seconds=seconds)

    def modes(self, since: Any) -> list[str]:
        """The ipMode of the last entry, of every later version of `front` that has entries."""
        objects: list[Any] = []
        # An API server that is run late may end the watch before it has told everything.
        poll_until(lambda: self._is_present(objects, self._versions(since)), "the present version", seconds=60)
        return [entries_of(one)[-1]["ipMode"] for one in objects if entries_of(one)]

    def _versions(self, since: Any) -> list[Any]:
        """The later versions of `front` that a watch of some seconds tells."""
        version = since["metadata"]["resourceVersion"]
        path = f"{self.services.path}?watch=true&resourceVersion={version}&timeoutSeconds=3"
        with self.services.server.connection() as connection:
            connection.request("GET", path, headers={"authorization": f"Bearer {TOKEN}"})
            return [json.loads(line)["object"] for line in connection.getresponse().read().splitlines()]

    def _is_present(self, objects: list[Any], found: list[Any]) -> bool:
        """Take over what was found; whether it ends with the present version."""
        objects[:] = found
        present = self.services.get("front")["metadata"]["resourceVersion"]
        return bool(found) and found[-1]["metadata"]["resourceVersion"] == present

    def events(self) -> list[Any]:
        path = f"/apis/events.k8s.io/v1/namespaces/{self.services.namespace}/events"
        return list(self.services.server.request("GET", path)["items"])

    def reasons(self) -> set[str]:
        return {one["reason"] for one in self.events()}


@pytest.fixture(scope="module", params=["v1.34.4", "v1.35.4"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if request.param not in built_versions("kube-apiserver"):
        pytest.skip(f"missing peer: kube-apiserver {request.param} (`make peers` or `make world-peers` brings it)")
    with running_apiserver(tmp_path_factory.mktemp("ip-mode-watch"), version=request.param) as one:
        yield one


@pytest.fixture
def scene(server: ApiServer, tmp_path: Path) -> Iterator[Scene]:
    namespace = f"shop-{next(_numbers)}"
    server.create_namespace(namespace)
    with ExitStack() as stack:
        yield Scene(Services(server, namespace), tmp_path, stack)


# --- The provider's ways to write ---


def put(scene: Scene, *entries: Mapping[str, Any]) -> Any:
    whole = scene.services.get("front") | {"status": status_of(entries)}
    return scene.services.server.request("PUT", f"{scene.services.path}/front/status?fieldManager=controller", whole)


def merge(scene: Scene, *entries: Mapping[str, Any]) -> Any:
    return scene.services.patch_status("front", status_of(entries))


def json_patch(scene: Scene, *entries: Mapping[str, Any]) -> Any:
    operations = [{"op": "add", "path": "/status/loadBalancer", "value": status_of(entries)["loadBalancer"]}]
    return scene.services.patch_status("front", operations, content_type=JSON_PATCH)


def apply(scene: Scene, *entries: Mapping[str, Any]) -> Any:
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"}, "status": status_of(entries)}
    # Controllers force their applies, as the API's documentation demands of them.
    query = "?fieldManager=provider&force=true"
    return scene.services.patch_status("front", body, content_type=APPLY, query=query)


WRITERS: Final[Mapping[str, Callable[..., Any]]] = {
    "put": put,
    "merge": merge,
    "json patch": json_patch,
    "apply": apply,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_each_write_of_the_provider_is_followed_by_one_of_ours(scene: Scene, write: Callable[..., Any]) -> None:
    created = scene.create()
    watch = scene.watch()
    watch.wait_ready()
    for address in ("192.0.2.80", "192.0.2.81", "2001:db8::80"):
        hostname = {"hostname": "lb.example.org"}
        write(scene, hostname, {"ip": address})
        scene.wait_entries(hostname, {"ip": address, "ipMode": "Proxy"})
    watch.wait(lambda: watch.metrics()["dnsproxy_ip_mode_writes_total"] == 3)
    assert scene.modes(created) == ["VIP", "Proxy"] * 3
    managers = [one["manager"] for one in scene.services.get("front")["metadata"]["managedFields"]]
    assert OURS in managers
    poll_until(lambda: "IpModeSet" in scene.reasons(), "an Event", seconds=20)
    assert watch.terminate() == 0
    scene.wait_entries(hostname, {"ip": "2001:db8::80", "ipMode": "Proxy"})


def test_two_watches_are_as_one(scene: Scene) -> None:
    created = scene.create()
    watches = [scene.watch(), scene.watch()]
    for one in watches:
        one.wait_ready()
    for number in range(6):
        put(scene, {"ip": f"192.0.2.{number + 1}"})
        scene.wait_entries({"ip": f"192.0.2.{number + 1}", "ipMode": "Proxy"}, seconds=60)
    assert scene.modes(created) == ["VIP", "Proxy"] * 6
    watches[0].wait(lambda: sum(one.metrics()["dnsproxy_ip_mode_writes_total"] for one in watches) == 6)
    assert all("dnsproxy_ip_mode_errors_total" not in one.metrics() for one in watches)


def test_a_controller_that_undoes_each_write_is_named_and_sees_ever_rarer_ones(scene: Scene) -> None:
    """As MetalLB does, which compares ipMode and writes its own again."""
    created = scene.create()
    ended = threading.Event()

    def keep_vip() -> None:
        while not ended.is_set():
            if scene.entries() != [VIP]:
                put(scene, VIP)
            ended.wait(0.05)

    thread = threading.Thread(target=keep_vip)
    scene.stack.callback(thread.join)
    scene.stack.callback(ended.set)
    thread.start()
    watch = scene.watch()
    watch.wait(lambda: bool(watch.lines("undone")))
    watch.wait(lambda: watch.metrics()["dnsproxy_ip_mode_undone_total"] >= 5)
    assert not watch.ready()
    modes = scene.modes(created)
    # The first, three that are free, and the one after 5 s.
    assert modes.count("Proxy") <= 6
    poll_until(lambda: "IpModeUndone" in scene.reasons(), "an Event", seconds=20)
    (event,) = [one for one in scene.events() if one["reason"] == "IpModeUndone"]
    assert event["type"] == "Warning"
    assert event["note"].startswith("undone by controller, ")


def test_a_service_that_comes_later_changes_its_type_and_is_made_anew(scene: Scene) -> None:
    watch = scene.watch()
    watch.wait(lambda: bool(watch.lines("nothing to write")))
    watch.wait_ready()
    scene.create()
    put(scene, VIP)
    scene.wait_entries(PROXY)
    scene.services.server.request(
        "PATCH",
        f"{scene.services.path}/front",
        {"spec": {"type": "ClusterIP"}},
        content_type="application/merge-patch+json",
    )
    watch.wait(lambda: any("ClusterIP" in one["cause"] for one in watch.lines("nothing to write")))
    scene.services.server.request("DELETE", f"{scene.services.path}/front")
    watch.wait(lambda: len([one for one in watch.lines("nothing to write") if "not exist" in one["cause"]]) == 2)
    scene.create()
    put(scene, VIP)
    scene.wait_entries(PROXY)
    watch.wait_ready()


def test_a_status_that_is_proxy_already_is_said_once_and_left_alone(scene: Scene) -> None:
    scene.create()
    written = put(scene, PROXY)
    watch = scene.watch()
    watch.wait_ready()
    for number in range(3):
        put(scene, {"ip": f"192.0.2.{number + 1}", "ipMode": "Proxy"})
    watch.wait(lambda: watch.metrics()["dnsproxy_ip_mode_entries"] == 1)
    assert len(watch.lines("in place")) == 1
    assert len(scene.modes(written)) == 3
    assert watch.metrics()["dnsproxy_ip_mode_writes_total"] == 0


def test_a_thousand_entries_are_one_write(scene: Scene) -> None:
    created = scene.create()
    watch = scene.watch()
    watch.wait_ready()
    put(scene, *({"ip": f"2001:db8::{number:x}"} for number in range(1, 1001)))
    poll_until(lambda: all(one["ipMode"] == "Proxy" for one in scene.entries()), "Proxy everywhere", seconds=30)
    assert len(scene.modes(created)) == 2


REFUSALS = [
    pytest.param(METALLB, [], "MetalLB passes packets on", id="MetalLB"),
    pytest.param(METALLB, ["--balancer-ends-connections"], "MetalLB passes packets on", id="MetalLB, and a wrong word"),
    pytest.param({}, [], "--balancer-ends-connections", id="unknown"),
]


@pytest.mark.parametrize(("annotations", "arguments", "reason"), REFUSALS)
def test_a_balancer_that_passes_packets_on_is_refused_at_the_start(
    scene: Scene, annotations: Mapping[str, str], arguments: list[str], reason: str
) -> None:
    scene.create(annotations)
    put(scene, VIP)
    command = scene.command(*arguments, "--admin", "off")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert reason in done.stderr
    assert scene.entries() == [VIP]


def test_one_that_becomes_known_later_is_refused_then(scene: Scene) -> None:
    watch = scene.watch("--balancer-ends-connections")
    watch.wait_ready()
    scene.create(METALLB)
    put(scene, VIP)
    watch.wait(lambda: bool(watch.lines("refused")))
    assert not watch.ready()
    poll_until(lambda: "IpModeRefused" in scene.reasons(), "an Event", seconds=20)
    assert scene.entries() == [VIP]


def test_a_user_s_word_is_enough_for_an_unknown_balancer(scene: Scene) -> None:
    scene.create({})
    put(scene, VIP)
    scene.watch("--balancer-ends-connections")
    scene.wait_entries(PROXY)


def test_a_right_that_is_missing_is_named(scene: Scene) -> None:
    scene.create()
    put(scene, VIP)
    reading, patching, events = rights("front")
    watch = scene.watch(rules=[reading, events])
    watch.wait(lambda: bool(watch.lines("failed")))
    cause = watch.lines("failed")[0]["cause"]
    assert f"patch on services/status, resourceNames front, in {scene.services.namespace} is missing" in cause
    poll_until(lambda: "IpModeFailed" in scene.reasons(), "an Event", seconds=20)
    blind = scene.watch(rules=[patching, events])
    assert not blind.ready()
    blind.wait(lambda: bool(blind.lines("retrying")))
    # An alert asks for these states; whether the Service exists is not known.
    assert states(blind) == {"starting"}
    # `writing` during an attempt.
    watch.wait(lambda: states(watch) == {"failed"})
    assert blind.lines("nothing to write") == []
    assert scene.entries() == [VIP]


def test_a_service_that_does_not_exist_is_waited_for(scene: Scene) -> None:
    watch = scene.watch()
    watch.wait(lambda: bool(watch.lines("nothing to write")))
    assert (watch.lines("nothing to write")[0]["cause"], states(watch)) == ("it does not exist", {"waiting"})
    scene.create()
    put(scene, VIP)
    scene.wait_entries(PROXY)


def states(watch: Watching) -> set[str]:
    """The states in which Services of a watch are, as Prometheus gets them."""
    with urlopen(f"http://{watch.admin}/metrics", timeout=30) as reply:
        families = text_string_to_metric_families(reply.read().decode())
        samples = [one for family in families for one in family.samples if one.name == "dnsproxy_ip_mode_services"]
    return {one.labels["state"] for one in samples if one.value}


def test_its_rights_are_for_the_named_service_alone(scene: Scene) -> None:
    """The selector of the watch is what RBAC takes for the name: another name is refused."""
    scene.create()
    watch = scene.watch(rules=rights("other"))
    watch.wait(lambda: "cannot list resource" in watch.log.read_text())
    assert not watch.ready()

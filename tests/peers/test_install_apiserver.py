"""`dnsproxy install` and `uninstall` against a real kube-apiserver and a real CoreDNS that follows its ConfigMaps."""

from __future__ import annotations

import contextlib
import copy
import http.client
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import dns.exception
import pytest

from tests.kit.apiserver import ApiServer
from tests.kit.coredns import CoreDns, answering, running_coredns
from tests.kit.living_dns import Data, LivingCluster, following, living_cluster, localize
from tests.kit.manifest_cluster import Manifest, manifests, pick
from tests.kit.ports import free_port
from tests.kit.serve_process import Serving, serving

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "coredns"), pytest.mark.timeout(400)]

NAME: Final = "shop.example.org"
BY_DNSPROXY, BY_UPSTREAM = "192.0.2.1", "192.0.2.2"
WRITES: Final = 15
"""Writes of another client during the install: fewer than our retries."""
CUSTOM: Final = "/etc/coredns/custom"

COREFILE: Final = """.:53 {
    errors
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30
    reload
    loadbalance
}
"""
IMPORTING: Final = f"""# the distribution's
.:53 {{
    errors
    forward . /etc/resolv.conf
    cache 30
    reload
    import {CUSTOM}/*.override
}}
import {CUSTOM}/*.server
"""


@dataclass(frozen=True)
class Scene:
    """A cluster, dnsproxy, and the original upstreams of CoreDNS."""

    cluster: LivingCluster
    dnsproxy: Serving
    upstream: CoreDns
    port: int

    def render(self, data: Data) -> dict[str, str]:
        """The files of CoreDNS's container."""
        words = {
            "/etc/resolv.conf": f"127.0.0.1:{self.upstream.port}",
            CUSTOM: str(self.cluster.folder / "mounted"),
            **({self.cluster.service_address: str(self.dnsproxy.endpoint)} if self.cluster.service_address else {}),
        }
        files = {"Corefile": data["coredns"].get("Corefile", ""), **data.get("coredns-custom", {})}
        return {name: localize(text, self.port, words) for name, text in files.items()} | {"port": str(self.port)}

    @contextmanager
    def coredns(self) -> Iterator[CoreDns]:
        with following(self.cluster, ["coredns", "coredns-custom"], self.render) as coredns:
            yield coredns

    def run(self, command: str, *arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
        own = ["--service", f"{self.cluster.namespace}/dnsproxy"]
        dns = ["--dns", f"127.0.0.1:{self.port}"]
        return self.cluster.dnsproxy(command, *own, *dns, *arguments, kubeconfig=kubeconfig)


@pytest.fixture
def cluster(apiserver: ApiServer, tmp_path: Path) -> Iterator[LivingCluster]:
    with living_cluster(apiserver, tmp_path) as found:
        yield found


@pytest.fixture
def scene(cluster: LivingCluster, tmp_path: Path) -> Iterator[Scene]:
    with running_coredns(tmp_path, answering(BY_UPSTREAM)) as upstream:
        host = ["--host", f"{NAME}={BY_DNSPROXY}", "--upstream", f"127.0.0.1:{upstream.port}"]
        with serving(tmp_path, *host) as dnsproxy:
            yield Scene(cluster, dnsproxy, upstream, free_port())


def kubeadm(corefile: str = COREFILE) -> list[Manifest]:
    objects = manifests("kubeadm")
    pick(objects, "ConfigMap", "coredns")["data"]["Corefile"] = corefile
    return objects


def k3s() -> list[Manifest]:
    objects = manifests("k3s")
    pick(objects, "ConfigMap", "coredns")["data"] = {"Corefile": IMPORTING}
    return objects


def bare(config_map: dict[str, Any] | None) -> dict[str, Any] | None:
    """A person's content of a ConfigMap, without the API server's counters."""
    if config_map is None:
        return None
    metadata = config_map["metadata"]
    return {
        "data": config_map.get("data"),
        "annotations": metadata.get("annotations"),
        "labels": metadata.get("labels"),
    }


WAYS: Final = [
    pytest.param(kubeadm, "corefile", ["."], id="corefile"),
    pytest.param(k3s, "import", ["example.org"], id="import"),
]


@pytest.mark.parametrize(("make", "method", "zones"), WAYS)
def test_a_cluster_is_installed_loaded_and_left_as_it_was_with_the_printed_rights_alone(
    make: Any, method: str, zones: list[str], scene: Scene
) -> None:
    cluster = scene.cluster
    cluster.create(make(), manager="test")
    cluster.create_own_service()
    before = [bare(cluster.config_map(name)) for name in ("coredns", "coredns-custom")]
    named = [] if zones == ["."] else [f"--zone={zone}" for zone in zones]
    arguments = ["--method", method, *named]
    with scene.coredns() as coredns:
        assert coredns.addresses(f"before.{NAME}") == [BY_UPSTREAM]
        dry = scene.run("install", "--dry-run", "--output", "json", *arguments)
        document = json.loads(dry.stdout)
        assert (dry.returncode, document["wrote"]) == (0, False), dry.stderr
        assert [bare(cluster.config_map(name)) for name in ("coredns", "coredns-custom")] == before
        kubeconfig, _ = cluster.kubeconfig(document["rbac"])
        done = scene.run("install", *arguments, kubeconfig=kubeconfig)
        assert done.returncode == 0, done.stdout + done.stderr
        verdict = done.stdout.splitlines()[-1]
        # This dnsproxy has an --upstream of its own, because a resolv.conf has no ports.
        assert verdict.startswith("installed and loaded: the cluster's DNS asks dnsproxy; but names of ")
        assert (coredns.addresses(NAME), coredns.addresses(f"other.{NAME}")) == ([BY_DNSPROXY], [BY_UPSTREAM])
        there = cluster.config_map("coredns"), cluster.config_map("coredns-custom")
        again = scene.run("install", *arguments, "--output", "json")
        assert (again.returncode, json.loads(again.stdout)["wrote"]) == (0, False)
        assert (cluster.config_map("coredns"), cluster.config_map("coredns-custom")) == there
        rights = json.loads(scene.run("uninstall", "--dry-run", "--output", "json").stdout)["rbac"]
        kubeconfig, _ = cluster.kubeconfig(rights)
        out = scene.run("uninstall", kubeconfig=kubeconfig)
        assert out.returncode == 0, out.stdout + out.stderr
        assert out.stdout.splitlines()[-1] == "removed, and the cluster's DNS no longer asks dnsproxy"
        assert [bare(cluster.config_map(name)) for name in ("coredns", "coredns-custom")] == before
        assert scene.run("uninstall").stdout == "not installed: there is nothing to remove\n"


@pytest.mark.parametrize(("make", "method"), [way.values[:2] for way in WAYS], ids=["corefile", "import"])
def test_the_rights_that_an_install_prints_are_enough_for_its_uninstall(make: Any, method: str, scene: Scene) -> None:
    cluster = scene.cluster
    cluster.create(make(), manager="test")
    cluster.create_own_service()
    before = [bare(cluster.config_map(name)) for name in ("coredns", "coredns-custom")]
    arguments = ["--method", method, "--zone", "example.org"]
    kubeconfig, _ = cluster.kubeconfig(
        json.loads(scene.run("install", "--dry-run", "--output", "json", *arguments).stdout)["rbac"]
    )
    for command, *rest in (["install", *arguments], ["uninstall"]):
        done = scene.run(command, *rest, "--timeout", "0", kubeconfig=kubeconfig)
        assert done.returncode == 0, done.stdout + done.stderr
    assert [bare(cluster.config_map(name)) for name in ("coredns", "coredns-custom")] == before


def node_cache() -> list[Manifest]:
    """A cluster with a node-cache in front, which supports stub domains."""
    objects = manifests("gke")
    pick(objects, "ConfigMap", "kube-dns")["data"] = {"stubDomains": STUBS, "other": "theirs"}
    return objects


STUBS: Final = '{\n  "corp.example.net": ["198.51.100.53"]\n}\n'


def test_stub_domains_are_added_beside_those_of_others_and_go_again(scene: Scene) -> None:
    cluster = scene.cluster
    cluster.create(node_cache(), manager="test")
    cluster.create_own_service()

    def render(data: Data) -> dict[str, str]:
        # Like node-cache: kubernetes/dns, cmd/node-cache/app/configmap.go.
        text = COREFILE
        for zone, servers in json.loads(data["kube-dns"]["stubDomains"]).items():
            forward = f"forward . {' '.join(servers)} {{\n force_tcp\n }}"
            text += f"{zone}:53 {{\n errors\n cache 30\n {forward}\n reload\n}}\n"
        return scene.render({"coredns": {"Corefile": text}})

    before = bare(cluster.config_map("kube-dns"))
    with following(cluster, ["kube-dns"], render) as coredns:
        dry = scene.run("install", "--zone", "example.org", "--dry-run", "--output", "json")
        kubeconfig, _ = cluster.kubeconfig(json.loads(dry.stdout)["rbac"])
        done = scene.run("install", "--zone", "example.org", kubeconfig=kubeconfig)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "a stub domain has no fallback" in done.stderr
        assert coredns.addresses(NAME) == [BY_DNSPROXY]
        stubs = json.loads(cluster.data("kube-dns")["stubDomains"])
        assert list(stubs) == ["corp.example.net", "example.org"]
        rights = json.loads(scene.run("uninstall", "--dry-run", "--output", "json").stdout)["rbac"]
        out = scene.run("uninstall", kubeconfig=cluster.kubeconfig(rights)[0])
        assert out.returncode == 0, out.stdout + out.stderr
    assert bare(cluster.config_map("kube-dns")) == before


def test_zones_come_from_the_hosts_of_the_cluster_and_are_shown(scene: Scene) -> None:
    cluster = scene.cluster
    cluster.create(k3s(), manager="test")
    cluster.create_own_service()
    hosts = ["app.shop.example.co.uk", "*.example.org", "a.b.example.org", "grafana.cluster.local"]
    for number, host in enumerate(hosts):
        rules = [{"host": host}]
        backend = {"service": {"name": "web", "port": {"number": 80}}}
        spec = {"rules": rules, "defaultBackend": backend}
        cluster.create([{"kind": "Ingress", "metadata": {"name": f"i{number}"}, "spec": spec}])
    dry = scene.run("install", "--dry-run", "--output", "json")
    document = json.loads(dry.stdout)
    # Other tests have Ingresses in the same API server.
    assert {"example.co.uk", "example.org"} <= set(document["zones"])
    assert document["zones_from"] == "the hosts of the cluster's Ingresses"
    assert [role["kind"] for role in document["rbac"]] == ["Role", "ClusterRole"]
    kubeconfig, _ = cluster.kubeconfig(document["rbac"])
    done = scene.run("install", "--timeout", "0", kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stderr
    assert "example.co.uk" in cluster.data("coredns-custom")["switchback.server"]
    shown = next(line for line in done.stdout.splitlines() if line.startswith("zones "))
    assert "example.co.uk" in shown
    assert shown.endswith("(from the hosts of the cluster's Ingresses)")


def test_without_the_right_the_error_names_the_verb_and_the_object_and_nothing_is_written(scene: Scene) -> None:
    cluster = scene.cluster
    cluster.create(kubeadm())
    cluster.create_own_service()
    before = cluster.config_map("coredns")
    (role,) = json.loads(scene.run("install", "--dry-run", "--output", "json").stdout)["rbac"]
    reading = copy.deepcopy(role)
    for rule in reading["rules"]:
        rule["verbs"] = [verb for verb in rule["verbs"] if verb in ("get", "list")]
    kubeconfig, _ = cluster.kubeconfig([reading])
    done = scene.run("install", kubeconfig=kubeconfig)
    assert done.returncode == 3
    assert f"not allowed to patch configmaps coredns in namespace {cluster.namespace}" in done.stderr
    assert cluster.config_map("coredns") == before
    dry = scene.run("install", "--dry-run", kubeconfig=kubeconfig)
    assert dry.returncode == 0
    assert "+    # BEGIN switchback" in dry.stdout


@pytest.mark.parametrize("make", [kubeadm, k3s], ids=["corefile", "import"])
def test_the_printed_rights_allow_nothing_else(make: Any, scene: Scene) -> None:
    cluster = scene.cluster
    cluster.create(make())
    cluster.create_own_service()
    zone = ["--zone", "example.org"]
    roles = json.loads(scene.run("install", "--dry-run", "--output", "json", *zone).stdout)["rbac"]
    _, token = cluster.kubeconfig(roles)
    maps = f"/api/v1/namespaces/{cluster.namespace}/configmaps"
    refused = [
        ("POST", maps, {"metadata": {"name": "new"}}),
        ("PATCH", f"{maps}/kube-root-ca.crt", {"data": {"a": "b"}}),
        ("DELETE", f"{maps}/coredns", None),
        ("GET", maps, None),
        ("GET", f"/api/v1/namespaces/{cluster.namespace}/secrets", None),
        ("GET", f"{maps.replace(cluster.namespace, 'kube-system')}/coredns", None),
        ("PATCH", f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/coredns", {"spec": {"replicas": 0}}),
    ]
    for method, path, body in refused:
        assert _status(cluster.server, token, method, path, body) == 403, (method, path)


def _status(server: ApiServer, token: str, method: str, path: str, body: Any) -> int:
    context = ssl.create_default_context(cafile=str(server.ca_file))
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=30)
    try:
        patch = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"authorization": f"Bearer {token}", "content-type": patch}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def test_two_concurrent_installs_give_one_stanza_and_two_uninstalls_none(scene: Scene) -> None:
    cluster = scene.cluster
    cluster.create(kubeadm())
    address = cluster.create_own_service()

    def both(command: str, *arguments: str) -> list[int]:
        lines = [cluster.command_line(command, "--timeout", "0", *arguments) for _ in range(3)]
        started = [subprocess.Popen(line, stdout=subprocess.DEVNULL) for line in lines]
        return [process.wait(120) for process in started]

    assert both("install", "--service", f"{cluster.namespace}/dnsproxy") == [0, 0, 0]
    text = cluster.data("coredns")["Corefile"]
    assert text.count("BEGIN switchback") == text.count(f"forward . {address}") == 1
    assert both("uninstall", "--service", f"{cluster.namespace}/dnsproxy") == [0, 0, 0]
    assert cluster.data("coredns")["Corefile"] == COREFILE


EDITS: Final = [
    pytest.param("\n    forward . /etc/resolv.conf", "\n    forward . 192.0.2.1", id="the original forward"),
    pytest.param("max_fails 1", "max_fails 5", id="between the markers"),
]


@pytest.mark.parametrize(("old", "new"), EDITS)
def test_status_finds_a_stanza_out_of_date_that_the_clusters_dns_still_asks(old: str, new: str, scene: Scene) -> None:
    cluster = scene.cluster
    cluster.create(kubeadm())
    address = cluster.create_own_service()
    with scene.coredns() as coredns:
        assert scene.run("install").returncode == 0
        assert scene.run("status").returncode == 0
        text = cluster.data("coredns")["Corefile"]
        cluster.patch("coredns", {"data": {"Corefile": text.replace(old, new)}})
        done = scene.run("status", "--output", "json")
        document = json.loads(done.stdout)
        assert (done.returncode, document["status"]) == (1, 1), done.stdout + done.stderr
        assert document["verdict"].startswith("installed and loaded, and out of date: ")
        assert [one["addresses"] for one in document["installed"]] == [[f"{address}:53"]]
        assert coredns.addresses(NAME) == [BY_DNSPROXY]
        assert scene.run("install", "--timeout", "0").returncode == 0
        assert scene.run("status", "--output", "json").returncode == 0


def test_foreign_writes_between_our_read_and_our_write_are_kept(scene: Scene) -> None:
    """A writer that is busy for a while: at the end all its edits are there, and so is the stanza."""
    cluster = scene.cluster
    cluster.create(kubeadm())
    cluster.create_own_service()

    def write() -> None:
        for number in range(WRITES):
            cluster.patch("coredns", {"data": {"theirs": str(number)}, "metadata": {"labels": {"a": "b"}}})
            pause.wait(0.1)

    pause = threading.Event()
    writer = threading.Thread(target=write)
    writer.start()
    try:
        installed = scene.run("install", "--timeout", "0")
    finally:
        writer.join()
    assert installed.returncode == 0, installed.stderr
    data = cluster.data("coredns")
    assert data["theirs"] == str(WRITES - 1)
    assert "BEGIN switchback" in data["Corefile"]
    assert scene.run("uninstall", "--timeout", "0").returncode == 0
    assert cluster.data("coredns") == {"Corefile": COREFILE, "theirs": str(WRITES - 1)}


def test_an_owner_that_renders_its_own_again_wins_is_named_and_no_lookup_fails(scene: Scene) -> None:
    cluster = scene.cluster
    cluster.create(kubeadm(), manager="talos")
    cluster.create_own_service()
    with scene.coredns() as coredns, rendering_again(cluster, every=0.3), lookups(coredns) as failed:
        done = scene.run("install", "--timeout", "10")
    assert done.returncode == 1, done.stdout
    assert "written, not loaded: it was undone, apparently by talos" in done.stdout.splitlines()[-1]
    assert "--method print" in done.stdout.splitlines()[-1]
    assert failed == []
    assert cluster.data("coredns")["Corefile"] == COREFILE


@contextmanager
def rendering_again(cluster: LivingCluster, *, every: float) -> Iterator[None]:
    """Another writer that writes the stock Corefile again and again."""
    done = threading.Event()

    def render() -> None:
        while not done.wait(every):
            cluster.patch("coredns", {"data": {"Corefile": COREFILE}}, manager="talos")

    thread = threading.Thread(target=render)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        cluster.patch("coredns", {"data": {"Corefile": COREFILE}}, manager="talos")


@contextmanager
def lookups(coredns: CoreDns) -> Iterator[list[str]]:
    """Continuous lookups. Returns the failed ones."""
    done = threading.Event()
    failed: list[str] = []

    def ask() -> None:
        number = 0
        while not done.wait(0.02):
            number += 1
            name = f"n{number}.{NAME}"
            try:
                if coredns.addresses(name) != [BY_UPSTREAM]:
                    failed.append(name)
            except dns.exception.DNSException as error:
                failed.append(f"{name}: {error}")
        assert number

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield failed
    finally:
        done.set()
        thread.join()


def half_key(cluster: LivingCluster) -> None:
    cluster.patch("coredns-custom", {"data": {"switchback.server": None}})


def half_mark(cluster: LivingCluster) -> None:
    cluster.patch("coredns-custom", {"metadata": {"annotations": {"switchback.dev/made": None}}})


def whole(_: LivingCluster) -> None:
    """No content is lost."""


@pytest.mark.parametrize(
    ("damage", "left"), [(whole, None), (half_key, None), (half_mark, {})], ids=["whole", "key", "mark"]
)
def test_what_is_left_of_an_install_goes_whatever_half_is_gone(
    damage: Any, left: Mapping[str, str] | None, scene: Scene
) -> None:
    """The same with two methods at once."""
    cluster = scene.cluster
    cluster.create(k3s())
    cluster.create_own_service()
    assert scene.run("install", "--zone", "example.org", "--timeout", "0").returncode == 0
    custom = cluster.data("coredns-custom")["switchback.server"]
    corefile = scene.run("install", "--method", "corefile", "--timeout", "0")
    assert corefile.returncode == 0
    assert "removes the stanza of another method" in corefile.stderr
    assert cluster.config_map("coredns-custom") is None
    assert scene.run("install", "--zone", "example.org", "--timeout", "0").returncode == 0
    assert (cluster.data("coredns-custom")["switchback.server"], cluster.data("coredns")) == (
        custom,
        {"Corefile": IMPORTING},
    )
    damage(cluster)
    for _ in range(2):
        assert scene.run("uninstall", "--timeout", "0").returncode == 0
    found = cluster.config_map("coredns-custom")
    assert (None if found is None else found.get("data", {})) == left
    assert cluster.data("coredns") == {"Corefile": IMPORTING}


def test_killed_again_and_again_the_clusters_dns_answers_and_the_next_run_finishes_it(scene: Scene) -> None:
    """SIGKILL at different moments, from the start of Python to the proof."""
    cluster = scene.cluster
    cluster.create(kubeadm())
    cluster.create_own_service()
    own = ["--service", f"{cluster.namespace}/dnsproxy", "--dns", f"127.0.0.1:{scene.port}"]
    with scene.coredns() as coredns, lookups(coredns) as failed:
        for command in ("install", "uninstall"):
            for tenths in (3, 6, 8, 10, 12, 15, 20):
                process = subprocess.Popen(
                    cluster.command_line(command, *own), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(tenths / 10)
                process.kill()
                process.wait()
                text = cluster.data("coredns")["Corefile"]
                assert text == COREFILE or text.count("switchback") == 2
            done = scene.run(command)
            assert done.returncode == 0, done.stdout + done.stderr
    assert failed == []
    assert cluster.data("coredns") == {"Corefile": COREFILE}


def test_an_install_without_the_plugin_reload_says_so_and_a_restart_finishes_it(scene: Scene) -> None:
    cluster = scene.cluster
    cluster.create(kubeadm(COREFILE.replace("    reload\n", "")))
    cluster.create_own_service()
    with scene.coredns():
        done = scene.run("install", "--timeout", "5")
    assert done.returncode == 1
    verdict = done.stdout.splitlines()[-1]
    assert verdict.startswith("written, not loaded: ")
    assert "there is no reload plugin: restart Deployment" in verdict
    with scene.coredns():
        again = scene.run("install", "--output", "json")
    assert (again.returncode, json.loads(again.stdout)["wrote"]) == (0, False)


def test_nothing_is_installed_while_no_dnsproxy_answers(scene: Scene) -> None:
    cluster = scene.cluster
    cluster.create(kubeadm())
    none = scene.run("install")
    cluster.create_own_service(ready=False)
    not_ready = scene.run("install")
    assert (none.returncode, not_ready.returncode) == (1, 1)
    assert f"there is no Service dnsproxy in namespace {cluster.namespace}" in none.stderr
    assert f"no pod behind Service {cluster.namespace}/dnsproxy is ready" in not_ready.stderr
    assert cluster.data("coredns") == {"Corefile": COREFILE}

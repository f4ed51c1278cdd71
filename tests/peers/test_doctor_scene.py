"""The doctor before an installation, after it, and with one fault at a time, on real programs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dnsproxy.corefile.plan import plan_install
from dnsproxy.doctor.judge import dns_findings
from sidecar.values.endpoints import Endpoint
from tests.kit.accounts import cluster_role, create_account, write_kubeconfig
from tests.kit.apiserver import ApiServer
from tests.kit.manifest_cluster import manifests, pick
from tests.peers.doctor_scene import (
    BALANCER,
    HOST,
    PLAIN_BALANCER,
    PLAIN_HOST,
    RELAY,
    Scene,
    create,
    create_ingress,
    running_scene,
    wait_until,
)

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "coredns", "nginx")

BEFORE: Final = ("--service", "switchback/none", "--relay", "switchback/none")
"""Without our deployments."""
CORE: Final = "/api/v1/namespaces"
APPS: Final = "/apis/apps/v1/namespaces"
numbers = itertools.count()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with running_scene(tmp_path_factory.mktemp("doctor")) as one:
        yield one


def wrong(document: Any) -> set[str]:
    """The ids of the faults."""
    return {one["id"] for one in document["findings"] if one["severity"] in ("problem", "warning")}


def test_before_the_installation_the_fault_is_named(scene: Scene) -> None:
    with stanza(scene, scene.stock):
        status, document, _ = scene.doctor(HOST, *BEFORE, dns=scene.without_stanza)
    assert status == 1
    assert wrong(document) == {"short-circuited"}
    (finding,) = [one for one in document["findings"] if one["id"] == "short-circuited"]
    assert finding["hosts"] == [HOST]
    evidence = " ".join(finding["evidence"])
    assert "kube-proxy 1.34.4" in evidence
    assert "plain closed, v1 answered (200 OK), v2 answered (200 OK)" in evidence
    assert finding["steps"][-1]["lines"][0] == "kubectl apply -k deploy"


def test_after_it_the_doctor_is_content(scene: Scene) -> None:
    status, document, stderr = scene.doctor("--relay-admin", scene.relay_admin)
    assert wrong(document) == set()
    assert document["unseen"] == []
    assert (status, stderr) == (0, "")
    told = {one["id"] for one in document["findings"]}
    assert {"short-circuit-answered", "loaded", "relayed", "header-required"} <= told
    assert document["verdict"] == "this cluster: all is well"


@contextmanager
def stanza(scene: Scene, text: str) -> Iterator[None]:
    """Put another Corefile into the ConfigMap."""
    scene.write_corefile(text)
    try:
        yield
    finally:
        scene.write_corefile(scene.installed)


@contextmanager
def patched(scene: Scene, path: str, patch: Any, back: Any) -> Iterator[None]:
    scene.patch(path, patch)
    try:
        yield
    finally:
        scene.patch(path, back)


def test_a_removed_stanza(scene: Scene) -> None:
    with stanza(scene, scene.stock):
        _, document, _ = scene.doctor(dns=scene.without_stanza)
    assert wrong(document) == {"stanza-missing", "short-circuited"}


def test_a_stanza_that_is_written_and_not_loaded(scene: Scene) -> None:
    _, document, _ = scene.doctor(dns=scene.without_stanza)
    assert wrong(document) == {"stanza-not-loaded", "short-circuited"}


def test_a_damaged_stanza(scene: Scene) -> None:
    end = next(line for line in scene.installed.splitlines() if "END" in line)
    with stanza(scene, scene.installed.replace(end, "")):
        _, document, _ = scene.doctor(dns=scene.without_stanza)
    assert "stanza-damaged" in wrong(document)


def test_a_dnsproxy_that_hangs(scene: Scene) -> None:
    scene.dnsproxy.hang()
    try:
        # Its admin port hangs as well, which is a separate finding.
        _, document, _ = scene.doctor("--admin", "127.0.0.1:1")
    finally:
        scene.dnsproxy.resume()
        # CoreDNS asks it again after a health check, and the next test needs that.
        wait_until(lambda: scene.addresses(HOST) == [RELAY])
    assert wrong(document) == {"dnsproxy-silent", "short-circuited"}


def test_a_dnsproxy_without_a_ready_pod(scene: Scene) -> None:
    path = "/apis/discovery.k8s.io/v1/namespaces/switchback/endpointslices/dnsproxy"

    def ready(state: bool) -> Any:
        return {"endpoints": [{"addresses": ["10.244.0.5"], "conditions": {"ready": state}}]}

    with patched(scene, path, ready(False), ready(True)):
        _, document, _ = scene.doctor()
    assert wrong(document) == {"dnsproxy-down"}


def test_a_stale_table(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns_findings, "STALE_SECONDS", -1.0)
    _, document, _ = scene.doctor()
    assert wrong(document) == {"table-stale"}
    assert "Ingress" in json.dumps(document)


def test_a_relay_whose_backend_is_wrong(scene: Scene) -> None:
    _, document, _ = scene.doctor("--relay", "switchback/relay-astray", "--relay-admin", scene.astray_admin)
    assert "relay-backend" in wrong(document)
    assert "connection-refused" in json.dumps(document)


def test_a_host_of_the_wrong_class(scene: Scene) -> None:
    create_ingress(scene.api, "plain", PLAIN_HOST, PLAIN_BALANCER)
    try:
        wait_until(lambda: scene.addresses(PLAIN_HOST) == [RELAY])
        _, document, _ = scene.doctor()
    finally:
        scene.api.delete_ingress("plain")
    assert wrong(document) == {"wrong-class"}
    (finding,) = [one for one in document["findings"] if one["id"] == "wrong-class"]
    assert finding["steps"][0]["lines"] == ["DNSPROXY_TARGET_FOR=plain=service:plain/controller"]


def test_node_local_dns_in_between(scene: Scene) -> None:
    objects = manifests("kops-nodelocal")
    made = [("ConfigMap", "node-local-dns", CORE), ("DaemonSet", "node-local-dns", APPS)]
    with ExitStack() as stack:
        for kind, name, group in made:
            create(scene.api, pick(objects, kind, name), "kube-system")
            path = f"{group}/kube-system/{kind.lower()}s/{name}"
            stack.callback(scene.api.request, "DELETE", path)
        _, document, _ = scene.doctor(dns=scene.without_stanza)
    # The cache forwards public names to the nameservers of the node, dnsproxy in this scene to a server of the test.
    assert wrong(document) == {"node-local-bypass", "short-circuited", "upstreams-differ"}


def test_a_loop(scene: Scene) -> None:
    path = f"{APPS}/switchback/deployments/dnsproxy"

    def upstream(address: str) -> Any:
        container = {"name": "dnsproxy", "image": "localhost/x:1", "args": ["serve", "--upstream", address]}
        return {"spec": {"template": {"spec": {"containers": [container]}}}}

    with patched(scene, path, upstream("127.96.0.10"), upstream("192.0.2.53")):
        _, document, _ = scene.doctor()
    assert wrong(document) == {"dns-loop"}


def test_a_wrong_cluster_ip(scene: Scene) -> None:
    with stanza(scene, plan_install(scene.stock, addresses=[Endpoint("127.96.0.77", 53)]).new):
        _, document, _ = scene.doctor(dns=scene.without_stanza)
    assert wrong(document) == {"stanza-address", "short-circuited"}


def test_a_relay_that_is_not_trusted(scene: Scene) -> None:
    path = f"{CORE}/ingress-nginx/configmaps/controller"

    def trust(networks: str) -> Any:
        return {"data": {"proxy-real-ip-cidr": networks}}

    with patched(scene, path, trust("192.168.0.0/16"), trust("10.244.0.0/16")):
        _, document, _ = scene.doctor()
    assert wrong(document) == {"relay-not-trusted"}


def test_a_status_alone_never_says_that_switchback_is_needed_no_longer(scene: Scene) -> None:
    path = f"{CORE}/ingress-nginx/services/controller/status"

    def mode(name: str) -> Any:
        return {"status": {"loadBalancer": {"ingress": [{"ip": BALANCER, "ipMode": name}]}}}

    with patched(scene, path, mode("Proxy"), mode("VIP")):
        # The scene has no load balancer that would add the header to the connection.
        status, document, _ = scene.doctor("--no-probe")
        _, dialled, _ = scene.doctor()
    assert wrong(document) == wrong(dialled) == set()
    assert "no-longer-needed" not in {one["id"] for one in (*document["findings"], *dialled["findings"])}
    assert status == 3


def test_a_host_that_no_controller_serves(scene: Scene) -> None:
    status, document, _ = scene.doctor("ap.example.org", "--no-probe")
    assert status == 1
    assert wrong(document) == {"host-unknown"}
    assert f"dnsproxy doctor {HOST}" in json.dumps(document)


READING: Final = [
    {"apiGroups": [""], "resources": ["services", "configmaps", "nodes"], "verbs": ["get", "list"]},
    {"apiGroups": ["apps"], "resources": ["deployments", "daemonsets"], "verbs": ["get", "list"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "list"]},
    {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses", "ingressclasses"], "verbs": ["get", "list"]},
]
"""The rights in `dnsproxy doctor --help`."""


def kubeconfig(api: ApiServer, rules: list[dict[str, Any]], folder: Path) -> Path:
    """The kubeconfig of a service account that has only these rights."""
    name = f"doctor-{next(numbers)}"
    token = create_account(api, "default", name, [cluster_role(rules)])
    return write_kubeconfig(api, token, folder / f"{name}.kubeconfig")


def test_reading_is_all_that_it_takes(scene: Scene, tmp_path: Path) -> None:
    saved = tmp_path / "facts.json"
    reader = kubeconfig(scene.api, READING, tmp_path)
    before = scene.api.request("GET", f"{CORE}/kube-system/configmaps/coredns")["metadata"]["resourceVersion"]
    status, document, _ = scene.doctor("--relay-admin", scene.relay_admin, "--save", str(saved), kubeconfig=reader)
    assert (status, wrong(document), document["unseen"]) == (0, set(), [])
    after = scene.api.request("GET", f"{CORE}/kube-system/configmaps/coredns")["metadata"]["resourceVersion"]
    assert before == after
    text = saved.read_text(encoding="utf-8")
    token = yaml.safe_load(reader.read_text(encoding="utf-8"))["users"][0]["user"]["token"]
    # Neither the identity of the caller nor other contents of a ConfigMap.
    assert token not in text
    assert "ssl-protocols" not in text


def test_without_any_rights_it_could_not_look_and_names_what_it_lacks(scene: Scene, tmp_path: Path) -> None:
    status, document, _ = scene.doctor(kubeconfig=kubeconfig(scene.api, [], tmp_path))
    assert status == 3
    lacking = {one["what"] for one in document["unseen"]}
    assert {"list services", "list ingresses", "list daemonsets.apps"} <= lacking


@pytest.mark.parametrize("missing", range(len(READING)))
def test_each_right_that_is_missing_is_named_and_the_rest_is_judged(scene: Scene, tmp_path: Path, missing: int) -> None:
    rules = [rule for index, rule in enumerate(READING) if index != missing]
    status, document, _ = scene.doctor("--no-probe", kubeconfig=kubeconfig(scene.api, rules, tmp_path))
    assert status in (1, 3)
    assert any("forbidden" in one.get("why", "") for one in document["unseen"])


def test_an_api_server_that_is_away_is_status_3(tmp_path: Path, scene: Scene) -> None:
    config = yaml.safe_load(scene.api.kubeconfig.read_text(encoding="utf-8"))
    config["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:1"}
    path = tmp_path / "away.kubeconfig"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    status, _, stderr = scene.doctor(kubeconfig=path)
    assert status == 3
    assert stderr.startswith("Error: the API server at https://127.0.0.1:1 ")

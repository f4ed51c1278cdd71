"""The rights of the accounts with additional components, and the calls that are still refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dnsproxy.doctor.facts.file import parse_facts
from tests.deploy.called import DNSPROXY, DOCTOR, GATEWAYS, NEVER_ALLOWED, NOT_DOCTOR, PUBLISHER, rows, serving
from tests.deploy.calls import Caller, account
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import DEPLOY, compose, find, kustomizations
from tests.deploy.putting import put, take_away
from tests.kit.apiserver import ApiServer, collection_path
from tests.kit.manifest_cluster import manifests as objects_of
from tests.kit.ports import free_port
from tests.kit.prepared_program import play
from tests.kit.programs import program
from tests.kit.recorded_cluster import writable

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

COMPONENTS = [DEPLOY / "components" / name for name in ("external-dns", "doctor")]

SEEN = (
    *("list services", "get services", "get configmaps", "list nodes", "list deployments", "list endpointslices"),
    "list dnsendpoints",
)
"""The doctor may call these in every namespace."""


@pytest.fixture(scope="module")
def with_gateways(bare: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> ApiServer:
    folder = compose(tmp_path_factory.mktemp("composed"), with_components=COMPONENTS)
    kubectl(bare, "apply", "-k", str(folder))
    return bare


@pytest.fixture(scope="module")
def gateway_reader(with_gateways: ApiServer) -> Caller:
    return account(with_gateways, "switchback", "dnsproxy")


@pytest.fixture(scope="module")
def doctor(with_gateways: ApiServer) -> Caller:
    return account(with_gateways, "switchback-doctor", "doctor")


@pytest.fixture(scope="module")
def publisher(with_gateways: ApiServer) -> Caller:
    return account(with_gateways, "switchback", "publisher")


def test_with_the_component_dnsproxy_reads_gateways(gateway_reader: Caller) -> None:
    calls = rows(DNSPROXY, GATEWAYS)
    assert gateway_reader.allowed(calls) == calls


def test_with_the_component_dnsproxy_may_do_nothing_else(gateway_reader: Caller) -> None:
    assert gateway_reader.allowed(rows(NEVER_ALLOWED)) == []


def test_the_publisher_may_keep_its_records(publisher: Caller) -> None:
    assert publisher.allowed(rows(PUBLISHER)) == rows(PUBLISHER)


def test_the_publisher_may_do_nothing_else(publisher: Caller) -> None:
    assert publisher.allowed(rows(DNSPROXY, NEVER_ALLOWED, GATEWAYS, "list dnsendpoints")) == []


def test_the_doctor_may_look(doctor: Caller) -> None:
    assert doctor.allowed(rows(DOCTOR)) == rows(DOCTOR)


def test_the_doctor_may_do_nothing_else(doctor: Caller) -> None:
    others = rows(NEVER_ALLOWED, NOT_DOCTOR, PUBLISHER)
    assert doctor.allowed(one for one in others if not one.startswith(SEEN)) == []


def test_an_administrator_may_do_all_of_it(with_gateways: ApiServer) -> None:
    """Otherwise a call would be refused for another reason than its rights."""
    calls = rows(DNSPROXY, NEVER_ALLOWED, GATEWAYS, PUBLISHER, DOCTOR, NOT_DOCTOR)
    assert Caller(with_gateways, with_gateways.token).allowed(calls) == calls


def test_the_program_itself_gets_along_with_gateways(with_gateways: ApiServer, tmp_path: Path) -> None:
    config = account(with_gateways, "switchback", "dnsproxy").write_kubeconfig(tmp_path / "kubeconfig")
    with serving("--source", "ingress", "--source", "gateway", kubeconfig=config, folder=tmp_path) as log:
        assert "forbidden" not in log.read_text().lower()


CONTROLLER = """
{apiVersion: v1, kind: Service,
 metadata: {name: ingress, namespace: default, labels: {app.kubernetes.io/name: ingress-nginx}},
 spec: {type: LoadBalancer, externalIPs: [192.0.2.80], selector: {app: ingress}, ports: [{port: 443}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: ingress, namespace: default},
 spec: {selector: {matchLabels: {app: ingress}}, template: {metadata: {labels: {app: ingress}},
  spec: {containers: [{name: controller, image: "example.org/controller:1", args: [--configmap=default/ingress]}]}}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: ingress, namespace: default}, data: {use-proxy-protocol: "true"}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: kube-proxy, namespace: kube-system},
 spec: {selector: {matchLabels: {app: kube-proxy}}, template: {metadata: {labels: {app: kube-proxy}},
  spec: {containers: [{name: kube-proxy, image: "example.org/kube-proxy:v1.34.0"}]}}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-proxy, namespace: kube-system},
 data: {config.conf: "mode: nftables"}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, ports: [{name: admin, port: 8081}],
 metadata: {name: dnsproxy-1, namespace: switchback, labels: {kubernetes.io/service-name: dnsproxy}},
 endpoints: [{addresses: [192.0.2.53], targetRef: {kind: Pod, name: dnsproxy-1, namespace: switchback}}]}
"""
"""The doctor's reads in a cluster, besides its DNS and our own objects."""


@pytest.fixture
def shop(with_gateways: ApiServer) -> Iterator[None]:
    dns = [writable(one) for one in objects_of("kubeadm") if one["metadata"]["name"] != "kube-proxy"]
    objects = [*dns, *yaml.safe_load_all(CONTROLLER)]
    put(with_gateways, objects)
    with_gateways.create_ingress("shop", ["shop.example.org"])
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.80"}]}}}
    path = f"{collection_path('default')}/shop/status"
    with_gateways.request("PATCH", path, status, content_type="application/merge-patch+json")
    try:
        yield
    finally:
        with_gateways.delete_all_ingresses()
        take_away(with_gateways, objects)


@pytest.mark.usefixtures("shop")
def test_the_doctor_itself_gets_along_with_its_rights(doctor: Caller, tmp_path: Path) -> None:
    config, saved = doctor.write_kubeconfig(tmp_path / "kubeconfig"), tmp_path / "facts.json"
    command = [sys.executable, "-m", "dnsproxy", "doctor", f"--kubeconfig={config}", f"--save={saved}"]
    command += ["--no-probe", f"--public-dns=127.0.0.1:{free_port()}"]
    done = play(command)
    facts = parse_facts(saved.read_bytes())
    assert [str(one) for one in facts.refusals] == [], done.stdout
    assert [host.hostname for host in facts.hosts] == ["shop.example.org"]
    (controller,) = [one for one in facts.services if one.key == "default/ingress"]
    assert controller.settings == {"use-proxy-protocol": "true"}
    assert [one.settings for one in facts.components] == [{"mode": "nftables"}]
    assert facts.dns is not None
    assert facts.dns.decides
    assert facts.dnsproxy is not None
    sources = {key: value for key, value in facts.dnsproxy.settings.items() if key.startswith("DNSPROXY_SOURCE")}
    assert sources == {"DNSPROXY_SOURCE": "ingress", "DNSPROXY_SOURCE_GATEWAY": "gateway"}
    assert [page.where for page in facts.admin] == ["pod switchback/dnsproxy-1"]


GUIDE = (DEPLOY / "README.md").read_text(encoding="utf-8").partition("\n## Doctor\n")[2].partition("\n## ")[0]
ALL_HOSTS, ONE_HOST = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        pytest.param(ALL_HOSTS.splitlines()[0], ["doctor"], id="for all hosts"),
        pytest.param(ONE_HOST, ["doctor", "app.example.org"], id="for one"),
    ],
)
def test_a_job_is_made_as_the_guide_says(with_gateways: ApiServer, script: str, arguments: list[str]) -> None:
    path = f"{Path(program('kubectl')).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(with_gateways.kubeconfig)}
    command = ["sh", "-euc", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    (job,) = with_gateways.request("GET", "/apis/batch/v1/namespaces/switchback-doctor/jobs")["items"]
    kubectl(with_gateways, "-n", "switchback-doctor", "delete", "job", "doctor")
    assert job["spec"]["template"]["spec"]["containers"][0]["args"] == arguments


def test_the_doctors_pod_is_admitted(with_gateways: ApiServer) -> None:
    template = kustomizations()["components/doctor"]
    spec = find(template, "CronJob", "doctor")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "doctor"}, "spec": spec}
    made = with_gateways.request("POST", "/api/v1/namespaces/switchback-doctor/pods?dryRun=All", pod)
    assert made["spec"]["serviceAccountName"] == "doctor"

"""The real API server takes every kustomization, strictly and without a warning, and its pods are admitted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import BASE, DEPLOY, Manifest, components, compose, overlays, pod_templates, render
from tests.peers.apiserver import ApiServer, running_apiserver
from tests.peers.programs import program

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

NAMESPACE = "/api/v1/namespaces/switchback"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with with_definitions(tmp_path_factory.mktemp("deploy")) as server:
        yield server


@contextmanager
def with_definitions(folder: Path) -> Iterator[ApiServer]:
    """An API server that knows the objects that are not Kubernetes' own."""
    with running_apiserver(folder) as server:
        for definitions in (
            f"{program('gateway-api')}/standard",
            program("prometheus-operator"),
            program("dnsendpoint"),
        ):
            kubectl(server, "apply", "--server-side", "-f", definitions)
        yield server


@pytest.fixture(params=[BASE, *overlays(), *components()], ids=lambda path: str(path.relative_to(DEPLOY)))
def manifests(request: pytest.FixtureRequest, tmp_path: Path) -> list[Manifest]:
    folder: Path = request.param
    if folder in components():
        folder = compose(tmp_path, with_components=[folder])
    return render(folder)


@pytest.fixture(scope="module")
def applied(cluster: ApiServer) -> ApiServer:
    kubectl(cluster, "apply", "-k", str(BASE))
    return cluster


def test_every_kustomization_is_taken_without_a_warning(cluster: ApiServer, manifests: list[Manifest]) -> None:
    kubectl(cluster, "apply", "-f", "-", given=[one for one in manifests if one["kind"] == "Namespace"])
    kubectl(cluster, "apply", "-f", "-", given=manifests)
    # A dry run on the server, which fails where there is a difference: GitOps tools would see one that never ends.
    kubectl(cluster, "diff", "-f", "-", given=manifests)


def test_the_pods_are_admitted_under_pod_security(applied: ApiServer) -> None:
    admit_quota(applied)
    for workload, template in pod_templates(render(BASE)):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**template["metadata"], "name": workload["metadata"]["name"]},
            "spec": template["spec"],
        }
        made = applied.request("POST", f"{NAMESPACE}/pods?dryRun=All", pod)
        assert made["spec"]["priority"] >= 2_000_000_000


def test_a_pod_that_is_not_restricted_is_refused(applied: ApiServer) -> None:
    spec = {"containers": [{"name": "main", "image": "example.org/other:1"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}, "spec": spec}
    with pytest.raises(AssertionError, match="violates PodSecurity"):
        applied.request("POST", f"{NAMESPACE}/pods?dryRun=All", pod)


def test_a_service_gets_the_families_that_the_cluster_has(applied: ApiServer) -> None:
    for name in ("dnsproxy", "relay"):
        spec = applied.request("GET", f"{NAMESPACE}/services/{name}")["spec"]
        assert (spec["ipFamilyPolicy"], len(spec["clusterIPs"])) == ("PreferDualStack", 1)


def test_a_removal_leaves_nothing_and_may_be_repeated(tmp_path: Path) -> None:
    for folder in ("server", "composed"):
        (tmp_path / folder).mkdir()
    everything = compose(
        tmp_path / "composed", with_components=[one for one in components() if one.name != "node-local"]
    )
    with with_definitions(tmp_path / "server") as server:
        kubectl(server, "apply", "-k", str(everything))
        assert ours(server) != []
        for _ in range(2):
            # Namespaces end by the controller manager, which is not here.
            kubectl(server, "delete", "-k", str(everything), "--ignore-not-found", "--wait=false")
        assert ours(server) == ["namespace/switchback", "namespace/switchback-nodes"]


def ours(server: ApiServer) -> list[str]:
    """What is left of us anywhere, the namespace's contents included."""
    kinds = "namespaces,clusterroles,clusterrolebindings,roles,rolebindings,deployments,daemonsets,jobs,services"
    kinds += ",configmaps,serviceaccounts,networkpolicies,resourcequotas,poddisruptionbudgets"
    found = kubectl(server, "get", kinds, "-A", "-l", "app.kubernetes.io/part-of=switchback", "-o", "name")
    return sorted(found.split())


def admit_quota(server: ApiServer) -> None:
    """Give the quota a status, as the controller manager does: until then the API server admits nothing under it."""
    path = f"{NAMESPACE}/resourcequotas/cluster-critical"
    hard = server.request("GET", path)["spec"]["hard"]
    status = {"status": {"hard": hard, "used": {"pods": "0"}}}
    server.request("PATCH", f"{path}/status", status, content_type="application/merge-patch+json")

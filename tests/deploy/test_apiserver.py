"""The real API server accepts every kustomization, strictly and without a warning, and admits its pods."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.deploy.kubectl import KINDS, LABEL, kubectl
from tests.deploy.manifests import (
    ALONE,
    INSTALLATION,
    Manifest,
    added,
    compose,
    kustomizations,
    name_of,
    pod_templates,
    render,
)
from tests.deploy.quotas import admitted_pod, set_quota_status
from tests.kit.apiserver import ApiServer

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

NAMESPACE = "/api/v1/namespaces/switchback"
SPACES = ("switchback", "switchback-doctor", "switchback-nodes", "switchback-wholeip")


def test_every_object_of_every_kustomization_is_taken_without_a_warning(applied: ApiServer) -> None:
    spaces = [one for one in distinct() if one["kind"] == "Namespace"]
    kubectl(applied, "apply", "-f", "-", given=spaces)
    for objects in rounds(distinct()):
        kubectl(applied, "apply", "-f", "-", given=objects)
        # A server-side dry run fails if there is a difference: GitOps tools would show a permanent one.
        kubectl(applied, "diff", "-f", "-", given=objects)


def test_the_pods_are_admitted_under_pod_security(applied: ApiServer) -> None:
    set_quota_status(applied, "switchback", "cluster-critical")
    for workload, template in pod_templates(kustomizations()["deploy"]):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**template["metadata"], "name": workload["metadata"]["name"]},
            "spec": template["spec"],
        }
        made = admitted_pod(applied, "switchback", pod)
        # Names resolve without operate, and nothing else does.
        is_critical = workload["metadata"]["name"] in {"dnsproxy", "relay"}
        assert (made["spec"]["priority"] >= 2_000_000_000) is is_critical


def test_a_pod_that_is_not_restricted_is_refused(applied: ApiServer) -> None:
    spec = {"containers": [{"name": "main", "image": "example.org/other:1"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}, "spec": spec}
    with pytest.raises(AssertionError, match="violates PodSecurity"):
        applied.request("POST", f"{NAMESPACE}/pods?dryRun=All", pod)


def test_a_service_gets_the_families_that_the_cluster_has(applied: ApiServer) -> None:
    spec = applied.request("GET", f"{NAMESPACE}/services/dnsproxy")["spec"]
    assert (spec["ipFamilyPolicy"], len(spec["clusterIPs"])) == ("PreferDualStack", 1)


def test_a_removal_leaves_nothing_and_may_be_repeated(applied: ApiServer, tmp_path: Path) -> None:
    everything = compose(tmp_path, with_components=[one for one in added() if one.name not in ALONE])
    # Objects of other tests that are not in this kustomization.
    kubectl(applied, "delete", KINDS, "-A", "-l", LABEL, "--wait=false")
    assert ours(applied) == [f"namespace/{name}" for name in SPACES]
    kubectl(applied, "apply", "-k", str(everything))
    assert len(ours(applied)) > len(render(INSTALLATION))
    for _ in range(2):
        # The controller manager, which is missing here, would end namespaces.
        kubectl(applied, "delete", "-k", str(everything), "--ignore-not-found", "--wait=false")
    assert ours(applied) == [f"namespace/{name}" for name in SPACES]


def distinct() -> list[Manifest]:
    """Each object of all kustomizations, once for each distinct content."""
    found = {
        (name_of(one), json.dumps(one, sort_keys=True)): one
        for manifests in kustomizations().values()
        for one in manifests
    }
    return list(found.values())


def rounds(objects: Sequence[Manifest]) -> list[list[Manifest]]:
    """All objects in as few rounds as possible, each with unique names."""
    found: list[dict[str, Manifest]] = []
    for one in objects:
        name = name_of(one)
        free = next((names for names in found if name not in names), None)
        if free is None:
            found.append(free := {})
        free[name] = one
    return [list(names.values()) for names in found]


def ours(server: ApiServer) -> list[str]:
    """All remaining objects of ours, including those inside the namespace."""
    return sorted(kubectl(server, "get", f"namespaces,{KINDS}", "-A", "-l", LABEL, "-o", "name").split())

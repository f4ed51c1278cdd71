from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dnsproxy.cluster_dns.owner import OUR_MANAGER, Form, Habit, last_writer, owner_of
from sidecar.kubernetes.structs.metadata import Metadata

KEEPS, REVERTS, UNKNOWN = Habit.KEEPS, Habit.REVERTS, Habit.UNKNOWN


def metadata(**fields: Any) -> Metadata:
    return msgspec.convert({"name": "coredns", **fields}, Metadata)


def managers(*names: str) -> dict[str, Any]:
    return {
        "managedFields": [{"manager": name, "time": f"2026-03-0{at}T00:00:00Z"} for at, name in enumerate(names, 1)]
    }


@pytest.mark.parametrize(
    ("fields", "name", "habit", "form"),
    [
        ({"labels": {"dns.operator.openshift.io/owning-dns": "x"}}, "the OpenShift DNS", REVERTS, Form.OPENSHIFT_DNS),
        (
            {"ownerReferences": [{"apiVersion": "operator.openshift.io/v1", "kind": "DNS", "name": "default"}]},
            "the OpenShift DNS",
            REVERTS,
            Form.OPENSHIFT_DNS,
        ),
        (managers("eks"), "the EKS add-on", REVERTS, Form.EKS_ADDON),
        (managers("kubectl-edit", "eks", "kubectl-edit"), "the EKS add-on", REVERTS, Form.EKS_ADDON),
        ({"labels": {"addon.kops.k8s.io/name": "coredns"}}, "kops", REVERTS, Form.KOPS_CLUSTER),
        ({"labels": {"k0s.k0sproject.io/stack": "coredns"}}, "k0s", REVERTS, Form.K0S_CLUSTER),
        (
            {"annotations": {"meta.helm.sh/release-name": "rke2-coredns"}},
            "RKE2's chart",
            REVERTS,
            Form.HELM_CHART_CONFIG,
        ),
        (
            {"annotations": {"objectset.rio.cattle.io/owner-gvk": "k3s.cattle.io/v1, Kind=Addon"}},
            "k3s",
            REVERTS,
            Form.STANZA,
        ),
        (
            {
                "annotations": {"meta.helm.sh/release-name": "coredns"},
                "labels": {"helm.toolkit.fluxcd.io/name": "coredns"},
            },
            "a Flux HelmRelease",
            REVERTS,
            Form.HELM_VALUES,
        ),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "dns"}}, "a Flux Kustomization", REVERTS, Form.STANZA),
        (managers("kustomize-controller"), "a Flux Kustomization", REVERTS, Form.STANZA),
        ({"annotations": {"argocd.argoproj.io/tracking-id": "a:b"}}, "Argo CD", REVERTS, Form.STANZA),
        (
            {
                "annotations": {"argocd.argoproj.io/tracking-id": "a:b"},
                "labels": {"helm.sh/chart": "coredns-1.43.2", "app.kubernetes.io/managed-by": "Helm"},
            },
            "Argo CD",
            REVERTS,
            Form.HELM_VALUES,
        ),
        ({"labels": {"argocd.argoproj.io/instance": "dns"}}, "Argo CD", REVERTS, Form.STANZA),
        (managers("argocd-controller"), "Argo CD", REVERTS, Form.STANZA),
        ({"labels": {"resources.gardener.cloud/managed-by": "gardener"}}, "Gardener", REVERTS, Form.STANZA),
        ({"labels": {"doks.digitalocean.com/managed": "true"}}, "DigitalOcean", REVERTS, Form.STANZA),
        ({"annotations": {"meta.helm.sh/release-name": "dns"}}, "a Helm release", REVERTS, Form.HELM_VALUES),
        (managers("helm"), "a Helm release", REVERTS, Form.HELM_VALUES),
        ({"labels": {"addonmanager.kubernetes.io/mode": "Reconcile"}}, "the cluster's addon", REVERTS, Form.STANZA),
        ({"labels": {"addonmanager.kubernetes.io/mode": "EnsureExists"}}, "the cluster's addon", KEEPS, None),
        (managers("talos"), "Talos", KEEPS, None),
        (managers("kubeadm"), "kubeadm", KEEPS, None),
        (managers("kubeadm", "kubectl-edit"), "kubeadm", KEEPS, None),
    ],
)
def test_the_marks_of_an_object_tell_its_owner(
    fields: dict[str, Any], name: str, habit: Habit, form: Form | None
) -> None:
    owner = owner_of(metadata(**fields))
    assert owner.name.startswith(name)
    assert (owner.habit, owner.form) == (habit, form)
    assert owner.evidence
    assert owner.remark


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({}, "an unknown owner"),
        ({"labels": None, "annotations": None, "managedFields": None, "ownerReferences": None}, "an unknown owner"),
        ({"managedFields": [{}]}, "an unknown owner"),
        (managers(OUR_MANAGER), "an unknown owner"),
        (managers("kubectl-edit"), "kubectl-edit, the last writer"),
        (managers("first", "second", OUR_MANAGER), "second, the last writer"),
        ({"labels": {"doks.digitalocean.com/managed": "false"}}, "an unknown owner"),
        ({"labels": {"addonmanager.kubernetes.io/mode": "Other"}}, "an unknown owner"),
        ({"annotations": {"objectset.rio.cattle.io/owner-gvk": "apps/v1, Kind=Deployment"}}, "an unknown owner"),
        ({"labels": {"eks.amazonaws.com/component": "coredns"}}, "an unknown owner"),
        ({"labels": {"app.kubernetes.io/managed-by": "Helm"}}, "an unknown owner"),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "DNS", "name": "default"}]}, "an unknown owner"),
        ({"managedFields": [{"manager": "eks", "subresource": "status"}]}, "an unknown owner"),
    ],
    ids=str,
)
def test_without_a_mark_the_owner_is_unknown(fields: dict[str, Any], name: str) -> None:
    owner = owner_of(metadata(**fields))
    assert owner.name.startswith(name)
    assert (owner.habit, owner.form) == (UNKNOWN, None)


def test_the_last_writer_is_the_one_with_the_latest_time() -> None:
    times = [{"manager": "b", "time": "2026-03-02T00:00:00Z"}, {"manager": "a", "time": "2026-03-09T00:00:00Z"}]
    assert last_writer(metadata(managedFields=times)) == "a"
    assert last_writer(metadata(managedFields=[{"manager": "c"}, *times])) == "a"
    assert last_writer(metadata()) is None


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"annotations": {"meta.helm.sh/release-name": "x" * 200_000}}, id="an annotation"),
        pytest.param(
            {"ownerReferences": [{"apiVersion": "operator.openshift.io/v1", "kind": "DNS", "name": "x" * 200_000}]},
            id="an owner's name",
        ),
        pytest.param(managers("x" * 200_000), id="a manager"),
    ],
)
def test_a_long_mark_is_not_repeated_whole(fields: dict[str, Any]) -> None:
    owner = owner_of(metadata(**fields))
    assert "xxx" in owner.evidence
    assert len(owner.evidence) + len(owner.name) < 1_000

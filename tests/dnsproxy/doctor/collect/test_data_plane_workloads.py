"""Which DaemonSets can be the data plane, whatever a tenant writes into its own namespace."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import msgspec
import pytest

from dnsproxy.doctor.collect.data_plane_workloads import data_plane_workloads
from sidecar.kubernetes.structs.workload import Workload


def daemon_set(
    key: str, *, host_network: bool | None = True, desired: int | None = 3, ready: int | None = 3, **more: Any
) -> Workload:
    namespace, _, name = key.partition("/")
    body = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": {"spec": {"hostNetwork": host_network, "containers": [{"name": name, "image": "x:1"}]}}},
        "status": {"desiredNumberScheduled": desired, "numberReady": ready},
    }
    return msgspec.convert(body | more, Workload)


def found(*daemon_sets: Workload) -> list[tuple[str, str]]:
    return [(name, f"{one.metadata.namespace}/{one.metadata.name}") for name, one in data_plane_workloads(daemon_sets)]


@pytest.mark.parametrize(
    ("one", "name"),
    [
        (daemon_set("kube-system/kube-proxy"), "kube-proxy"),
        (daemon_set("kube-system/kube-proxy", host_network=None), "kube-proxy"),
        (daemon_set("kube-system/kube-proxy", ready=0), "kube-proxy"),
        (daemon_set("kube-system/kube-proxy", desired=0, ready=0), "kube-proxy"),
        (daemon_set("kube-system/kube-proxy", spec=None, status=None), "kube-proxy"),
        (daemon_set("kube-system/cilium"), "cilium"),
        (daemon_set("kube-system/anetd"), "cilium"),
        (daemon_set("kube-system/antrea-agent"), "antrea"),
        (daemon_set("kube-system/calico-node"), "calico"),
        (daemon_set("kube-system/kube-router"), "kube-router"),
        (daemon_set("cilium/cilium"), "cilium"),
        (daemon_set("cilium-system/cilium"), "cilium"),
        (daemon_set("cozy-cilium/cilium"), "cilium"),
        (daemon_set("cozy-cilium/cilium", ready=1), "cilium"),
        (daemon_set("calico-system/calico-node"), "calico"),
        (daemon_set("ovn-kubernetes/ovnkube-node"), "ovn-kubernetes"),
        (daemon_set("openshift-ovn-kubernetes/ovnkube-node"), "ovn-kubernetes"),
    ],
    ids=[
        "kubeadm", "without hostNetwork", "rollout", "for no node", "without a spec", "Cilium", "GKE", "Antrea",
        "Calico", "kube-router", "Cilium on OpenShift", "cilium-system", "Cozystack", "rollout elsewhere",
        "Tigera's operator", "OVN", "OpenShift",
    ],
)  # fmt: skip
def test_a_program_where_its_installer_puts_it_counts(one: Workload, name: str) -> None:
    assert found(one) == [(name, f"{one.metadata.namespace}/{one.metadata.name}")]


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(daemon_set("tenant-a/antrea-agent", host_network=None, desired=0, ready=0), id="the attack"),
        pytest.param(daemon_set("tenant-a/antrea-agent", desired=0, ready=0), id="with hostNetwork, for no node"),
        # A DaemonSet counts pods as its own that the tenant made without hostNetwork.
        pytest.param(daemon_set("tenant-a/antrea-agent"), id="with hostNetwork and adopted pods"),
        pytest.param(daemon_set("tenant-a/cilium"), id="Cilium"),
        pytest.param(daemon_set("tenant-a/anetd"), id="GKE's Cilium"),
        pytest.param(daemon_set("tenant-a/kube-proxy"), id="kube-proxy"),
        pytest.param(daemon_set("tenant-a/calico-node"), id="Calico"),
        pytest.param(daemon_set("tenant-a/ovnkube-node"), id="OVN"),
        pytest.param(daemon_set("tenant-a/kube-router"), id="kube-router"),
        pytest.param(daemon_set("default/kube-proxy"), id="default"),
        pytest.param(daemon_set("kube-system-2/kube-proxy"), id="a longer name"),
        pytest.param(daemon_set("KUBE-SYSTEM/kube-proxy"), id="capitals"),
        pytest.param(daemon_set("/kube-proxy"), id="no namespace"),
        pytest.param(daemon_set("cilium/antrea-agent"), id="Antrea in Cilium's namespace"),
        pytest.param(daemon_set("cilium/kube-proxy"), id="kube-proxy in Cilium's namespace"),
        pytest.param(daemon_set("calico-system/cilium"), id="Cilium in Calico's namespace"),
        pytest.param(daemon_set("cilium-test/cilium"), id="Cilium's tests"),
        pytest.param(daemon_set("cilium/cilium", host_network=None), id="hostNetwork absent"),
        pytest.param(daemon_set("cilium/cilium", host_network=False), id="hostNetwork false"),
        pytest.param(daemon_set("cilium/cilium", ready=0), id="none ready"),
        pytest.param(daemon_set("cilium/cilium", ready=None), id="readiness absent"),
        pytest.param(daemon_set("cilium/cilium", ready=-1), id="less than none ready"),
        pytest.param(daemon_set("cilium/cilium", status=None), id="no status"),
        pytest.param(daemon_set("cilium/cilium", spec=None), id="no spec"),
        pytest.param(daemon_set("kube-system/fluentd"), id="another program"),
        pytest.param(daemon_set("kube-system/kube-proxy-windows"), id="Windows"),
        pytest.param(daemon_set("kube-system/"), id="no name"),
    ],
)
def test_no_other_counts(one: Workload) -> None:
    assert found(one) == []


@pytest.mark.parametrize(
    ("several", "wanted"),
    [
        (["kube-system/kube-proxy", "tenant-a/antrea-agent"], [("kube-proxy", "kube-system/kube-proxy")]),
        (["kube-system/kube-proxy", "tenant-a/kube-proxy"], [("kube-proxy", "kube-system/kube-proxy")]),
        (["kube-system/cilium", "zz-tenant/cilium", "aa-tenant/cilium"], [("cilium", "kube-system/cilium")]),
        (["cilium/cilium", "kube-system/cilium"], [("cilium", "kube-system/cilium")]),
        (["cilium/cilium", "cilium-system/cilium"], [("cilium", "cilium/cilium")]),
        (["kube-system/anetd", "kube-system/cilium"], [("cilium", "kube-system/anetd")]),
        (
            ["kube-system/kube-proxy", "calico-system/calico-node"],
            [("calico", "calico-system/calico-node"), ("kube-proxy", "kube-system/kube-proxy")],
        ),
    ],
    ids=["the attack", "another kube-proxy", "two tenants", "two owners", "by text", "two names", "two programs"],
)
def test_there_is_one_of_each_program_in_whatever_order(several: list[str], wanted: list[tuple[str, str]]) -> None:
    for order in permutations(several):
        assert found(*map(daemon_set, order)) == wanted


def test_outside_kube_system_the_one_with_most_ready_pods_wins() -> None:
    few, many = daemon_set("cilium/cilium", ready=1), daemon_set("cilium-system/cilium", ready=2)
    assert found(few, many) == found(many, few) == [("cilium", "cilium-system/cilium")]


def test_kube_system_wins_during_its_rollout() -> None:
    assert found(daemon_set("cilium/cilium"), daemon_set("kube-system/cilium", ready=0)) == [
        ("cilium", "kube-system/cilium")
    ]

"""Reading workloads: the data plane by its DaemonSets, and the settings that a judgement needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dnsproxy.doctor.collect.read_workloads import cluster_cidr_of, mode_of
from tests.dnsproxy.doctor.collect.cluster_api import DAEMON_SETS, MAPS, Api, workload


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        (
            {DAEMON_SETS: [workload("cilium", image="quay.io/cilium/cilium:v1.18.0@sha256:0")],
             f"{MAPS}/cilium-config": {"metadata": {"name": "c"},
                                       "data": {"kube-proxy-replacement": "true", "x": "y"}}},
            [("cilium", "v1.18.0", {"kube-proxy-replacement": "true"})],
        ),
        (
            {DAEMON_SETS: [workload("antrea-agent", image="antrea/antrea-agent-ubuntu:v1.15.0")],
             f"{MAPS}/antrea-config": {"metadata": {"name": "c"},
                                       "data": {"antrea-agent.conf": "antreaProxy:\n  proxyLoadBalancerIPs: false\n"}}},
            [("antrea", "v1.15.0", {"proxyLoadBalancerIPs": "false"})],
        ),
        (
            {DAEMON_SETS: [workload("calico-node", image="docker.io/calico/node:v3.30.1")],
             "/apis/crd.projectcalico.org/v1/felixconfigurations/default":
                 {"metadata": {"name": "default"}, "spec": {"bpfEnabled": True}}},
            [("calico", "v3.30.1", {"bpfEnabled": "true", "service-proxy": "true"})],
        ),
        ({DAEMON_SETS: [workload("calico-node", image="calico/node:v3.30.1")]}, [("calico", "v3.30.1", {})]),
        ({DAEMON_SETS: [workload("kube-router", args=["--run-service-proxy=true"])]},
         [("kube-router", "1", {"service-proxy": "true"})]),
        ({DAEMON_SETS: [workload("kube-proxy", image="kube-proxy@sha256:0")]}, [("kube-proxy", "", {})]),
        ({DAEMON_SETS: [workload("fluentd"), {"metadata": {"name": "kube-proxy", "namespace": "kube-system"}}]},
         [("kube-proxy", "", {})]),
        ({DAEMON_SETS: [{"metadata": {"name": "kube-proxy"}}]}, []),
        ({DAEMON_SETS: [{"metadata": {}}, {"metadata": {"name": 5}}]}, []),
        ({}, []),
    ],
    ids=["cilium", "antrea", "calico ebpf", "calico", "kube-router", "digest", "without pods",
         "without a namespace", "unreadable", "none"],
)  # fmt: skip
async def test_the_data_plane_is_recognised_by_its_workloads(objects: Mapping[str, Any], expected: list[Any]) -> None:
    seen = await Api(objects).read()
    assert [(one.name, one.version, one.settings) for one in seen.components] == expected


async def test_a_program_outside_kube_system_has_the_settings_of_its_namespace() -> None:
    one = workload("cilium", namespace="cozy-cilium", image="quay.io/cilium/cilium:v1.17.5")
    one["spec"]["template"]["spec"]["hostNetwork"] = True
    one["status"] = {"desiredNumberScheduled": 3, "numberReady": 2}
    theirs = "/api/v1/namespaces/cozy-cilium/configmaps/cilium-config"
    data = {"kube-proxy-replacement": "true"}
    (found,) = (await Api({DAEMON_SETS: [one], theirs: {"metadata": {"name": "c"}, "data": data}}).read()).components
    assert (found.workload, found.version, found.settings) == ("DaemonSet cozy-cilium/cilium", "v1.17.5", data)


async def test_a_tenants_daemon_set_is_no_data_plane_and_its_settings_are_not_read() -> None:
    theirs = "/api/v1/namespaces/tenant-a/configmaps/antrea-config"
    data = {"antrea-agent.conf": "proxyLoadBalancerIPs: false\n"}
    tenants = [workload(name, namespace="tenant-a") for name in ("antrea-agent", "kube-proxy", "cilium")]
    api = Api({DAEMON_SETS: [workload("kube-proxy"), *tenants], theirs: {"metadata": {"name": "c"}, "data": data}})
    seen = await api.read()
    assert [one.workload for one in seen.components] == ["DaemonSet kube-system/kube-proxy"]
    assert [path for _, path in api.asked if "tenant-a" in path] == []


@pytest.mark.parametrize(
    ("configuration", "words", "mode"),
    [
        ('mode: ""\n', [], {}),
        ("mode: nftables\n", [], {"mode": "nftables"}),
        ("mode: 'ipvs'\n", [], {"mode": "ipvs"}),
        ("ipvs:\n  mode: x\n", [], {}),
        ("mode: ipvs\n", ["--proxy-mode=iptables"], {"mode": "iptables"}),
        ("", [], {}),
        ("\x00garbage", ["--proxy-mode="], {}),
    ],
)
def test_the_mode_of_kube_proxy_is_its_flag_or_its_file(
    configuration: str, words: list[str], mode: dict[str, str]
) -> None:
    assert mode_of(configuration, words) == mode


@pytest.mark.parametrize(
    ("configuration", "words", "networks"),
    [
        ("clusterCIDR: 10.244.0.0/16\n", [], "10.244.0.0/16"),
        ('clusterCIDR: "10.244.0.0/16,2001:db8::/56"\n', [], "10.244.0.0/16,2001:db8::/56"),
        ("clusterCIDR: 10.244.0.0/16\n", ["--cluster-cidr=10.42.0.0/16"], "10.42.0.0/16"),
        ('clusterCIDR: ""\nclusterName: x\n', [], ""),
        ("clusterCIDR:\nconntrack: 5\n", [], ""),
        ("ipvs:\n  clusterCIDR: 10.244.0.0/16\n", [], ""),
        ("", ["--cluster-cidr="], ""),
    ],
    ids=["file", "both families", "flag", "empty", "null", "nested", "empty flag"],
)
def test_the_networks_of_pods_are_a_flag_of_kube_proxy_or_in_its_file(
    configuration: str, words: list[str], networks: str
) -> None:
    assert cluster_cidr_of(configuration, words).get("clusterCIDR", "") == networks

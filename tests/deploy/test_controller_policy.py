"""The policy in front of the ingress controller: which pods reach the ports with headers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.nodes.policies import format_rules
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import DEPLOY, render
from tests.kit.apiserver import ApiServer
from tests.kit.programs import program

pytestmark = pytest.mark.peer("kubectl")

FOLDER = DEPLOY / "controller-policy"
CONTROLLER = {"app.kubernetes.io/name": "ingress-nginx", "app.kubernetes.io/component": "controller"}
SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ingress-nginx"}}


def policy(network: str = "10.244.0.0/16") -> dict[str, Any]:
    """The policy of an owner who has stated the pods' network."""
    (found,) = render(FOLDER)
    stated: dict[str, Any] = {**found}
    (block,) = (one["ipBlock"] for one in stated["spec"]["ingress"][0]["from"] if "ipBlock" in one)
    block["except"] = [network]
    return stated


def pod(namespace: str, address: str, labels: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": "x", "namespace": namespace, "labels": labels},
        "spec": {"containers": []},
        "status": {"podIP": address, "phase": "Running"},
    }


def test_of_all_pods_the_relay_operate_and_the_doctor_reach_the_ports_with_headers() -> None:
    names = ("ingress-nginx", "switchback", "switchback-doctor", "tenant")
    namespaces = [{"metadata": {"name": one, "labels": {"kubernetes.io/metadata.name": one}}} for one in names]
    pods = [
        pod("ingress-nginx", "10.244.0.1", CONTROLLER),
        pod("switchback", "10.244.0.2", {"app.kubernetes.io/name": "relay"}),
        pod("switchback", "10.244.0.3", {"app.kubernetes.io/name": "dnsproxy"}),
        pod("switchback-doctor", "10.244.0.4", {}),
        pod("tenant", "10.244.0.5", {"app.kubernetes.io/name": "relay"}),
        pod("switchback", "10.244.0.6", {"app.kubernetes.io/name": "operate"}),
        pod("tenant", "10.244.0.7", {"app.kubernetes.io/name": "operate"}),
    ]
    lines = [line.strip() for line in format_rules(pods, [policy()], namespaces).splitlines()]
    begin = lines.index("chain ingress-10-244-0-1 {") + 1
    outside = "ip saddr 0.0.0.0/0 ip saddr != { 10.244.0.0/16 }"
    assert lines[begin : lines.index("}", begin)] == [
        "ip saddr { 10.244.0.2, 10.244.0.4, 10.244.0.6 } tcp dport 80 return",
        "ip saddr { 10.244.0.2, 10.244.0.4, 10.244.0.6 } tcp dport 443 return",
        f"{outside} tcp dport 80 return",
        f"{outside} tcp dport 443 return",
        *(f"tcp dport {ports} return" for ports in ("1-79", "81-442", "444-65535")),
        "meta l4proto udp return",
        "counter drop",
    ]


@pytest.mark.peer("etcd", "kube-apiserver")
def test_the_api_server_takes_it_with_the_pods_network_and_not_without(bare: ApiServer) -> None:
    kubectl(bare, "apply", "-f", "-", given=[SPACE])
    kubectl(bare, "apply", "-f", "-", given=[policy()])
    with pytest.raises(AssertionError, match="POD_NETWORK"):
        kubectl(bare, "apply", "-f", "-", given=[policy("POD_NETWORK")])


def test_the_patch_of_the_readme_states_the_network(tmp_path: Path) -> None:
    text = (DEPLOY / "README.md").read_text()
    block = text.partition("# my-cluster/controller-policy/kustomization.yaml")[2].partition("```")[0]
    assert "../../deploy/controller-policy" in block
    folder = tmp_path / "my-cluster" / "controller-policy"
    folder.mkdir(parents=True)
    (tmp_path / "deploy").symlink_to(DEPLOY)
    (folder / "kustomization.yaml").write_text(block)
    done = subprocess.run([program("kubectl"), "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "POD_NETWORK" not in done.stdout
    assert "10.244.0.0/16" in done.stdout

"""node-hosts: the owner's zones are required, control planes are left out, and one file of the node is mounted."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.deploy.manifests import DEPLOY, Manifest, compose, find, render, settings_of
from tests.kit.programs import program

pytestmark = pytest.mark.peer("kubectl")

ON_ALL: Final = ("node-hosts", "node-hosts-control-planes")
ROLE: Final = "node-role.kubernetes.io/"
OS: Final = {"kubernetes.io/os": "linux"}


def daemon_set(folder: Path, *components: str, more: str = "") -> Manifest:
    chosen = [DEPLOY / "components" / one for one in ("publishing", *components)]
    return find(render(compose(folder, with_components=chosen, more=more)), "DaemonSet", "node-hosts")


def refusal(folder: Path, *components: str, more: str = "") -> str:
    """The message with which kubectl refuses an owner's kustomization of exactly these lines."""
    rows = [f"  - {DEPLOY / 'components' / one}" for one in components]
    text = "\n".join(["apiVersion: kustomize.config.k8s.io/v1beta1", "kind: Kustomization", "components:", *rows, more])
    (folder / "kustomization.yaml").write_text(relative(text, folder))
    done = subprocess.run([program("kubectl"), "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def relative(text: str, folder: Path) -> str:
    """Kustomize accepts no absolute paths."""
    return text.replace(str(DEPLOY), "../" * (len(folder.resolve().parts) - 1) + str(DEPLOY).lstrip("/"))


def generator(*literals: str) -> str:
    rows = "".join(f"      - {one}\n" for one in literals)
    head = "configMapGenerator:\n  - name: node-hosts-settings\n    namespace: switchback-nodes\n    literals:\n"
    return head + rows


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param("", ["nothing selected by ConfigMap", "node-hosts-settings.switchback-nodes"], id="no settings"),
        pytest.param(generator("DNSPROXY_INTERVAL=5"), ["`data.DNSPROXY_ZONE` is missing"], id="other settings"),
        pytest.param(generator("DNSPROXY_ZONES=a"), ["`data.DNSPROXY_ZONE` is missing"], id="a misspelt setting"),
    ],
)
def test_without_zones_nothing_is_rendered(more: str, words: Sequence[str], tmp_path: Path) -> None:
    said = refusal(tmp_path, "publishing", "node-hosts", more=more)
    assert [word for word in (*words, "DNSPROXY_ZONE", "node-hosts") if word not in said] == []


@pytest.mark.parametrize("component", ["node-hosts-control-planes", "node-hosts-user-namespace"])
def test_what_changes_node_hosts_needs_it(component: str, tmp_path: Path) -> None:
    assert f"components/{component}" in refusal(tmp_path, component)


def test_the_owners_settings_override_the_defaults(tmp_path: Path) -> None:
    more = generator("DNSPROXY_ZONE=registry.example.org charts.example.org", "DNSPROXY_REMOVE_ON_EXIT=false")
    folder = DEPLOY / "components"
    rows = "components:\n" + "".join(f"  - {folder / one}\n" for one in ("publishing", "node-hosts"))
    head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
    (tmp_path / "kustomization.yaml").write_text(relative(f"{head}{rows}{more}", tmp_path))
    manifests = render(tmp_path)
    one = find(manifests, "DaemonSet", "node-hosts")
    settings = settings_of(manifests, one["spec"]["template"])
    assert settings["DNSPROXY_ZONE"] == "registry.example.org charts.example.org"
    assert one["metadata"]["annotations"]["switchback.dev/zones"] == settings["DNSPROXY_ZONE"]
    assert settings["DNSPROXY_REMOVE_ON_EXIT"] == "false"
    assert settings["DNSPROXY_TO"] == "/host/hosts"


@pytest.mark.parametrize(
    ("labels", "taints", "on_workers", "on_all"),
    [
        pytest.param({}, (), True, True, id="a worker"),
        pytest.param({f"{ROLE}worker": ""}, (), True, True, id="a labelled worker"),
        pytest.param({f"{ROLE}control-plane": ""}, (f"{ROLE}control-plane",), False, True, id="kubeadm"),
        pytest.param({f"{ROLE}control-plane": ""}, (), False, True, id="kubeadm without the taint"),
        pytest.param({}, (f"{ROLE}control-plane",), False, True, id="kubeadm without the label"),
        pytest.param(
            {f"{ROLE}control-plane": "", f"{ROLE}master": ""}, (f"{ROLE}master",), False, True, id="OpenShift"
        ),
        pytest.param({f"{ROLE}etcd": "true"}, (), False, True, id="etcd alone, without the taint"),
        pytest.param({}, (f"{ROLE}master",), False, True, id="the old taint alone"),
        pytest.param({f"{ROLE}controlplane": "true"}, (f"{ROLE}controlplane",), False, True, id="RKE1"),
        pytest.param({f"{ROLE}controlplane": "true"}, (), False, True, id="RKE1 without the taint"),
        pytest.param({f"{ROLE}control-plane": "true", f"{ROLE}etcd": "true"}, (), False, True, id="k3s, RKE2"),
        pytest.param({f"{ROLE}etcd": "true"}, (f"{ROLE}etcd",), False, True, id="etcd alone"),
        pytest.param({f"{ROLE}control-plane": "true"}, ("CriticalAddonsOnly",), False, True, id="k3s with its taint"),
        pytest.param({"node.kubernetes.io/microk8s-controlplane": "x"}, (), False, True, id="MicroK8s"),
        pytest.param({}, ("example.org/dedicated",), False, False, id="an owner's own pool"),
    ],
)
def test_control_planes_are_left_out_unless_asked(
    labels: Mapping[str, str], taints: Sequence[str], on_workers: bool, on_all: bool, tmp_path: Path
) -> None:
    runs = []
    for components in (("node-hosts",), ON_ALL):
        folder = tmp_path / components[-1]
        folder.mkdir()
        runs.append(may_run(daemon_set(folder, *components), {**OS, **labels}, taints))
    assert runs == [on_workers, on_all]


def test_no_pod_runs_on_windows(tmp_path: Path) -> None:
    assert not may_run(daemon_set(tmp_path, *ON_ALL), {"kubernetes.io/os": "windows"}, ())


@pytest.mark.parametrize("components", [("node-hosts",), ON_ALL, ("node-hosts", "node-hosts-user-namespace")])
def test_one_file_of_the_node_is_mounted_and_nothing_else(components: Sequence[str], tmp_path: Path) -> None:
    spec = daemon_set(tmp_path, *components)["spec"]["template"]["spec"]
    assert [one["hostPath"] for one in spec["volumes"]] == [{"path": "/etc/hosts", "type": "File"}]
    (main,) = spec["containers"]
    assert main["volumeMounts"] == [{"name": "hosts", "mountPath": "/host/hosts"}]
    assert spec.get("hostUsers", True) is ("node-hosts-user-namespace" not in components)
    assert "initContainers" not in spec


def may_run(manifest: Manifest, labels: Mapping[str, str], taints: Sequence[str]) -> bool:
    """What the DaemonSet controller decides for a node with these labels, and taints without a value."""
    spec = manifest["spec"]["template"]["spec"]
    required: Mapping[str, Any] = spec.get("affinity", {}).get("nodeAffinity", {})
    terms = required.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [{}])
    absent = [{one["key"] for one in term.get("matchExpressions", ())} for term in terms]
    operators = {one["operator"] for term in terms for one in term.get("matchExpressions", ())}
    assert operators <= {"DoesNotExist"}
    tolerated = {one["key"] for one in spec.get("tolerations", ()) if one["operator"] == "Exists"}
    return (
        spec["nodeSelector"].items() <= labels.items()
        and any(keys.isdisjoint(labels) for keys in absent)
        and tolerated.issuperset(taints)
    )

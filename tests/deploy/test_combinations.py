"""Combinations of overlays and components: each works, or is refused in a sentence."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.deploy.laws import LAWS
from tests.deploy.manifests import BASE, DEPLOY, compose, find, pod_templates, render, settings_of
from tests.kit.programs import program

pytestmark = pytest.mark.peer("kubectl")

STAYS: Final = frozenset({("Deployment", "dnsproxy-install"), ("CronJob", "dnsproxy-uninstall")})
ONCE: Final = frozenset({("Job", "dnsproxy-install"), ("CronJob", "dnsproxy-uninstall")})
PRINTS: Final = frozenset({("CronJob", "dnsproxy-print")})


def combined(text: str, folder: Path) -> Path:
    """The folder of `OVERLAY + COMPONENT + ...`, written as by an owner; `base` is no overlay."""
    overlay, *more = text.split(" + ")
    base = BASE if overlay == "base" else DEPLOY / "overlays" / overlay
    return compose(folder, with_components=[DEPLOY / "components" / one for one in more], base=base)


@pytest.mark.parametrize(
    ("text", "installer"),
    [
        ("kubeadm", STAYS),
        ("kubeadm + installer-watch", STAYS),
        ("talos + installer-watch", STAYS),
        ("talos + installer-watch + installer-watch", STAYS),
        ("base + installer + installer-watch", STAYS),
        ("kubeadm + stub-domains", STAYS),
        ("gke + stub-domains", STAYS),
        ("kubeadm + stub-domains + installer-job", ONCE),
        ("talos + installer-job", ONCE),
        ("kubespray + installer-job", ONCE),
        ("kubeadm + installer-job + installer-job", ONCE),
        ("base + installer + installer-job", ONCE),
        ("kubeadm + installer-print", PRINTS),
        ("kubeadm + stub-domains + installer-print", PRINTS),
        ("eks + installer-print", PRINTS),
        ("eks + installer-job", PRINTS),
        ("kubeadm + installer-job + installer-print", PRINTS),
        ("kubeadm + installer-print + installer-job", PRINTS),
        ("kubespray + installer-print", PRINTS),
    ],
)
def test_an_installer_is_of_one_kind(text: str, installer: frozenset[tuple[str, str]], tmp_path: Path) -> None:
    manifests = render(combined(text, tmp_path))
    assert [fault for law in LAWS for fault in law(manifests)] == []
    workloads = {"Deployment", "Job", "CronJob"}
    found = {(one["kind"], one["metadata"]["name"]) for one in manifests if one["kind"] in workloads}
    assert {one for one in found if one[1].startswith("dnsproxy-")} == installer
    roles = {one["metadata"]["name"] for one in manifests if one["kind"] in {"Role", "RoleBinding"}}
    assert any("installer-watch" in name for name in roles) is (installer == STAYS)
    assert any("installer-writing" in name for name in roles) is (installer != PRINTS)


@pytest.mark.parametrize("overlay", ["kubeadm", "kubespray", "k3s", "gke"])
def test_an_installer_and_its_uninstaller_have_the_same_settings(overlay: str, tmp_path: Path) -> None:
    # deploy/README.md: another DNS Service is a setting of the installer. An uninstaller without it looks elsewhere.
    more = (
        "configMapGenerator:\n  - name: installer-settings\n    namespace: switchback\n    behavior: merge\n"
        "    literals: [DNSPROXY_DNS_SERVICE=kube-system/my-dns]\n"
    )
    base = DEPLOY / "overlays" / overlay
    for manifests in (render(base), render(compose(tmp_path, with_components=[], more=more, base=base))):
        install, uninstall = (
            next(pod for workload, pod in pod_templates(manifests) if workload["metadata"]["name"] == name)
            for name in ("dnsproxy-install", "dnsproxy-uninstall")
        )
        assert settings_of(manifests, install) == settings_of(manifests, uninstall)


@pytest.mark.parametrize("overlay", ["kubeadm", "k3s"])
def test_an_installer_ends_before_one_with_other_settings_begins(overlay: str) -> None:
    # Two that want different stanzas undo the writes of each other, for minutes.
    strategy = find(render(DEPLOY / "overlays" / overlay), "Deployment", "dnsproxy-install")["spec"]["strategy"]
    assert strategy == {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


@pytest.mark.parametrize("text", ["base + hpa + node-local", "kubeadm + hpa + node-local", "base + node-local"])
def test_a_daemon_set_is_not_scaled(text: str, tmp_path: Path) -> None:
    manifests = render(combined(text, tmp_path))
    assert "replicas" not in find(manifests, "DaemonSet", "dnsproxy")["spec"]
    scaled = {one["spec"]["scaleTargetRef"]["name"] for one in manifests if one["kind"] == "HorizontalPodAutoscaler"}
    assert scaled == ({"relay"} if "hpa" in text else set())


@pytest.mark.parametrize("text", ["gke", "gke + hpa", "kubeadm + stub-domains + hpa"])
def test_stub_domains_have_three_replicas_also_if_they_are_scaled(text: str, tmp_path: Path) -> None:
    manifests = render(combined(text, tmp_path))
    stated = find(manifests, "Deployment", "dnsproxy")["spec"].get("replicas")
    scaled = [find(manifests, "HorizontalPodAutoscaler", "dnsproxy")] if "hpa" in text else []
    assert [stated, *(one["spec"]["minReplicas"] for one in scaled)] == ([None, 3] if scaled else [3])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("eks + installer-watch", ["installer-watch does not fit here", "there is nothing to restore"]),
        ("rke2 + installer-watch", ["installer-watch does not fit here", "Remove installer-watch"]),
        ("kubeadm + installer-print + installer-watch", ["installer-watch does not fit here"]),
        ("kubeadm + hpa + stub-domains", ["each apply would undo the autoscaler. List stub-domains before hpa"]),
        ("base + node-local + hpa", ["A DaemonSet is not scaled. List hpa before node-local"]),
        ("base + installer-job", ["components/installer-job", "no matches for Id ServiceAccount", "installer"]),
        ("base + installer-print", ["components/installer-print", "no matches for Id ServiceAccount", "installer"]),
        ("base + installer-watch", ["components/installer-watch", "no matches for Id ServiceAccount", "installer"]),
        ("base + stub-domains", ["components/stub-domains", "no matches for Id ServiceAccount", "installer"]),
        ("base + doctor-strict", ["components/doctor-strict", "no matches for Id ServiceAccount", "doctor"]),
        ("base + wholeip-strict", ["components/wholeip-strict", "no matches for Id ServiceAccount", "wholeip"]),
        ("base + wholeip-metrics", ["components/wholeip-metrics", "no matches for Id ServiceAccount", "wholeip"]),
    ],
)
def test_a_combination_without_sense_is_refused_in_words(text: str, words: Sequence[str], tmp_path: Path) -> None:
    command = [program("kubectl"), "kustomize", str(combined(text, tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert [word for word in words if word not in done.stderr] == []

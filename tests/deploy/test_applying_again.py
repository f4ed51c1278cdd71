"""A kustomization with changed settings is applied over the old one, by kubectl and on the server side."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.deploy.kubectl import KINDS, LABEL, kubectl
from tests.deploy.manifests import DEPLOY, compose, containers, find, name_of, pod_templates, render
from tests.deploy.putting import path_of
from tests.kit.apiserver import ApiServer

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

CHANGED = """\
images:
  - name: localhost/switchback
    newTag: 0.2.0
configMapGenerator:
  - {name: installer-settings, namespace: switchback, behavior: merge, literals: [DNSPROXY_TIMEOUT=301]}
  - {name: dnsproxy-settings, namespace: switchback, behavior: merge, literals: [DNSPROXY_TTL=7]}
"""
"""A changed image and changed settings: of the installer too, whose Job would be immutable."""


@pytest.mark.parametrize("arguments", [(), ("--server-side",)], ids=["kubectl", "server-side"])
@pytest.mark.parametrize("overlay", ["kubeadm", "k3s", "gke", "kubespray", "eks", "rke2"])
def test_an_overlay_with_changed_settings_is_applied_over_the_old_one(
    overlay: str, arguments: Sequence[str], bare: ApiServer, tmp_path: Path
) -> None:
    # Argo CD and Flux apply on the server side too.
    folder = DEPLOY / "overlays" / overlay
    kubectl(bare, "apply", "-k", str(folder), *arguments)
    changed = compose(tmp_path, with_components=[], more=CHANGED, base=folder)
    kubectl(bare, "apply", "-k", str(changed), *arguments)
    for workload, template in pod_templates(render(changed)):
        path = path_of(workload)
        assert bare.request("GET", path)["spec"] is not None
        assert {one["image"] for one in containers(template)} == {"localhost/switchback:0.2.0"}
    kubectl(bare, "delete", KINDS, "-A", "-l", LABEL, "--wait=false")


@pytest.mark.parametrize("component", ["installer-job", "installer-print"])
def test_an_installer_of_another_kind_leaves_nothing_of_the_one_before(
    component: str, bare: ApiServer, tmp_path: Path
) -> None:
    once, changed = DEPLOY / "overlays" / "kubeadm", tmp_path
    compose(changed, with_components=[DEPLOY / "components" / component], base=once)
    kubectl(bare, "apply", "-k", str(once))
    kubectl(bare, "apply", "-k", str(changed))
    page = (DEPLOY / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n((?:kubectl -n \S+ delete [^\n]+\n){3})```", page)
    assert len(blocks) == 2
    for line in "".join(blocks if component == "installer-print" else blocks[:1]).splitlines():
        kubectl(bare, *line.split()[1:])
    found = json.loads(kubectl(bare, "get", KINDS, "-A", "-l", LABEL, "-o", "json"))["items"]
    assert {name_of(one) for one in found} == {name_of(one) for one in render(changed) if one["kind"] != "Namespace"}
    kubectl(bare, "delete", KINDS, "-A", "-l", LABEL, "--wait=false")


def test_a_changed_job_is_applied_after_its_deletion(bare: ApiServer, tmp_path: Path) -> None:
    once, changed = tmp_path / "once", tmp_path / "changed"
    for folder, more in ((once, ""), (changed, CHANGED)):
        folder.mkdir()
        component = DEPLOY / "components" / "installer-job"
        compose(folder, with_components=[component], more=more, base=DEPLOY / "overlays" / "kubeadm")
    kubectl(bare, "apply", "-k", str(once))
    with pytest.raises(AssertionError, match="field is immutable"):
        kubectl(bare, "apply", "-k", str(changed))
    # As deploy/README.md has it.
    kubectl(bare, "-n", "switchback", "delete", "job", "dnsproxy-install", "--ignore-not-found")
    kubectl(bare, "apply", "-k", str(changed))
    job = find(render(changed), "Job", "dnsproxy-install")
    # Flux and Argo CD delete it themselves; and a failed Job stays, with its log.
    assert job["metadata"]["annotations"] == {
        "kustomize.toolkit.fluxcd.io/force": "enabled",
        "argocd.argoproj.io/sync-options": "Force=true,Replace=true",
    }
    assert "ttlSecondsAfterFinished" not in bare.request("GET", path_of(job))["spec"]

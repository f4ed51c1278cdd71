"""Combinations of the installation, overlays and components: each works, or is refused in a sentence."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.deploy.laws import LAWS
from tests.deploy.manifests import (
    BASE,
    DEPLOY,
    INSTALLATION,
    compose,
    find,
    overlays,
    pod_templates,
    render,
    settings_of,
)
from tests.kit.programs import program

pytestmark = pytest.mark.peer("kubectl")

WRITES: Final = frozenset({("Deployment", "operate"), ("CronJob", "dnsproxy-uninstall")})
PRINTS: Final = frozenset({("Deployment", "operate"), ("CronJob", "dnsproxy-print")})
NO_STANZA: Final[frozenset[tuple[str, str]]] = frozenset()


def combined(text: str, folder: Path) -> Path:
    """The folder of `KUSTOMIZATION + COMPONENT + ...`, written as by an owner: `deploy`, `base`, or an overlay."""
    first, *more = text.split(" + ")
    base = {"deploy": INSTALLATION, "base": BASE}.get(first, DEPLOY / "overlays" / first)
    return compose(folder, with_components=[DEPLOY / "components" / one for one in more], base=base)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("deploy", WRITES),
        ("deploy + stub-domains", WRITES),
        ("base + operate", WRITES),
        ("base + operate + gateway-api", WRITES),
        ("base", NO_STANZA),
        ("base + gateway-api", NO_STANZA),
        ("deploy + print", PRINTS),
        ("deploy + print + print", PRINTS),
        ("deploy + stub-domains + print", PRINTS),
        ("base + operate + print", PRINTS),
        *((overlay.name, PRINTS) for overlay in overlays()),
        ("eks + print", PRINTS),
    ],
)
def test_the_stanza_is_written_or_printed(text: str, kind: frozenset[tuple[str, str]], tmp_path: Path) -> None:
    manifests = render(combined(text, tmp_path))
    assert [fault for law in LAWS for fault in law(manifests)] == []
    kinds = {"Deployment", "CronJob"}
    workloads = {(one["kind"], one["metadata"]["name"]) for one in manifests if one["kind"] in kinds}
    assert workloads - {("Deployment", "dnsproxy"), ("Deployment", "relay")} == kind
    roles = {one["metadata"]["name"] for one in manifests if one["kind"] in {"Role", "RoleBinding"}}
    assert ("switchback-operate-writing" in roles) is (kind == WRITES)
    if kind:
        words = find(manifests, "Deployment", "operate")["spec"]["template"]["spec"]["containers"][0]["args"]
        assert (words[-2:] == ["--method", "print"]) is (kind == PRINTS)


def test_every_overlay_is_the_installation_that_prints(tmp_path: Path) -> None:
    printing = render(combined("deploy + print", tmp_path))
    assert [overlay.name for overlay in overlays() if render(overlay) != printing] == []


@pytest.mark.parametrize("overlay", overlays(), ids=lambda one: one.name)
def test_an_overlay_says_in_three_lines_why_it_is_there(overlay: Path) -> None:
    lines = (overlay / "kustomization.yaml").read_text(encoding="utf-8").splitlines()
    comment = [line for line in lines if line.startswith("#")]
    assert lines[:3] == comment
    assert "owner is handed text" in comment[0]


def test_operate_and_its_uninstaller_have_the_same_settings(tmp_path: Path) -> None:
    # deploy/README.md: another DNS Service is a setting of operate. An uninstaller without it looks elsewhere.
    more = (
        "configMapGenerator:\n  - name: operate-settings\n    namespace: switchback\n    behavior: merge\n"
        "    literals: [DNSPROXY_DNS_SERVICE=kube-system/my-dns]\n"
    )
    for manifests in (render(INSTALLATION), render(compose(tmp_path, with_components=[], more=more))):
        operate, uninstall = (
            next(pod for workload, pod in pod_templates(manifests) if workload["metadata"]["name"] == name)
            for name in ("operate", "dnsproxy-uninstall")
        )
        assert settings_of(manifests, operate) == settings_of(manifests, uninstall)


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_an_operate_ends_before_one_with_other_settings_begins(replicas: int) -> None:
    # Two that want different stanzas undo the writes of each other, for minutes.
    strategy = find(render(INSTALLATION), "Deployment", "operate")["spec"]["strategy"]["rollingUpdate"]
    # https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#max-unavailable
    unavailable = replicas * int(strategy["maxUnavailable"].removesuffix("%")) // 100
    assert (strategy["maxSurge"], unavailable) == (0, replicas)


@pytest.mark.parametrize("text", ["deploy + hpa + node-local", "eks + hpa + node-local", "base + node-local"])
def test_a_daemon_set_is_not_scaled(text: str, tmp_path: Path) -> None:
    manifests = render(combined(text, tmp_path))
    assert "replicas" not in find(manifests, "DaemonSet", "dnsproxy")["spec"]
    scaled = {one["spec"]["scaleTargetRef"]["name"] for one in manifests if one["kind"] == "HorizontalPodAutoscaler"}
    assert scaled == ({"relay"} if "hpa" in text else set())


@pytest.mark.parametrize("text", ["deploy + stub-domains", "deploy + stub-domains + hpa", "rke2 + stub-domains"])
def test_stub_domains_have_three_replicas_also_if_they_are_scaled(text: str, tmp_path: Path) -> None:
    manifests = render(combined(text, tmp_path))
    stated = find(manifests, "Deployment", "dnsproxy")["spec"].get("replicas")
    scaled = [find(manifests, "HorizontalPodAutoscaler", "dnsproxy")] if "hpa" in text else []
    assert [stated, *(one["spec"]["minReplicas"] for one in scaled)] == ([None, 3] if scaled else [3])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("deploy + hpa + stub-domains", ["each apply would undo the autoscaler. List stub-domains before hpa"]),
        ("deploy + node-local + hpa", ["A DaemonSet is not scaled. List hpa before node-local"]),
        ("base + print", ["components/print", "no matches for Id ServiceAccount", "operate"]),
        ("deploy + operate", ["components/operate", "already registered id", "operate"]),
        ("deploy + gateway-api", ["components/gateway-api", "already registered id"]),
        ("deploy + doctor-strict", ["components/doctor-strict", "no matches for Id ServiceAccount", "doctor"]),
        ("deploy + wholeip-strict", ["components/wholeip-strict", "no matches for Id ServiceAccount", "wholeip"]),
        ("deploy + wholeip-metrics", ["components/wholeip-metrics", "no matches for Id ServiceAccount", "wholeip"]),
    ],
)
def test_a_combination_without_sense_is_refused_in_words(text: str, words: Sequence[str], tmp_path: Path) -> None:
    command = [program("kubectl"), "kustomize", str(combined(text, tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert [word for word in words if word not in done.stderr] == []

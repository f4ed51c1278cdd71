"""The kustomizations in deploy/README.md render, from the paths that it states."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import (
    DEPLOY,
    Manifest,
    compose,
    containers,
    find,
    name_of,
    pod_templates,
    render,
    settings_of,
)
from tests.kit.apiserver import ApiServer

pytestmark = pytest.mark.peer("kubectl")

_SHOWN: Final = re.compile(r"```yaml\n# (?P<place>\S+)/kustomization\.yaml\n(?P<text>.*?)```", re.DOTALL)
SHOWN: Final = {
    shown["place"]: shown["text"] for shown in _SHOWN.finditer((DEPLOY / "README.md").read_text(encoding="utf-8"))
}


def written(place: str, folder: Path) -> Path:
    """Write a kustomization of the page, with the real path of deploy/. Returns its folder."""
    there = folder / place
    there.mkdir(parents=True)
    deploy = os.path.relpath(DEPLOY, there.resolve())
    (there / "kustomization.yaml").write_text(re.sub(r"(\.\./)+deploy(?=/)", deploy, SHOWN[place]), encoding="utf-8")
    return there


def test_the_page_shows_these_kustomizations() -> None:
    folders = {"wholeip", "other-ports", "node-hosts", "controller-policy", "ip-mode"}
    folders |= {"ip-mode-watch", "ip-mode-watch-two"}
    assert set(SHOWN) == {"my-cluster", *(f"my-cluster/{one}" for one in folders)}


@pytest.mark.parametrize("place", [place for place in SHOWN if "images:" in SHOWN[place]])
def test_every_image_is_the_owners(place: str, tmp_path: Path) -> None:
    templates = [template for _, template in pod_templates(render(written(place, tmp_path)))]
    images = {one["image"].partition(":")[0] for template in templates for one in containers(template)}
    assert len(images) == 1
    assert images.pop().startswith("registry.example.org/")


def test_the_agents_learn_the_clusters_networks(tmp_path: Path) -> None:
    manifests = render(written("my-cluster/wholeip", tmp_path))
    template = find(manifests, "DaemonSet", "wholeip")["spec"]["template"]
    values = settings_of(manifests, template)
    assert values["WHOLEIP_CLUSTER_NETWORK"] == "10.244.0.0/16 10.96.0.0/16"
    assert values["WHOLEIP_PROXY_NAME"] == "cozy-proxy"


def test_the_policies_are_widened_and_nothing_else_changes(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    monitoring = [DEPLOY / "components" / "monitoring"]
    plain = render(compose(folder, with_components=monitoring, base=DEPLOY / "overlays" / "kubeadm"))
    widened = render(written("my-cluster/other-ports", tmp_path))
    changed = {name_of(one) for one in widened} - {name_of(one) for one in widened if one in plain}
    assert changed == {f"NetworkPolicy switchback/{name}" for name in ("dnsproxy", "installer", "metrics")}
    for name in ("dnsproxy", "installer", "metrics"):
        before, after = (find(one, "NetworkPolicy", name)["spec"] for one in (plain, widened))
        assert after["podSelector"] == before["podSelector"]
        assert [rule for rule in before.get("egress", ()) if rule not in after["egress"]] == []
    assert ports_of(widened, "dnsproxy") >= {(7443, "TCP"), (5300, "UDP"), (5300, "TCP"), (6443, "TCP"), (53, "UDP")}
    assert (5300, "UDP") not in ports_of(widened, "installer")
    sources = find(widened, "NetworkPolicy", "metrics")["spec"]["ingress"][0]["from"]
    assert sources == [{"namespaceSelector": {}}, {"ipBlock": {"cidr": "192.0.2.0/24"}}]


def test_nodes_take_the_named_host_alone_and_pools_can_be_added(tmp_path: Path) -> None:
    manifests = render(written("my-cluster/node-hosts", tmp_path))
    template = find(manifests, "DaemonSet", "node-hosts")["spec"]["template"]
    assert settings_of(manifests, template)["DNSPROXY_ZONE"] == "registry.example.org"
    assert template["spec"]["tolerations"] == [{"key": "example.org/pool", "operator": "Exists"}]


@pytest.mark.peer("etcd", "kube-apiserver", "gateway-api", "prometheus-operator", "dnsendpoint")
def test_the_api_server_takes_the_widened_policies(bare: ApiServer, tmp_path: Path) -> None:
    kubectl(bare, "apply", "-k", str(written("my-cluster/other-ports", tmp_path)))


def ports_of(manifests: Sequence[Manifest], name: str) -> set[tuple[int, str]]:
    """The ports to which a policy lets its pods send."""
    rules = find(manifests, "NetworkPolicy", name)["spec"]["egress"]
    return {(port["port"], port["protocol"]) for rule in rules for port in rule["ports"]}

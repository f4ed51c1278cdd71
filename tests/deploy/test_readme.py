"""The kustomizations in deploy/README.md render, from the paths that it states."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import pytest

from tests.deploy.manifests import DEPLOY, containers, find, pod_templates, render, settings_of

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
    assert set(SHOWN) == {"my-cluster", "my-cluster/wholeip"}


@pytest.mark.parametrize("place", SHOWN)
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

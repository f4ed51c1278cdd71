"""The guide's page on sources holds: its kustomizations render, and the chart's values give the same objects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.helm import ONE_IMAGE, by_name, template
from tests.deploy.manifests import DEPLOY, Manifest, compose, find, render, roles_of, settings_of
from tests.deploy.shown_files import PAGES, write_shown

pytestmark = pytest.mark.peer("kubectl", "helm")

PAGE = PAGES / "sources.md"
VALUES = re.findall(r"```yaml\n# values.yaml of the chart\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
"""The chart's values on the page, in its order."""
TWO = ("shop", "edge")


def shown(place: str, folder: Path) -> list[Manifest]:
    return render(write_shown(PAGE, folder) / place)


def dnsproxy_settings(manifests: Sequence[Manifest]) -> dict[str, str]:
    return settings_of(manifests, find(manifests, "Deployment", "dnsproxy")["spec"]["template"])


@pytest.mark.parametrize(
    ("place", "number"), [pytest.param(".", 0, id="more components"), pytest.param("two-namespaces", 1, id="Roles")]
)
def test_a_kustomization_of_the_page_is_what_the_values_beside_it_give(place: str, number: int, tmp_path: Path) -> None:
    values: Mapping[str, Any] = yaml.safe_load(VALUES[number])
    assert by_name(shown(place, tmp_path)) == by_name(template({**ONE_IMAGE, **values}))


def test_another_kind_has_its_right_and_its_setting(tmp_path: Path) -> None:
    manifests = shown("with-sites", tmp_path)
    assert dnsproxy_settings(manifests)["DNSPROXY_SOURCE_SITES"] == "crd:sites.example.org:spec.hosts[*]"
    rules = [rule for role in roles_of(manifests, "dnsproxy") for rule in role["rules"]]
    assert {"apiGroups": ["example.org"], "resources": ["sites"], "verbs": ["list", "watch"]} in rules


def test_with_namespaces_dnsproxy_has_roles_alone(tmp_path: Path) -> None:
    sources = sorted((DEPLOY / "components").glob("source-*"))
    values = {"namespaces": list(TWO), "components": {one.name: True for one in sources}}
    roles = roles_of(template({**ONE_IMAGE, **values}), "dnsproxy")
    assert {role["kind"] for role in roles} == {"Role"}
    everywhere = roles_of(render(compose(tmp_path, with_components=sources)), "dnsproxy")
    wanted = {one for role in everywhere if role["kind"] == "ClusterRole" for one in granted(role)}
    of_no_namespace = {("networking.k8s.io", "ingressclasses"), ("", "namespaces"), ("", "configmaps")}
    for namespace in TWO:
        (role,) = [one for one in roles if one["metadata"]["namespace"] == namespace]
        assert granted(role) == wanted - of_no_namespace


def granted(role: Manifest) -> set[tuple[str, str]]:
    """The groups and plurals that a role lets list and watch; it has no other verb."""
    assert {tuple(rule["verbs"]) for rule in role["rules"]} == {("list", "watch")}
    return {(group, one) for rule in role["rules"] for group in rule["apiGroups"] for one in rule["resources"]}

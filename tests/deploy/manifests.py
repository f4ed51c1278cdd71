"""Manifests as kubectl renders them, and functions to read them.

The law: tests judge the output of `kubectl kustomize`, never its input files.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tests.kit.programs import program

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
INSTALLATION: Final = DEPLOY
"""The folder that an owner applies, or names under `resources`."""
BASE: Final = DEPLOY / "base"

INCLUDED: Final = frozenset({"operate", "gateway-api"})
"""Components that the installation has."""
ALONE: Final = frozenset({"node-local", "print"})
"""Components that replace others, so that not all of them can be combined."""
_FIRST: Final = ("operate", "gateway-api", "stub-domains")
"""Components that others are listed after."""
_NEEDED: Final = {
    "doctor-strict": ["doctor"],
    "node-hosts-control-planes": ["node-hosts"],
    "node-hosts-user-namespace": ["node-hosts"],
    "print": ["operate"],
    "wholeip-metrics": ["wholeip"],
    "wholeip-strict": ["wholeip"],
}
"""The components that a component requires; the installation has some of them."""
_FILLED_IN: Final = re.compile(r"\$\((\w+)\)")
"""A reference to another variable inside a value."""
_ADDRESS: Final = "192.0.2.10"
"""What the kubelet fills in if no ConfigMap has the variable: in our manifests only addresses."""

NODE_HOSTS_SETTINGS: Final = {
    "name": "node-hosts-settings",
    "namespace": "switchback-nodes",
    "literals": ["DNSPROXY_ZONE=example.org"],
}
"""The names that nodes take; an owner's kustomization with node-hosts has this generator."""

with (DEPLOY.parent / "pyproject.toml").open("rb") as _file:
    PROJECT_VERSION: Final[str] = tomllib.load(_file)["project"]["version"]

Manifest = Mapping[str, Any]


def components() -> list[Path]:
    """The folders of all components, in an order in which they go together."""
    found = [path.parent for path in DEPLOY.glob("components/*/kustomization.yaml")]
    return sorted(found, key=lambda one: (_FIRST.index(one.name) if one.name in _FIRST else len(_FIRST), one.name))


def added() -> list[Path]:
    """The folders of the components that an owner may add to the installation."""
    return [one for one in components() if one.name not in INCLUDED]


def with_needed(component: Path) -> list[Path]:
    """A component after those that it requires and that the installation does not have."""
    needed = [name for name in _NEEDED.get(component.name, ()) if name not in INCLUDED]
    return [*(component.parent / name for name in needed), component]


def overlays() -> list[Path]:
    """The folders of all overlays."""
    return sorted(path.parent for path in DEPLOY.glob("overlays/*/kustomization.yaml"))


def render(folder: Path) -> list[Manifest]:
    """The objects of a kustomization. Fails with the message of kubectl."""
    done = subprocess.run([program("kubectl"), "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stderr.lower(), done.stderr
    return parse_manifests(done.stdout)


def parse_manifests(text: str) -> list[Manifest]:
    """The objects of a text, by libyaml: Python's own reader takes as long as the program that rendered them."""
    return [one for one in yaml.load_all(text, Loader=yaml.CSafeLoader) if one]


@functools.cache
def kustomizations() -> Mapping[str, Sequence[Manifest]]:
    """Every rendered kustomization by name: the installation, its base, overlays, and it with one component."""
    folders = {path: path for path in (INSTALLATION, BASE, *overlays())}
    with tempfile.TemporaryDirectory(prefix="switchback-") as composed:
        for component in components():
            folder = Path(composed) / component.name
            folder.mkdir()
            base = BASE if component.name in INCLUDED else INSTALLATION
            folders[component] = compose(folder, with_components=with_needed(component), base=base)
        return {_name(path): render(folder) for path, folder in folders.items()}


def names() -> list[str]:
    """The names of all kustomizations."""
    return [_name(path) for path in (INSTALLATION, BASE, *overlays(), *components())]


def _name(path: Path) -> str:
    """`deploy`, or the folder in it: `overlays/eks`."""
    return DEPLOY.name if path == INSTALLATION else str(path.relative_to(DEPLOY))


def compose(folder: Path, *, with_components: Sequence[Path], more: str = "", base: Path = INSTALLATION) -> Path:
    """Write an owner's kustomization into `folder`: the installation with these components. Returns the folder."""
    rows = ["apiVersion: kustomize.config.k8s.io/v1beta1", "kind: Kustomization"]
    rows += ["resources:", f"  - {os.path.relpath(base, folder.resolve())}"]
    if with_components:
        rows += ["components:", *(f"  - {os.path.relpath(one, folder.resolve())}" for one in with_components)]
    if any(one.name == "node-hosts" for one in with_components):
        more = _with_zone(more)
    (folder / "kustomization.yaml").write_text("\n".join(rows) + f"\n{more}", encoding="utf-8")
    return folder


def _with_zone(more: str) -> str:
    """The setting that node-hosts requires of its owner, beside the owner's other lines."""
    owner = yaml.safe_load(more) or {}
    owner["configMapGenerator"] = [*owner.get("configMapGenerator", ()), NODE_HOSTS_SETTINGS]
    return yaml.safe_dump(owner)


def name_of(manifest: Manifest) -> str:
    """`Kind namespace/name`, for people."""
    metadata = manifest["metadata"]
    return f"{manifest['kind']} {metadata.get('namespace', '-')}/{metadata['name']}"


def find(manifests: Iterable[Manifest], kind: str, name: str) -> Manifest:
    """The only object of that kind and name."""
    (found,) = [one for one in manifests if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


def roles_of(manifests: Sequence[Manifest], account: str) -> list[Manifest]:
    """The Roles and ClusterRoles of an account."""
    bound = {
        (one["roleRef"]["kind"], one["metadata"].get("namespace"), one["roleRef"]["name"])
        for one in manifests
        if account in {subject["name"] for subject in one.get("subjects") or ()}
    }
    kinds = ("Role", "ClusterRole")
    roles = (one for one in manifests if one["kind"] in kinds)
    return [one for one in roles if (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) in bound]


def pod_template(manifest: Manifest) -> Manifest | None:
    """The pod of a workload (`metadata`, `spec`), or None for other objects."""
    if manifest["kind"] == "Pod":
        return manifest
    if manifest["kind"] == "CronJob":
        manifest = manifest["spec"]["jobTemplate"]
    template: Manifest | None = (manifest.get("spec") or {}).get("template")
    return template if isinstance(template, Mapping) and "spec" in template else None


def pod_templates(manifests: Iterable[Manifest]) -> Iterator[tuple[Manifest, Manifest]]:
    """Each workload with its pod."""
    for one in manifests:
        template = pod_template(one)
        if template is not None:
            yield one, template


def containers(template: Manifest) -> list[Manifest]:
    """Every container of a pod, init containers included."""
    spec = template["spec"]
    return [*spec.get("initContainers", ()), *spec["containers"]]


def _fill_in(text: str, known: Mapping[str, str]) -> str:
    return _FILLED_IN.sub(lambda found: known.get(found[1], _ADDRESS), text)


def arguments_of(manifests: Sequence[Manifest], template: Manifest) -> list[str]:
    """The arguments of a pod's first container, with its variables filled in as the kubelet does it."""
    known = settings_of(manifests, template)
    return [_fill_in(one, known) for one in template["spec"]["containers"][0].get("args", ())]


def own_variables(template: Manifest) -> set[str]:
    """The variables that only the arguments of a pod's first container refer to: the program does not know them."""
    return {name for one in template["spec"]["containers"][0].get("args", ()) for name in _FILLED_IN.findall(one)}


def settings_of(manifests: Sequence[Manifest], template: Manifest) -> dict[str, str]:
    """The environment of a pod's first container: the values of its ConfigMaps, overridden by its own."""
    first = template["spec"]["containers"][0]
    values: dict[str, str] = {}
    for source in first.get("envFrom", ()):
        values |= find(manifests, "ConfigMap", source["configMapRef"]["name"])["data"]
    # In their order, as the kubelet does it: a later variable may replace one that an earlier one refers to.
    for one in first.get("env", ()):
        if "value" in one:
            values[one["name"]] = _fill_in(one["value"], dict(values))
    return values

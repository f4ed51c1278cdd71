"""The chart as Helm renders it, and the comparison with what kubectl renders.

The law: an object of the chart is that of the kustomization, field by field. Two things differ on purpose, and only
they are set aside: the name of a ConfigMap with settings, which kubectl ends with a hash of the contents, and the
annotation with a sum of the settings, by which the chart's pods restart instead.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.deploy.manifests import DEPLOY, Manifest, name_of, parse_manifests, pod_template
from tests.kit.programs import program

CHART: Final = DEPLOY / "chart"
RESTARTS: Final = "switchback.dev/settings"
"""The annotation of a pod with a sum of its settings."""
_HASHED: Final = re.compile(r"(.+)-[a-z0-9]{10}")

ONE_IMAGE: Final = {"nftablesImage": {"repository": "localhost/switchback"}}
"""The image of wholeip as the kustomization has it before an owner names another one."""


class Refused(Exception):
    """Helm does not render these values; its message."""


def template(values: Mapping[str, Any], *arguments: str, chart: Path = CHART) -> list[Manifest]:
    """The objects of the chart with these values, for a release in the namespace `default`."""
    done = run_helm("template", "switchback", str(chart), "--namespace=default", *arguments, values=values)
    if done.returncode:
        raise Refused(done.stderr)
    return parse_manifests(done.stdout)


def run_helm(
    *words: str, values: Mapping[str, Any] | None = None, inside: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run Helm, with values if there are any; `inside`: the beginning of a command line for another network."""
    command = [*inside, program("helm"), *words, *(["--values=-"] if values is not None else [])]
    given = None if values is None else json.dumps(values)
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)


def by_name(manifests: Sequence[Manifest]) -> dict[str, Manifest]:
    """Each object under its kind, namespace and name, without what differs on purpose."""
    compared = [_without_sum(one) for one in _unhashed(manifests)]
    assert len({name_of(one) for one in compared}) == len(compared), "two objects have one name"
    return {name_of(one): one for one in compared}


def _unhashed(manifests: Sequence[Manifest]) -> list[Manifest]:
    """The objects with the names of ConfigMaps without their hashes, also where other objects name them."""
    maps = (one["metadata"]["name"] for one in manifests if one["kind"] == "ConfigMap")
    plain = {name: found[1] for name in maps if (found := _HASHED.fullmatch(name))}
    if not plain:
        return list(manifests)
    names = re.compile("|".join(map(re.escape, plain)))
    text = names.sub(lambda found: plain[found[0]], json.dumps(manifests))
    unhashed: list[Manifest] = json.loads(text)
    return unhashed


def _without_sum(manifest: Manifest) -> Manifest:
    copy = json.loads(json.dumps(manifest))
    template = pod_template(copy)
    if template is not None:
        annotations = dict(template.get("metadata", {}).get("annotations") or {})
        if annotations.pop(RESTARTS, None) is not None:
            template["metadata"]["annotations"] = annotations
            if not annotations:
                del template["metadata"]["annotations"]
    return dict(copy)

"""kubeconform on the chart, with the schemas of the real API server: no field is unknown, and none has a wrong type."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.deploy.helm import template
from tests.deploy.manifests import Manifest, components, find
from tests.kit.apiserver import ApiServer
from tests.kit.programs import program

pytestmark = pytest.mark.peer(
    "etcd", "kube-apiserver", "kubectl", "helm", "kubeconform", "gateway-api", "prometheus-operator", "dnsendpoint"
)

EVERYTHING: Final = {
    "components": dict.fromkeys((one.name for one in components()), True),
    "settings": {"node-hosts": {"DNSPROXY_ZONE": "registry.example.org"}},
    "controllerPolicy": {"podNetworks": ["10.244.0.0/16", "2001:db8::/56"]},
    "networkPolicies": {"apiServerPorts": [7443], "upstreams": [{"cidr": "192.0.2.53/32", "port": 5300}]},
    "pods": {"relay": {"tolerations": [{"operator": "Exists"}], "resources": {"limits": {"cpu": "1"}}}},
    "image": {"pullSecrets": ["registry"]},
}
_GROUPED: Final = "x-kubernetes-group-version-kind"
_REFERENCE: Final = re.compile(r'"#/definitions/([^"]+)"')
_NUMBERS_TOO: Final = (
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
)
"""Types that are text in the API server's document, and may be numbers in a manifest."""


@pytest.fixture(scope="module")
def schemas(api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a schema for each kind of the chart, without room for unknown fields.

    Each has only the definitions that it refers to: kubeconform would read all of them again for each kind.
    """
    folder = tmp_path_factory.mktemp("schemas")
    definitions = {name: _strict(name, one) for name, one in _document(api_server)["definitions"].items()}
    kinds = {(one["apiVersion"], one["kind"]) for one in template(EVERYTHING)}
    for name, one in definitions.items():
        for grouped in one.get(_GROUPED, ()):
            group, version, kind = (grouped[key] for key in ("group", "version", "kind"))
            if (f"{group}/{version}".removeprefix("/"), kind) in kinds:
                schema = {"$ref": f"#/definitions/{name}", "definitions": _reached(name, definitions)}
                # For kubeconform the group of `v1` is v1.
                file = folder / f"{kind.lower()}-{group or version}-{version}.json"
                file.write_text(json.dumps(schema), encoding="utf-8")
    return folder


def _reached(name: str, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A definition and those that it refers to, directly or not."""
    found: dict[str, Any] = {}
    wanted = [name]
    while wanted:
        one = wanted.pop()
        if one not in found:
            found[one] = definitions[one]
            wanted += _REFERENCE.findall(json.dumps(definitions[one]))
    return found


def _document(server: ApiServer) -> Any:
    return server.request("GET", "/openapi/v2")


def _strict(name: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    if name in _NUMBERS_TOO:
        return {"type": ["string", "number"]}
    closed = "properties" in definition and "x-kubernetes-preserve-unknown-fields" not in definition
    return {**definition, **({"additionalProperties": False} if closed else {})}


def conforms(manifests: list[Manifest], schemas: Path) -> subprocess.CompletedProcess[str]:
    location = f"{schemas}/{{{{ .ResourceKind }}}}-{{{{ .Group }}}}-{{{{ .ResourceAPIVersion }}}}.json"
    command = [program("kubeconform"), "-summary", "-schema-location", location]
    text = yaml.safe_dump_all(manifests)
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def test_every_object_conforms(schemas: Path) -> None:
    manifests = template(EVERYTHING)
    done = conforms(manifests, schemas)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Valid: {len(manifests)}, Invalid: 0, Errors: 0, Skipped: 0" in done.stdout


def test_the_judge_sees_an_unknown_field_and_a_wrong_type(schemas: Path) -> None:
    patch = [
        {"op": "add", "path": "/spec/template/spec/nodeSelecter", "value": {}},
        {"op": "replace", "path": "/spec/replicas", "value": "two"},
    ]
    for operation in patch:
        target = {"kind": "Deployment", "name": "relay"}
        changed = find(template({"patches": [{"target": target, "patch": [operation]}]}), "Deployment", "relay")
        done = conforms([changed], schemas)
        assert done.returncode == 1
        assert "Invalid: 1, Errors: 0" in done.stdout

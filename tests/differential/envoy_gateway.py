"""Envoy Gateway's own translation of a cluster's objects into the configuration of Envoys, by its program egctl.

The law: the objects are those that an API server has, with its defaults. egctl knows neither the cluster nor an Envoy.
https://gateway.envoyproxy.io/docs/operations/egctl/#egctl-experimental-translate
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.differential.envoy_tables import EnvoyTables, read_tables
from tests.differential.sets import Manifest, ObjectSet
from tests.kit.apiserver import ApiServer
from tests.kit.programs import find_program, program

CONTROLLER: Final = "gateway.envoyproxy.io/gatewayclass-controller"
CLASS: Final = "envoy"
NEEDS_EGCTL: Final = pytest.mark.skipif(
    find_program("egctl") is None, reason="missing peer: egctl (`make world-peers` brings it)"
)
"""It is none of the peers that CI demands: its build takes minutes and many modules."""
COLLECTIONS: Final = (
    ("v1", "Namespace", "namespaces"),
    ("v1", "Service", "services"),
    ("v1", "Secret", "secrets"),
    ("gateway.networking.k8s.io/v1", "Gateway", "gateways"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes"),
    ("gateway.networking.k8s.io/v1", "GRPCRoute", "grpcroutes"),
    ("gateway.networking.k8s.io/v1", "TLSRoute", "tlsroutes"),
    ("gateway.networking.k8s.io/v1beta1", "ReferenceGrant", "referencegrants"),
)
_SECONDS: Final = 120
_SHARE: Final = 25
"""Sets in one run of egctl."""
_UPPER: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


def translate(
    folder: Path, server: ApiServer, gateway_class: Manifest, sets: Sequence[ObjectSet]
) -> dict[str, EnvoyTables]:
    """The tables for each Gateway of a class in some sets, by `NAMESPACE/NAME`."""
    items = list(_objects(server))
    # The time that egctl takes grows with the square of the objects.
    shares = (sets[first : first + _SHARE] for first in range(0, len(sets), _SHARE))
    return {key: tables for share in shares for key, tables in _translate(folder, gateway_class, items, share).items()}


def _translate(
    folder: Path, gateway_class: Manifest, items: Iterable[Manifest], sets: Iterable[ObjectSet]
) -> dict[str, EnvoyTables]:
    namespaces = {namespace for one in sets for namespace in one.namespaces}
    chosen = (one for one in items if namespaces & {one["metadata"].get("namespace"), one["metadata"]["name"]})
    file = folder / "objects.yaml"
    # JSON is YAML, and much faster to write.
    file.write_text("\n---\n".join(map(json.dumps, (gateway_class, *chosen))), encoding="utf-8")
    command = [program("egctl"), "experimental", "translate", "--from=gateway-api", "--to=xds", "--output=json"]
    done = subprocess.run(
        [*command, f"--file={file}"], capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return {key: _read_dump(dump["configs"]) for key, dump in json.loads(done.stdout)["xds"].items()}


def without_selectors(objects: Iterable[Manifest]) -> Iterator[Manifest]:
    """The objects for egctl, which reads no labels of namespaces: a rule that admits by label admits all."""
    for one in objects:
        yield _admit_all(one)


def _admit_all(value: Any) -> Any:
    if isinstance(value, dict):
        every = {"from": "All"}
        return every if value.get("from") == "Selector" else {name: _admit_all(part) for name, part in value.items()}
    return [_admit_all(part) for part in value] if isinstance(value, list) else value


def _objects(server: ApiServer) -> Iterator[dict[str, Any]]:
    for version, kind, resource in COLLECTIONS:
        path = f"/{'apis' if '/' in version else 'api'}/{version}/{resource}"
        for one in server.request("GET", path)["items"]:
            yield {"apiVersion": version, "kind": kind, **one}


def _read_dump(configs: Iterable[dict[str, Any]]) -> EnvoyTables:
    """Of the JSON of a configuration dump, whose names are in camel case."""
    dumps = [_with_proto_names(one) for one in configs]
    listeners = [one["active_state"]["listener"] for dump in dumps for one in dump.get("dynamic_listeners", ())]
    tables = [one["route_config"] for dump in dumps for one in dump.get("dynamic_route_configs", ())]
    return read_tables(listeners, tables)


def _with_proto_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {_UPPER.sub(r"_\1", name).lower(): _with_proto_names(one) for name, one in value.items()}
    return [_with_proto_names(one) for one in value] if isinstance(value, list) else value

"""Stored sets: object sets on a real API server, without the objects that it refuses.

The law: an object that the API server does not accept is in no cluster, so it is dropped and counts for neither side.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.differential.sets import Manifest, ObjectSet
from tests.kit.apiserver import TOKEN, ApiServer
from tests.kit.gateway_api import CRDS, GROUP, RESOURCES
from tests.kit.polling import poll_until
from tests.kit.programs import program

_WORKERS: Final = 4
_SECONDS: Final = 30
_REFUSALS: Final = (http.client.BAD_REQUEST, http.client.FORBIDDEN, http.client.UNPROCESSABLE_ENTITY)
GATEWAY_RESOURCES: Final = (*RESOURCES, "gatewayclasses", "referencegrants", "backendtlspolicies", "tcproutes")
_IRREGULAR: Final = {
    "Ingress": "ingresses",
    "IngressClass": "ingressclasses",
    "GatewayClass": "gatewayclasses",
    "HTTPProxy": "httpproxies",
}


def store_sets(server: ApiServer, sets: Sequence[ObjectSet]) -> list[ObjectSet]:
    """Create the objects of all sets. Returns the sets with the accepted objects."""
    with ThreadPoolExecutor(_WORKERS) as pool:
        return [
            one
            for part in pool.map(lambda number: _store(server, sets[number::_WORKERS]), range(_WORKERS))
            for one in part
        ]


def _store(server: ApiServer, sets: Iterable[ObjectSet]) -> list[ObjectSet]:
    """A share of the sets, over one connection."""
    with server.connection() as connection:
        return [replace(one, objects=tuple(item for item in one.objects if create(connection, item))) for one in sets]


def create(connection: http.client.HTTPSConnection, item: Manifest) -> bool:
    """Create one object. Returns whether the API server accepts it; any other failure raises AssertionError."""
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    connection.request("POST", collection_of(item), json.dumps(item), headers)
    response = connection.getresponse()
    body = response.read()
    accepted = response.status == http.client.CREATED
    assert accepted or response.status in _REFUSALS, f"{collection_of(item)}: {response.status} {body.decode()}"
    return accepted


def create_all(server: ApiServer, items: Iterable[Manifest]) -> None:
    """Create objects that the API server must accept."""
    with server.connection() as connection:
        for item in items:
            assert create(connection, item), item


def collection_of(item: Manifest) -> str:
    """The path of the collection that an object belongs to."""
    version, kind = item["apiVersion"], item["kind"]
    namespace = item["metadata"].get("namespace")
    plural = _IRREGULAR.get(kind, f"{kind.lower()}s")
    return f"/{'apis' if '/' in version else 'api'}/{version}{f'/namespaces/{namespace}' if namespace else ''}/{plural}"


def install_gateway_api(server: ApiServer) -> None:
    """Install the Gateway API of the experimental channel, whose TLSRoutes are served in every version."""
    folder = Path(program("gateway-api")) / "experimental"
    files = [folder / f"{GROUP}_{resource}.yaml" for resource in GATEWAY_RESOURCES]
    install_definitions(server, files, served=[f"/apis/{GROUP}/v1/{resource}" for resource in GATEWAY_RESOURCES])


def install_definitions(server: ApiServer, files: Iterable[Path], *, served: Iterable[str]) -> None:
    """Create custom resource definitions, and wait until the collections of these paths are served."""
    with server.connection() as connection:
        for file in files:
            for document in file.read_bytes().split(b"\n---\n"):
                headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/yaml"}
                connection.request("POST", CRDS, document, headers)
                response = connection.getresponse()
                body = response.read()
                assert response.status == http.client.CREATED, f"{file}: {response.status} {body.decode()}"
    poll_until(_are_served(server, tuple(served)), "the definitions are served", seconds=_SECONDS)


def _are_served(server: ApiServer, paths: tuple[str, ...]) -> Callable[[], bool]:
    def are_served() -> bool:
        with server.connection() as connection:
            for path in paths:
                connection.request("GET", path, headers={"authorization": f"Bearer {TOKEN}"})
                response = connection.getresponse()
                response.read()
                if response.status != http.client.OK:
                    return False
        return True

    return are_served

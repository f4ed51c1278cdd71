"""Many Ingresses in a real API server: made once for each size, and kept where a folder is given.

The law: each was created through the API, as anybody's would be; what is there already is not made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.bench.kit.cpus import pinned
from tests.bench.sync.new_object import NewObject, Request
from tests.kit.apiserver import ApiServer, collection_path, ingress, running_apiserver, send

ZONE: Final = "bench.example.org"
NAMESPACES: Final = 100
MOST: Final = 1_000_000
"""Ingresses."""
_CONNECTIONS: Final = 8
_PART: Final = 250


def hostname_of(number: int) -> str:
    """The host of one of them."""
    return f"h{number}.{ZONE}"


def namespace_of(number: int) -> str:
    """Where it is."""
    return f"bench-{number % NAMESPACES}"


def name_of(number: int) -> str:
    """What it is called."""
    return f"i{number}"


def manifest_of(number: int) -> dict[str, Any]:
    """One host with a rule and a TLS section, as cert-manager would have it; some 1.3 kB of JSON from the server."""
    annotations = {"cert-manager.io/cluster-issuer": "letsencrypt", "nginx.ingress.kubernetes.io/ssl-redirect": "true"}
    return ingress(
        name_of(number),
        [hostname_of(number)],
        namespace=namespace_of(number),
        ingress_class="public",
        annotations=annotations,
    )


def object_of(number: int) -> NewObject:
    """One of them that does not exist yet."""
    folder = collection_path(namespace_of(number))
    request = Request("POST", folder, manifest_of(number))
    return NewObject("Ingress", hostname_of(number), f"{folder}/{name_of(number)}", (request,))


@contextmanager
def api_server(folder: Path, *, cpus: Iterable[int]) -> Iterator[ApiServer]:
    """An API server with the data that is in a folder, on some processors."""
    folder.mkdir(parents=True, exist_ok=True)
    with pinned(frozenset(cpus)), running_apiserver(folder) as server:
        yield server


def fill(server: ApiServer, count: int, *, tell: Callable[[int], None]) -> None:
    """Have so many Ingresses there are, no more and no fewer; `tell` hears how many there are, now and then."""
    present = set(_present(server))
    for number in sorted(number for number in present if number >= count):
        server.delete_ingress(name_of(number), namespace=namespace_of(number))
    _create_namespaces(server)
    missing = [number for number in range(count) if number not in present]
    done = count - len(missing)
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        for part in pool.map(partial(_create, server), split_work(missing)):
            done += part
            tell(done)


def split_work(numbers: Sequence[int]) -> list[Sequence[int]]:
    """The same numbers in parts, each for one connection."""
    return [numbers[start : start + _PART] for start in range(0, len(numbers), _PART)]


def _create(server: ApiServer, numbers: Sequence[int]) -> int:
    with server.connection() as connection:
        for number in numbers:
            send(connection, "POST", collection_path(namespace_of(number)), manifest_of(number))
    return len(numbers)


def _create_namespaces(server: ApiServer) -> None:
    present = {item["metadata"]["name"] for item in server.request("GET", "/api/v1/namespaces")["items"]}
    with server.connection() as connection:
        for number in range(NAMESPACES):
            if namespace_of(number) not in present:
                send(connection, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace_of(number)}})


def _present(server: ApiServer) -> Iterator[int]:
    path, token = "/apis/networking.k8s.io/v1/ingresses?limit=2000", ""
    while True:
        page = server.request("GET", f"{path}&continue={token}" if token else path)
        yield from (int(item["metadata"]["name"].removeprefix("i")) for item in page["items"])
        token = page["metadata"].get("continue")
        if not token:
            return

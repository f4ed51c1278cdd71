"""The objects of a big cluster in a real API server, in seconds.

The law: the first object of each kind is created through the API; the others are the octets that the API server stored
for it, with another number. Only Services are all created, because their addresses are allocated.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from tests.bench.doctor.objects import NAMESPACES, SERVICES, BigKind, Size, namespace_of, texts_of
from tests.bench.sync.etcd import MOST_IN_ONE, Etcd
from tests.bench.sync.filling import split_work
from tests.kit.apiserver import ApiServer, send

_CONNECTIONS: Final = 4
_MERGE: Final = "application/merge-patch+json"


def fill(server: ApiServer, size: Size, *, tell: Callable[[str], None]) -> None:
    """Have all objects there, if the last ones are not; `tell` hears what was made."""
    _create_namespaces(server)
    for kind, count in size.counts.items():
        with Etcd(server.etcd_port) as etcd:
            if not count or etcd.find(kind.stored_at(count - 1)) is not None:
                continue
        (_create_each if kind is SERVICES else _copy_each)(server, kind, count)
        tell(f"{count:,} {kind.plural}")


def _create_namespaces(server: ApiServer) -> None:
    present = {one["metadata"]["name"] for one in server.request("GET", "/api/v1/namespaces")["items"]}
    with server.connection() as connection:
        for name in map(namespace_of, range(NAMESPACES)):
            if name not in present:
                send(connection, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})


def _create_each(server: ApiServer, kind: BigKind, count: int) -> None:
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        for _ in pool.map(partial(_create, server, kind), split_work(range(count))):
            pass


def _create(server: ApiServer, kind: BigKind, numbers: Sequence[int]) -> None:
    with server.connection() as connection:
        for number in numbers:
            send(connection, "POST", kind.collection(number), kind.make(number))


def _copy_each(server: ApiServer, kind: BigKind, count: int) -> None:
    made = server.request("POST", kind.collection(0), kind.make(0))
    if kind.status is not None:
        path = f"{kind.collection(0)}/{made['metadata']['name']}/status"
        server.request("PATCH", path, {"status": kind.status(0)}, content_type=_MERGE)
    with Etcd(server.etcd_port) as etcd:
        stored = etcd.get(kind.stored_at(0))
        for start in range(1, count, MOST_IN_ONE):
            numbers = range(start, min(start + MOST_IN_ONE, count))
            etcd.put_all(_copies(kind, stored, made, numbers))


def _copies(kind: BigKind, stored: bytes, made: dict[str, Any], numbers: range) -> Iterator[tuple[str, bytes]]:
    for number in numbers:
        yield kind.stored_at(number), copy_of(stored, made["metadata"]["uid"], number)


def copy_of(stored: bytes, uid: str, number: int) -> bytes:
    """The first object's octets as those of another one; all texts keep their length (see mixed_filling.py)."""
    for old, new in zip(texts_of(0), texts_of(number), strict=True):
        stored = stored.replace(old.encode(), new.encode())
    return stored.replace(uid.encode(), _uid(number).encode())


def _uid(number: int) -> str:
    return str(uuid.UUID(int=random.Random(number).getrandbits(128)))  # noqa: S311  # no secret

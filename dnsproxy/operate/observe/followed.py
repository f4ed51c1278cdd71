"""Followed collections: the newest objects of one kind, kept by a watch.

The law: a thin shell over list and watch. Objects stay through every outage of the API server; `on_change` is called
after each change, and after each whole list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Generic, NoReturn, TypeVar

import trio

from sidecar.kubernetes.endpoint_slices import SERVICE_NAME, EndpointSlice
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import Changes, follow
from sidecar.kubernetes.objects import Collection, Resource, Unreadable

T = TypeVar("T", bound=Resource)
K = TypeVar("K")


class Followed(Generic[T, K]):
    """The objects of a collection by `NAMESPACE/NAME`, each as what `keep` makes of it; None leaves one out."""

    def __init__(self, collection: Collection[T], keep: Callable[[T], K | None], on_change: Callable[[], None]) -> None:
        self.status = FollowerStatus(collection.kind)
        self.objects: dict[str, K] = {}
        self._collection = collection
        self._keep = keep
        self._on_change = on_change

    async def run(self, client: ApiClient) -> NoReturn:
        """Follow until cancelled."""
        await follow(client, self._collection, on_change=self._take, on_synced=self._on_change, status=self.status)

    def _take(self, changes: Changes[T]) -> None:
        differs = False
        for key, one in changes.items():
            kept = None if one is None or isinstance(one, Unreadable) else self._keep(one)
            differs |= self.objects.get(key) != kept
            if kept is None:
                self.objects.pop(key, None)
            else:
                self.objects[key] = kept
        if differs and self.status.synced:
            self._on_change()


def slices_of_namespace(namespace: str) -> Collection[EndpointSlice]:
    """The EndpointSlices of a namespace. RBAC: list and watch endpointslices there."""
    return Collection(
        "EndpointSlice", f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices", EndpointSlice
    )


class EndpointFollowers:
    """The EndpointSlices of some Services, which may change; its tasks live in the nursery."""

    def __init__(self, client: ApiClient, nursery: trio.Nursery, on_change: Callable[[], None]) -> None:
        self._client = client
        self._nursery = nursery
        self._on_change = on_change
        self._following: dict[str, tuple[trio.CancelScope, Followed[EndpointSlice, EndpointSlice]]] = {}

    def want(self, services: Mapping[str, object]) -> None:
        """Follow the slices of these Services, by `NAMESPACE/NAME`, and of no other."""
        for key in [one for one in self._following if one not in services]:
            self._following.pop(key)[0].cancel()
        for key in services:
            if key not in self._following:
                followed = Followed(_slices_of(key), itself, self._on_change)
                scope = trio.CancelScope()
                self._following[key] = scope, followed
                self._nursery.start_soon(partial(self._follow, scope, followed))

    def slices(self, key: str) -> tuple[EndpointSlice, ...] | None:
        """The slices of a Service; None until they were read."""
        following = self._following.get(key)
        if following is None or not following[1].status.synced:
            return None
        return tuple(following[1].objects.values())

    async def _follow(self, scope: trio.CancelScope, followed: Followed[EndpointSlice, EndpointSlice]) -> None:
        with scope:
            await followed.run(self._client)


def itself(one: T) -> T:
    """All of an object, for Followed."""
    return one


def _slices_of(key: str) -> Collection[EndpointSlice]:
    namespace, _, name = key.partition("/")
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    return Collection(f"EndpointSlices of {key}", path, EndpointSlice, label_selector=f"{SERVICE_NAME}={name}")

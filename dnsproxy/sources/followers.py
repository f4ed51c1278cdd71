"""The sources of a kind or two each: follow the collections, keep the claim store, report changes.

The law: a thin shell; which hostnames an object claims is decided by the pure modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import trio

from dnsproxy.hostnames.claim_sink import ClaimSink
from dnsproxy.sources import ingress_source, service_source
from dnsproxy.sources.ingress import INGRESS_CLASSES, INGRESSES
from dnsproxy.sources.ingress_source import IngressSource
from dnsproxy.sources.selection import ALL, Selection
from dnsproxy.sources.service_source import SERVICES, ServiceSource
from dnsproxy.sources.settings import IngressOptions
from dnsproxy.sources.share_settler import ShareSettler
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.namespaces import follow_in
from sidecar.kubernetes.objects import Collection
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace

Report = Callable[[frozenset[str]], None]
"""Takes the hostnames whose claims have just changed: never an empty set, many at once where many changed together."""


@dataclass(slots=True)
class IngressStatus:
    """The status of the two watches of the Ingress source."""

    ingresses: FollowerStatus = field(default_factory=lambda: FollowerStatus("Ingress"))
    classes: FollowerStatus = field(default_factory=lambda: FollowerStatus("IngressClass"))

    @property
    def synced(self) -> bool:
        """Whether the claims match the cluster, classes included."""
        return self.ingresses.synced and self.classes.synced


async def follow_ingresses(
    client: ApiClient,
    store: ClaimSink,
    *,
    options: IngressOptions,
    selection: Selection = ALL,
    on_claims: Report,
    on_synced: Callable[[], None] = lambda: None,
    on_classes: Callable[[frozenset[str], frozenset[str]], None] = lambda *_: None,
    known_classes: int = 0,
    status: IngressStatus | None = None,
    settler: ShareSettler | None = None,
    pace: Pace = DEFAULT_PACE,
) -> None:
    """Keep the claims of the cluster's Ingresses in `store` until cancelled.

    `on_synced` is called after each whole list of either kind, once both are synced. Claims from a snapshot count until
    then, and a first list that has next to nothing of them is confirmed by a second one. `settler`: of the shares that
    `store` is, if it has any. `on_classes` gets the names of all IngressClasses and of those of ingress-nginx, once
    they were read; `known_classes`: about how many there were in an earlier run.
    """
    status = status or IngressStatus()
    source = IngressSource(store, options=options, most=settler.most_per_object if settler else None)
    ingresses = selection.of(INGRESSES)
    if settler is not None:
        settler.register_collection(
            ingress_source.SOURCE, client, lambda: ingresses, change=source.change_ingresses, pace=pace
        )

    def report_classes() -> None:
        if status.classes.synced:
            on_classes(source.class_names, source.nginx_classes)

    def change_classes(changes: Mapping[str, Any]) -> frozenset[str]:
        hostnames = source.change_classes(changes)
        report_classes()
        return hostnames

    expected = store.restored(ingress_source.SOURCE)
    watches = (
        _Watch(ingresses, source.change_ingresses, status.ingresses, expected, namespaces=selection.namespaces),
        _Watch(INGRESS_CLASSES, change_classes, status.classes, known_classes, report_classes),
    )
    await _feed(client, store, ingress_source.SOURCE, watches, on_claims=on_claims, on_synced=on_synced, pace=pace)


async def follow_services(
    client: ApiClient,
    store: ClaimSink,
    *,
    selection: Selection = ALL,
    on_claims: Report,
    on_synced: Callable[[], None] = lambda: None,
    status: FollowerStatus | None = None,
    settler: ShareSettler | None = None,
    pace: Pace = DEFAULT_PACE,
) -> None:
    """The same for the cluster's annotated Services."""
    source = ServiceSource(store)
    services = selection.of(SERVICES)
    if settler is not None:
        settler.register_collection(service_source.SOURCE, client, lambda: services, change=source.change, pace=pace)
    expected, namespaces = store.restored(service_source.SOURCE), selection.namespaces
    watch = _Watch(services, source.change, status or FollowerStatus(), expected, namespaces=namespaces)
    await _feed(client, store, service_source.SOURCE, (watch,), on_claims=on_claims, on_synced=on_synced, pace=pace)


@dataclass(frozen=True, slots=True)
class _Watch:
    """One collection of a source."""

    collection: Collection[Any]
    change: Callable[[Mapping[str, Any]], frozenset[str]]
    """Takes changes in; returns the hostnames whose claims changed."""
    status: FollowerStatus
    expected: int = 0
    """How many objects a snapshot has of it."""
    on_list: Callable[[], None] = lambda: None
    """Called after each whole list."""
    namespaces: tuple[str, ...] = ()
    """Empty: all."""


async def _feed(
    client: ApiClient,
    store: ClaimSink,
    source: str,
    watches: Sequence[_Watch],
    *,
    on_claims: Report,
    on_synced: Callable[[], None],
    pace: Pace,
) -> None:
    """Follow every collection of a source, and forget what a snapshot had once all of them are synced."""
    synced = trio.Event()

    def report(hostnames: frozenset[str]) -> None:
        if hostnames:
            on_claims(hostnames)

    def report_list(listed: _Watch) -> None:
        listed.on_list()
        if all(watch.status.synced for watch in watches):
            synced.set()
            on_synced()

    async def follow_one(watch: _Watch) -> None:
        await follow_in(
            client,
            watch.collection,
            watch.namespaces,
            on_change=lambda changes: report(watch.change(changes)),
            on_synced=lambda: report_list(watch),
            status=watch.status,
            expected=watch.expected,
            pace=pace,
        )

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_forget_restored, store, source, synced, report)
        for watch in watches:
            nursery.start_soon(follow_one, watch)


async def _forget_restored(store: ClaimSink, source: str, synced: trio.Event, report: Report) -> None:
    """Remove the claims that a snapshot had and the cluster, now that all is read, has not."""
    await synced.wait()
    for hostnames in store.forget_restored(source):
        report(hostnames)
        await trio.lowlevel.checkpoint()

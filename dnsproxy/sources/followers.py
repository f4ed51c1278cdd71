"""The sources of a kind or two each: follow the collections, keep the claim store, say what changed.

The law: a thin shell; what an object claims is the pure modules' business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

import trio

from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.sources.ingress import INGRESSES
from dnsproxy.sources.ingress_class import INGRESS_CLASSES
from dnsproxy.sources.ingress_source import SOURCE as INGRESS
from dnsproxy.sources.ingress_source import IngressOptions, IngressSource
from dnsproxy.sources.service_source import SERVICES, ServiceSource
from dnsproxy.sources.service_source import SOURCE as SERVICE
from sidecar.kubernetes.follower_status import Status
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import follow
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace


@dataclass(slots=True)
class IngressStatus:
    """How the two watches of the Ingress source are doing."""

    ingresses: Status = field(default_factory=lambda: Status("Ingress"))
    classes: Status = field(default_factory=lambda: Status("IngressClass"))

    @property
    def synced(self) -> bool:
        """Whether the claims are the cluster's, classes included."""
        return self.ingresses.synced and self.classes.synced


async def follow_ingresses(
    client: ApiClient,
    store: ClaimStore,
    *,
    options: IngressOptions,
    on_claims: Callable[[frozenset[str]], None],
    on_synced: Callable[[], None] = lambda: None,
    status: IngressStatus | None = None,
    pace: Pace = DEFAULT_PACE,
) -> NoReturn:
    """Keep the claims of the cluster's Ingresses in `store` until cancelled.

    `on_claims` gets the hostnames whose claims have just changed (never an empty set), many at once where many
    changed together. `on_synced` is called after each whole list of either kind, once both are in step. What the store
    has from a snapshot counts until then, and a first list that has next to nothing of it is confirmed by a second one.
    """
    status = status or IngressStatus()
    source = IngressSource(store, options=options)
    in_step = trio.Event()

    def tell(hostnames: frozenset[str]) -> None:
        if hostnames:
            on_claims(hostnames)

    def tell_synced() -> None:
        if status.synced:
            in_step.set()
            on_synced()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_forget_restored, store, INGRESS, in_step, tell)
        nursery.start_soon(
            lambda: follow(
                client,
                INGRESS_CLASSES,
                on_change=lambda changes: tell(source.change_classes(changes)),
                on_synced=tell_synced,
                status=status.classes,
                pace=pace,
            )
        )
        await follow(
            client,
            INGRESSES,
            on_change=lambda changes: tell(source.change_ingresses(changes)),
            on_synced=tell_synced,
            status=status.ingresses,
            expected=store.restored(INGRESS),
            pace=pace,
        )


async def follow_services(
    client: ApiClient,
    store: ClaimStore,
    *,
    on_claims: Callable[[frozenset[str]], None],
    on_synced: Callable[[], None] = lambda: None,
    status: Status | None = None,
    pace: Pace = DEFAULT_PACE,
) -> NoReturn:
    """The same for the cluster's marked Services."""
    source = ServiceSource(store)
    in_step = trio.Event()

    def tell(hostnames: frozenset[str]) -> None:
        if hostnames:
            on_claims(hostnames)

    def tell_synced() -> None:
        in_step.set()
        on_synced()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_forget_restored, store, SERVICE, in_step, tell)
        await follow(
            client,
            SERVICES,
            on_change=lambda changes: tell(source.change(changes)),
            on_synced=tell_synced,
            status=status,
            expected=store.restored(SERVICE),
            pace=pace,
        )


async def _forget_restored(
    store: ClaimStore, source: str, in_step: trio.Event, tell: Callable[[frozenset[str]], None]
) -> None:
    """What a snapshot had and the cluster, now that all is read, has not."""
    await in_step.wait()
    for hostnames in store.forget_restored(source):
        tell(hostnames)
        await trio.lowlevel.checkpoint()

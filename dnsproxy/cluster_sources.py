"""All that one server watches in a cluster: the sources it was told, and the Services that its targets name.

The law: a thin shell; it starts followers, and hands what they say to registry and keeper. One that cannot reach the
API server keeps what it knows, and the others do not notice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import trio

from dnsproxy.keeper import TableKeeper
from dnsproxy.settings import ClusterSettings
from dnsproxy.sources.cluster import IngressStatus, follow_ingresses
from dnsproxy.sources.gateway.follower import GatewayFollower
from dnsproxy.sources.gateway.kinds import SOURCES as GATEWAY_KINDS
from dnsproxy.sources.ingress_source import SOURCE as INGRESS
from dnsproxy.sources.service import service_keys
from dnsproxy.sources.service_targets import ServiceTargets
from sidecar.kubernetes.config import Cluster
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.status import Status

GATEWAY = "Gateway API"
TARGETS = "target Services"


class ClusterSources:
    """Follows a cluster for a keeper; `on_synced` is called after each whole report of a source."""

    def __init__(
        self, settings: ClusterSettings, keeper: TableKeeper, *, on_synced: Callable[[], None] = lambda: None
    ) -> None:
        self._settings = settings
        self._keeper = keeper
        self._on_synced = on_synced
        self._ingress = IngressStatus()
        self._gateway: GatewayFollower | None = None
        self._targets: ServiceTargets | None = None

    @staticmethod
    def reports(settings: ClusterSettings) -> list[str]:
        """What has to report once before the table is the cluster's."""
        told = {INGRESS: settings.ingress is not None, GATEWAY: settings.gateway is not None}
        return [*(name for name, given in told.items() if given), TARGETS]

    @staticmethod
    def kinds(settings: ClusterSettings) -> list[str]:
        """The sources in the claim store that are fed from here."""
        return [*([INGRESS] if settings.ingress else []), *(GATEWAY_KINDS if settings.gateway else [])]

    @property
    def statuses(self) -> list[Status]:
        """How every watch is doing."""
        ingress = [self._ingress.ingresses, self._ingress.classes] if self._settings.ingress else []
        gateway = self._gateway.statuses if self._gateway else []
        targets = list(self._targets.statuses.values()) if self._targets else []
        return [*ingress, *gateway, *targets]

    @property
    def faults(self) -> Mapping[str, str]:
        """The Services that targets name and that have no address, with the reason."""
        return self._targets.faults if self._targets else {}

    @property
    def in_step(self) -> bool:
        """Whether the claims are those of the cluster: all of it was read once, and nothing is in doubt."""
        return bool(self.statuses) and all(status.synced and not status.doubted for status in self.statuses)

    async def run(self, cluster: Cluster) -> None:
        """Follow until cancelled."""
        async with ApiClient(cluster) as client, trio.open_nursery() as nursery:
            for follower in self._followers(client):
                nursery.start_soon(follower)

    def _followers(self, client: ApiClient) -> list[Callable[[], Awaitable[None]]]:
        registry = self._keeper.registry
        self._targets = ServiceTargets(
            client, on_change=self._set_services, on_synced=self._note_targets, known=registry.targets.services
        )
        # Beside the flags' targets those that objects of a snapshot chose.
        chosen = (claim.target for claim in registry.store.claims() if claim.target)
        self._targets.want(service_keys((*registry.targets.named(), *chosen)))
        self._note_targets()
        followers: list[Callable[[], Awaitable[None]]] = [self._targets.run]
        if self._settings.ingress is not None:
            follow = partial(follow_ingresses, client, registry.store, options=self._settings.ingress)
            told = partial(self._note, INGRESS, lambda: self._ingress.synced)
            followers.append(partial(follow, on_claims=self._take, on_synced=told, status=self._ingress))
        if self._settings.gateway is not None:
            self._gateway = GatewayFollower(
                client,
                registry.store,
                options=self._settings.gateway,
                on_claims=self._take,
                on_synced=partial(self._note, GATEWAY, lambda: True),
            )
            followers.append(self._gateway.run)
        return followers

    def _take(self, hostnames: frozenset[str]) -> None:
        registry = self._keeper.registry
        registry.touch(hostnames)
        if self._targets is not None:
            chosen = (claim.target for name in hostnames for claim in registry.store.claims_for(name) if claim.target)
            self._targets.want(service_keys(chosen))
        self._keeper.wake()

    def _set_services(self, addresses: Mapping[str, tuple[str, ...]]) -> None:
        self._keeper.registry.set_services(addresses)
        self._keeper.wake()

    def _note(self, source: str, is_synced: Callable[[], bool]) -> None:
        self._on_synced()
        if is_synced():
            self._keeper.synced(source)

    def _note_targets(self) -> None:
        if self._targets is not None and self._targets.synced:
            self._keeper.synced(TARGETS)

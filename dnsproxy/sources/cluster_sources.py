"""Everything that one server watches in a cluster: the configured sources, and the Services that targets name.

The law: a thin shell; it passes the followers' reports to the registry and the keeper. A follower that cannot reach the
API server keeps its claims, and does not affect the others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from functools import partial

import trio

from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.rights import Rights
from dnsproxy.sources.followers import IngressStatus, follow_ingresses, follow_services
from dnsproxy.sources.ingress_source import SOURCE as INGRESS
from dnsproxy.sources.names import EXTERNAL_DNS
from dnsproxy.sources.rights_follower import RightsFollower, reads_namespaces
from dnsproxy.sources.service_shares import ServiceShares
from dnsproxy.sources.service_source import SOURCE as SERVICE
from dnsproxy.sources.service_targets import Addresses, ServiceTargets
from dnsproxy.sources.settings import ClusterSettings
from dnsproxy.sources.share_settler import ShareSettler
from dnsproxy.sources.source_followers import SourceFollowers, followed_kinds, followed_names
from dnsproxy.sources.steering import Steering
from dnsproxy.sources.steering_follower import SteeringFollower
from dnsproxy.sources.target_service import service_keys
from sidecar.kubernetes.cluster import Cluster
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.loop.slices import in_slices

TARGETS = "target Services"
STEERING = "route Services"
RIGHTS = "rights"
"""The namespaces whose annotations count, and the IngressClasses."""


class ClusterSources:
    """Follows a cluster for a keeper.

    `on_synced` is called after each whole list of a source.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        keeper: TableKeeper,
        *,
        on_synced: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._keeper = keeper
        self._on_synced = on_synced
        self._ingress = IngressStatus()
        self._service = FollowerStatus(SERVICE)
        self._others = SourceFollowers(settings, keeper)
        self._targets: ServiceTargets | None = None
        self._rights: RightsFollower | None = None
        self._steering: SteeringFollower | None = None
        self._uses = ServiceShares(configured=service_keys(keeper.registry.targets.named()))

    @staticmethod
    def reports(settings: ClusterSettings, rights: Rights | None = None) -> list[str]:
        """The names of the sources that must report once before the table is complete."""
        wanted = {
            INGRESS: settings.ingress is not None,
            **dict.fromkeys(followed_names(settings), True),
            SERVICE: settings.services,
            STEERING: settings.steers,
            RIGHTS: rights is not None and (reads_namespaces(rights) or _has_ingresses(settings)),
        }
        return [*(name for name, given in wanted.items() if given), TARGETS]

    @staticmethod
    def kinds(settings: ClusterSettings) -> list[str]:
        """The sources in the claim store that this class feeds."""
        simple = [*([INGRESS] if settings.ingress else []), *([SERVICE] if settings.services else [])]
        return [*simple, *followed_kinds(settings)]

    @property
    def statuses(self) -> list[FollowerStatus]:
        """The status of every watch."""
        targets = self._targets.statuses if self._targets else []
        rights = self._rights.statuses if self._rights else []
        steering = [self._steering.status] if self._steering else []
        return [*self._simple_statuses, *self._others.statuses, *rights, *steering, *targets]

    @property
    def unread(self) -> list[str]:
        """Why a chosen namespace holds up the first sync: it may be misspelt, or a Role may be missing."""
        if not self._settings.selection.namespaces:
            return []
        return [f"{one.kind}: {one.error}" for one in self.statuses if not one.synced and one.error is not None]

    @property
    def faults(self) -> Mapping[str, str]:
        """The Services that targets name and that have no address, and route Services that do not count: why."""
        steering = self._steering.steering.faults if self._steering else {}
        return {**self._uses.faults, **(self._targets.faults if self._targets else {}), **steering}

    @property
    def services(self) -> Addresses:
        """The addresses of the Services that targets name, of those with a ready endpoint."""
        targets = self._targets
        return {key: found for key, found in targets.addresses.items() if key not in targets.unready} if targets else {}

    @property
    def consistent(self) -> bool:
        """Whether claims and addresses match the cluster: everything was read once, and nothing is unconfirmed.

        Ignores Services that only objects name, because the owner of an object must not be able to prevent this.
        """
        if self._targets is None or not self._targets.consistent:
            return False
        if self._rights is None or not self._rights.consistent:
            return False
        if self._settings.steers and not (self._steering and _is_certain(self._steering.status)):
            return False
        store = self._keeper.registry.store
        return (
            all(map(_is_certain, self._simple_statuses))
            and self._others.consistent
            and not any(store.restored(kind) for kind in self.kinds(self._settings))
        )

    @property
    def _simple_statuses(self) -> list[FollowerStatus]:
        """The status of the watches that exist from the start."""
        ingress = [self._ingress.ingresses, self._ingress.classes] if self._settings.ingress else []
        return [*ingress, *([self._service] if self._settings.services else [])]

    async def run(self, cluster: Cluster) -> None:
        """Follow until cancelled."""
        async with ApiClient(cluster) as client:
            await self.follow(client)

    async def follow(self, client: ApiClient) -> None:
        """The same with an open client."""
        registry = self._keeper.registry
        self._targets = ServiceTargets(
            client,
            configured=service_keys(registry.targets.named()),
            known=registry.targets.services,
            on_change=self._set_services,
            on_synced=self._note_targets,
        )
        self._rights = RightsFollower(
            registry,
            awaits_classes=self._settings.ingress is not None,
            follows_classes=self._settings.ingress is None and _has_ingresses(self._settings),
            on_affected=self._judge_again,
            on_synced=self._note_targets,
        )
        if self._settings.steers:
            namespace = self._settings.routes_namespace or client.cluster.namespace
            self._steering = SteeringFollower(
                namespace,
                known=Steering(registry.targets.steered, registry.targets.balancers),
                on_change=self._steer,
                on_synced=self._note_steering,
            )
            self._targets.steer(registry.targets.steered.values())
        await in_slices(self._name_services(registry.store.names()))
        self._note_targets()
        async with trio.open_nursery() as nursery:
            for follower in self._followers(client):
                nursery.start_soon(follower)

    def _followers(self, client: ApiClient) -> Iterator[Callable[[], Awaitable[None]]]:
        shares = self._keeper.registry.shares
        settler = ShareSettler(shares, on_claims=self._judge_again)
        yield settler.run
        if self._targets is not None:
            yield self._targets.run
        if self._rights is not None:
            yield partial(self._rights.run, client)
        if self._steering is not None:
            yield partial(self._steering.run, client)
        if self._settings.ingress is not None:
            follow = partial(follow_ingresses, client, shares, options=self._settings.ingress, settler=settler)
            follow = partial(follow, selection=self._settings.selection)
            if self._rights is not None:
                follow = partial(follow, on_classes=self._rights.set_classes, known_classes=self._rights.known_classes)
            report = partial(self._note, INGRESS, lambda: self._ingress.synced)
            yield partial(follow, on_claims=self._judge_again, on_synced=report, status=self._ingress)
        yield from self._others.start(client, shares, settler, on_claims=self._judge_again, on_read=self._note_other)
        if self._settings.services:
            report = partial(self._note, SERVICE, lambda: self._service.synced)
            follow_them = partial(follow_services, client, shares, settler=settler, selection=self._settings.selection)
            yield partial(follow_them, on_claims=self._judge_again, on_synced=report, status=self._service)

    def _judge_again(self, hostnames: frozenset[str]) -> None:
        self._keeper.registry.touch(hostnames)
        for _ in self._name_services(hostnames):
            pass
        self._keeper.wake()

    def _name_services(self, hostnames: Iterable[str]) -> Generator[None, None, None]:
        """Follow the Services that the claims to these hostnames choose, and drop those without any claim left."""
        registry = self._keeper.registry
        for hostname in hostnames:
            allowed = tuple(filter(registry.allows, registry.store.claims_for(hostname)))
            change = self._uses.put(hostname, allowed)
            if self._targets is not None:
                self._targets.leave(change.removed)
                self._targets.want(change.added)
            yield

    def _set_services(self, key: str, addresses: Addresses) -> None:
        registry = self._keeper.registry
        targets = registry.targets
        is_configured = key in service_keys(targets.named()) or key in targets.steered.values()
        unready = self._targets.unready if self._targets is not None else frozenset()
        touching = None if is_configured else self._uses.hostnames(key)
        registry.set_services(addresses, unready=unready, touching=touching)
        self._keeper.forward(unready)
        self._keeper.wake()

    def _steer(self, steering: Steering) -> None:
        if self._targets is not None:
            self._targets.steer(steering.services.values())
        self._keeper.registry.set_steered(steering.services, steering.balancers)
        self._keeper.wake()

    def _note(self, source: str, is_synced: Callable[[], bool]) -> None:
        self._on_synced()
        if is_synced():
            self._keeper.synced(source)

    def _note_other(self, name: str) -> None:
        self._note(name, lambda: True)

    def _note_steering(self) -> None:
        self._note(STEERING, lambda: True)
        self._note_targets()

    def _note_targets(self) -> None:
        if self._targets is None or not self._targets.synced:
            return
        if self._steering is not None and not self._steering.status.synced:
            return  # It may name more Services, which the first sync waits for, too.
        self._keeper.synced(TARGETS)
        # Only now: rights may let objects name more Services, which the first sync waits for, too.
        if self._rights is not None and self._rights.synced:
            self._keeper.synced(RIGHTS)


def _has_ingresses(settings: ClusterSettings) -> bool:
    """Whether a source has Ingresses, whose classes must exist (rights.py)."""
    return settings.ingress is not None or any(one.name == EXTERNAL_DNS for one in settings.others)


def _is_certain(status: FollowerStatus) -> bool:
    """Whether everything was read once, and nothing is unconfirmed."""
    return status.synced and not status.doubted

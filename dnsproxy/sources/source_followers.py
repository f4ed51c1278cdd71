"""The followers of all sources but Ingresses and Services: one each, so that a source that is off affects no other.

The law: a thin shell over source_plans.py. A source is named as in `--source`; the Gateway API has a name of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Final

from dnsproxy.hostnames.claim_sink import ClaimSink
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.sources.external_dns.dns_endpoint_source import AliasObserver
from dnsproxy.sources.gateway.kinds import SOURCES as GATEWAY_KINDS
from dnsproxy.sources.settings import ClusterSettings
from dnsproxy.sources.share_settler import ShareSettler
from dnsproxy.sources.source_follower import SourceFollower
from dnsproxy.sources.source_plans import SourcePlan, claiming_kinds, plan_gateway, plan_other
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient

GATEWAY: Final = "Gateway API"


def followed_names(settings: ClusterSettings) -> list[str]:
    """The names of the sources that are followed."""
    return [*([GATEWAY] if settings.gateway is not None else []), *(one.name for one in settings.others)]


def followed_kinds(settings: ClusterSettings) -> list[str]:
    """The sources in the claim store that they feed."""
    gateway = GATEWAY_KINDS if settings.gateway is not None else ()
    return [*gateway, *(kind for one in settings.others for kind in claiming_kinds(one.name))]


class SourceFollowers:
    """The followers; there are none before start()."""

    def __init__(self, settings: ClusterSettings, keeper: TableKeeper) -> None:
        self._settings = settings
        self._keeper = keeper
        self._followers: list[SourceFollower] = []

    @property
    def statuses(self) -> list[FollowerStatus]:
        """The status of every watch."""
        return [status for one in self._followers for status in one.statuses]

    @property
    def consistent(self) -> bool:
        """Whether all claims match the cluster."""
        are_all = len(self._followers) == len(followed_names(self._settings))
        return are_all and all(one.consistent for one in self._followers)

    def start(
        self,
        client: ApiClient,
        store: ClaimSink,
        settler: ShareSettler,
        *,
        on_claims: Callable[[frozenset[str]], None],
        on_read: Callable[[str], None],
    ) -> Iterator[Callable[[], Awaitable[None]]]:
        """What has to run. `on_read` gets the name of a source after each whole list, once all its kinds were read."""
        for name, plan in self._plans(store, settler.most_per_object):
            follower = SourceFollower(
                client,
                store,
                plan.source,
                name=name,
                kinds=plan.kinds,
                beside=plan.beside,
                selection=self._settings.selection,
                on_claims=on_claims,
                on_synced=partial(on_read, name),
            )
            self._followers.append(follower)
            _register(settler, follower, plan, client)
            yield follower.run
            if plan.aliases is not None:
                self._keeper.observers.append(AliasObserver(plan.aliases, wake=follower.wake))

    def _plans(self, store: ClaimSink, most: int) -> Iterator[tuple[str, SourcePlan]]:
        if self._settings.gateway is not None:
            yield GATEWAY, plan_gateway(store, self._settings.gateway)
        for one in self._settings.others:
            yield one.name, plan_other(store, one, most=most, registry=self._keeper.registry)


def _register(settler: ShareSettler, follower: SourceFollower, plan: SourcePlan, client: ApiClient) -> None:
    """How the objects of a source are reported once more when their names have room again."""
    for kind in plan.kinds:
        if plan.report is not None:
            settler.register(kind.kind, _from_source(plan.report, kind.kind))
        else:
            change, where = partial(plan.source.change, kind.kind), partial(follower.collection, kind.kind)
            settler.register_collection(kind.kind, client, where, change=change)


def _from_source(report: Callable[[str, str], frozenset[str]], kind: str) -> Callable[[str], Awaitable[frozenset[str]]]:
    async def again(key: str) -> frozenset[str]:
        return report(kind, key)

    return again

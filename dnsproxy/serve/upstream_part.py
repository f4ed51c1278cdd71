"""The part of a service that knows its upstreams: those of flags, of ConfigMaps, or of the node's resolv.conf.

The law: addresses that this server listens on are no upstreams, whatever names them. What was found last stays until
something else is found. The search domains of a followed file go to the guarded domains. Tested in the files
test_program*.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from dnsproxy.forward.resolv_conf_follower import follow_resolv_conf, follow_search, log_own_nameservers
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.serve.answering import Answering
from dnsproxy.serve.guarded_domains import GuardedDomains
from dnsproxy.serve.settings import ServeSettings
from dnsproxy.serve.upstream_choice import describe_routes, describe_upstreams
from dnsproxy.snapshot.format import SavedUpstreams
from sidecar.files.follow import Reloads
from sidecar.kubernetes.cluster import Cluster
from sidecar.values.endpoints import Endpoint

if TYPE_CHECKING:
    from dnsproxy.serve.upstream_watch import UpstreamWatch


class UpstreamPart:
    """Has `answering` forward to the present upstreams; `on_synced` is called when ConfigMaps were read once."""

    def __init__(
        self, settings: ServeSettings, answering: Answering, guarded: GuardedDomains, *, on_synced: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._answering = answering
        self._guarded = guarded
        self.watch = self._make_watch(on_synced)
        """That of the ConfigMaps; None without any."""

    def saved(self) -> SavedUpstreams | None:
        """The last good upstreams of a ConfigMap, for a snapshot."""
        return self.watch.saved if self.watch is not None else None

    def restore(self, saved: SavedUpstreams | None) -> None:
        """Use those of a snapshot until the ConfigMaps are read."""
        if self.watch is not None:
            self.watch.restore(saved)

    def exclude(self, listening: Sequence[Endpoint]) -> None:
        """Exclude the addresses that this server listens on. Raises StartError if nothing else is left."""
        others, ours = self._settings.without_loops(listening)
        log_own_nameservers(ours)
        if self.watch is not None:
            self.watch.set_listening(listening)
        else:
            self._answering.replace_upstreams(replace(self._answering.forwarding, upstreams=others.upstreams))

    def start(
        self, nursery: trio.Nursery, cluster: Cluster | None, reloads: Reloads | None, listening: Sequence[Endpoint]
    ) -> None:
        """Follow the ConfigMaps and the resolv.conf, in tasks of the nursery."""
        if cluster is not None and self.watch is not None:
            nursery.start_soon(_follow_config_maps, cluster, self.watch)
        if self._settings.resolv_conf:
            nursery.start_soon(self._follow_resolv_conf, self._settings.resolv_conf, reloads, listening)
        elif self._settings.search_conf:
            follow = partial(follow_search, apply_search=self._guarded.use_search, reloads=reloads)
            nursery.start_soon(follow, self._settings.search_conf)

    def _make_watch(self, on_synced: Callable[[], None]) -> UpstreamWatch | None:
        settings = self._settings
        if settings.upstream_configmaps is not None:
            from dnsproxy.serve.upstream_watch import UpstreamWatch  # noqa: PLC0415

            return UpstreamWatch(
                settings.upstream_configmaps.refs,
                imports=settings.upstream_configmaps.imports,
                node=self._answering.forwarding,
                apply=self._use,
                on_synced=on_synced,
                on_domains=self._guarded.use_corefile,
            )
        given = settings.forwarding.upstreams
        self._answering.report_forwards(describe_routes(()) if settings.resolv_conf else describe_upstreams(given))
        return None

    def _use(self, forwarding: ForwardSettings, forwards: str) -> None:
        self._answering.replace_upstreams(forwarding)
        self._answering.report_forwards(forwards)

    async def _follow_resolv_conf(self, path: Path, reloads: Reloads | None, listening: Sequence[Endpoint]) -> None:
        await follow_resolv_conf(
            path,
            used=self._answering.forwarding,
            listening=listening,
            apply=self.watch.set_node if self.watch is not None else self._answering.replace_upstreams,
            apply_search=self._guarded.use_search if self._settings.search_conf else lambda _: None,
            reloads=reloads,
        )


async def _follow_config_maps(cluster: Cluster, watch: UpstreamWatch) -> None:
    from sidecar.kubernetes.http import ApiClient  # noqa: PLC0415

    async with ApiClient(cluster) as client:
        await watch.run(client)

"""The upstream watch: follows the ConfigMap with the cluster's Corefile, and the server forwards where its block did.

The law: whatever happens to the ConfigMap, to the API server or to the resolv.conf, there are upstreams to ask. Good
upstreams stay until others are read; a fault is logged once, shown on the page, and part of the answer to a probe.
Before the first read there are none, and the server is not ready: a lookup that was encrypted must not go elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final

import structlog
import trio

from dnsproxy.cluster_dns.own_service import ObjectRef
from dnsproxy.cluster_dns.upstream_config import NoUpstreams, config_map_collection, read_cluster_domains, read_routes
from dnsproxy.corefile.cluster_zones import ClusterZones
from dnsproxy.corefile.upstream_routes import Routes, seen_from
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.serve.upstream_choice import choose_upstreams, describe_routes, describe_upstreams
from dnsproxy.snapshot.format import SavedUpstreams
from sidecar.kubernetes.errors import Forbidden
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import follow
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.structs.workload import ConfigMap
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace
from sidecar.values.endpoints import Endpoint

SOURCE = "upstreams"

PATIENCE: Final = 5.0
"""Seconds between two looks whether RBAC hides the ConfigMap."""

Apply = Callable[[ForwardSettings, str], None]
"""Takes the settings, and their description for probes."""


class UpstreamWatch:
    """The upstreams of one ConfigMap. `on_domains` gets the cluster domains of each Corefile that can be read."""

    def __init__(
        self,
        ref: ObjectRef,
        *,
        node: ForwardSettings,
        apply: Apply,
        on_synced: Callable[[], None] = lambda: None,
        on_domains: Callable[[ClusterZones], None] = lambda _: None,
    ) -> None:
        self.status = FollowerStatus(f"ConfigMap {ref}")
        self.routes: Routes = ()
        """The last good ones; empty before the first."""
        self._ref = ref
        self._node = node
        self._apply = apply
        self._on_synced = on_synced
        self._on_domains = on_domains
        self._domains = ClusterZones((), complete=False)
        self._listening: Collection[Endpoint] = ()
        self._used: ForwardSettings | None = None
        self._fault = ""
        self._was_read = False
        self._log = structlog.get_logger("dnsproxy.upstreams")

    @property
    def notes(self) -> list[str]:
        """What users should know: why the ConfigMap is not followed, or which part of it is not."""
        stays = "the last good upstreams stay" if self.routes else "the node's nameservers are asked"
        faults = [f"ConfigMap {self._ref}: {self._fault}; {stays}"] if self._fault else []
        for route in self.routes:
            if route.fault:
                at = f"line {route.line}: " if route.line else ""
                where = f"names of {route.zone} go to the node's nameservers"
                faults.append(f"ConfigMap {self._ref}: {at}{route.fault}; {where}, or set --upstream")
        return faults

    @property
    def saved(self) -> SavedUpstreams | None:
        """The last good upstreams for a snapshot."""
        if not self.routes:
            return None
        return SavedUpstreams(str(self._ref), self.routes, self._domains.zones, all_domains=self._domains.complete)

    def restore(self, saved: SavedUpstreams | None) -> None:
        """Use the upstreams of a snapshot until the ConfigMap is read."""
        if saved is not None and saved.config_map == str(self._ref):
            self.routes = saved.routes
            self._domains = ClusterZones(saved.domains, complete=saved.all_domains)
            self._on_domains(self._domains)
        self._use()

    def set_node(self, node: ForwardSettings) -> None:
        """Use other nameservers of the node: its resolv.conf has changed."""
        self._node = node
        self._use()

    def set_listening(self, listening: Collection[Endpoint]) -> None:
        """Exclude the addresses that this server listens on."""
        self._listening = listening
        self._use()

    async def run(self, client: ApiClient, *, pace: Pace = DEFAULT_PACE, patience: float = PATIENCE) -> None:
        """Follow the ConfigMap until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._wait_allowed, patience)
            await follow(
                client,
                config_map_collection(self._ref),
                on_change=self._take,
                on_synced=self._note_synced,
                status=self.status,
                expected=1 if self.routes else 0,
                pace=pace,
            )

    async def _wait_allowed(self, patience: float) -> None:
        """Report a ConfigMap that RBAC hides, and let the server become ready: other queries would wait for ever."""
        while not self.status.synced:
            await trio.sleep(patience)
            if not self.status.synced and isinstance(self.status.error, Forbidden):
                self._note_fault(str(self.status.error))
                self._on_synced()

    def _take(self, changes: Mapping[str, ConfigMap | Unreadable | None]) -> None:
        if str(self._ref) not in changes:
            return
        self._was_read = True
        domains = read_cluster_domains(changes[str(self._ref)])
        if domains is not None:
            self._domains = domains
            self._on_domains(domains)
        try:
            routes = seen_from(self._listening, read_routes(self._ref, changes[str(self._ref)]))
        except NoUpstreams as error:
            self._note_fault(str(error))
            return
        if choose_upstreams(routes, node=self._node, listening=self._listening) is None:
            self._note_fault("its upstreams are dnsproxy itself")
            return
        is_new = describe_routes(routes) != describe_routes(self.routes) or not self.routes
        self.routes = routes
        self._note_fault("")
        if is_new:
            self._report()

    def _note_synced(self) -> None:
        if not self._was_read:
            self._take({str(self._ref): None})
        self._on_synced()

    def _note_fault(self, fault: str) -> None:
        if fault and fault != self._fault:
            self._fault = fault
            self._log.warning("no upstreams in the ConfigMap", note=self.notes[0])
        self._fault = fault
        self._use()

    def _report(self) -> None:
        self._log.info("forwarding as the cluster's DNS did", upstreams=describe_routes(self.routes))
        for note in self.notes:
            self._log.warning("an upstream of the cluster's DNS cannot be asked", note=note)

    def _use(self) -> None:
        if not (self.routes or self._fault):
            self._apply(replace(self._node, upstreams=()), describe_upstreams(()))
            return
        routes = self.routes
        settings = choose_upstreams(routes, node=self._node, listening=self._listening)
        if settings is None:
            # A snapshot of a server that listened elsewhere.
            routes = ()
            settings = choose_upstreams(routes, node=self._node, listening=self._listening)
        if settings is None:
            self._log.warning("the upstreams are this server itself; those before stay", config_map=str(self._ref))
        elif settings != self._used:
            self._used = settings
            self._apply(settings, describe_routes(routes))

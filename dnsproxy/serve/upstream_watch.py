"""The upstream watch: follows the ConfigMap with the cluster's Corefile, and the server forwards where its block did.

The law: whatever happens to the ConfigMap, to the API server or to the resolv.conf, there are upstreams to ask. Good
upstreams stay until others are read; a fault is logged once, shown on the page, and part of the answer to a probe.
Before the first read there are none, and the server is not ready: a lookup that was encrypted must not go elsewhere.
Which of several ConfigMaps counts is the matter of ranked_config_maps.py. Files that a Corefile imports are read before
it is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

import structlog
import trio

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.upstream_config import NoUpstreams, read_cluster_domains, read_routes
from dnsproxy.corefile.cluster_zones import ClusterZones
from dnsproxy.corefile.upstream_routes import Files, Routes, seen_from
from dnsproxy.dns.names import MAXIMUM_NAME
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.serve.ranked_config_maps import PATIENCE, Hidden, RankedConfigMaps
from dnsproxy.serve.upstream_choice import choose_upstreams, describe_routes, describe_upstreams
from dnsproxy.snapshot.format import SavedUpstreams
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.structs.workload import ConfigMap
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace
from sidecar.values.endpoints import Endpoint
from sidecar.values.text import cut

Apply = Callable[[ForwardSettings, str], None]
"""Takes the settings, and their description for probes."""


class UpstreamWatch:
    """The upstreams of the first of these ConfigMaps that is there, by NAMESPACE and NAME.

    `on_domains` gets the cluster domains of each Corefile that can be read.
    """

    def __init__(
        self,
        refs: Sequence[ObjectRef],
        *,
        imports: Sequence[ObjectRef] = (),
        node: ForwardSettings,
        apply: Apply,
        on_synced: Callable[[], None] = lambda: None,
        on_domains: Callable[[ClusterZones], None] = lambda _: None,
    ) -> None:
        self.routes: Routes = ()
        """The last good ones; empty before the first."""
        self._config_maps = RankedConfigMaps(
            refs, on_found=self._find, on_missing=self._miss, on_synced=self._note_listed
        )
        self._imports = [self._follow_import(ref) for ref in dict.fromkeys(imports)]
        self._files: dict[ObjectRef, ConfigMap | Unreadable | None] = {}
        """Those that were read, of the ConfigMaps with imported files."""
        self._judge: Callable[[], None] = _nothing
        """Takes what is known of the deciding ConfigMap."""
        self._is_listed = False
        self._on_synced = on_synced
        self._source: ObjectRef | None = None
        """The ConfigMap of those routes."""
        self._node = node
        self._apply = apply
        self._on_domains = on_domains
        self._domains = ClusterZones((), complete=False)
        self._listening: Collection[Endpoint] = ()
        self._used: tuple[ForwardSettings, str] | None = None
        """With their description, by which the installer compares them: two texts may lead to the same nameservers."""
        self._fault = ""
        """Why there are no upstreams at present, with the ConfigMap."""
        self._log = structlog.get_logger("dnsproxy.upstreams")

    @property
    def statuses(self) -> list[FollowerStatus]:
        """Those of the ConfigMaps that are followed."""
        return [status for one in (self._config_maps, *self._imports) for status in one.statuses]

    @property
    def skipped(self) -> list[str]:
        """The ConfigMaps that RBAC hides, while a later one decides."""
        hidden = self._config_maps.hidden if self._config_maps.decides else {}
        return [f"ConfigMap {ref} is skipped: {cause}" for ref, cause in hidden.items()]

    @property
    def notes(self) -> list[str]:
        """What users should know: why the ConfigMap is not followed, or which part of it is not."""
        node = "the node's nameservers" if self._node.upstreams else "nobody, as the node has no nameserver"
        stays = "the last good upstreams stay" if self.routes else f"names go to {node}"
        faults = [f"{self._fault}; {stays}"] if self._fault else []
        for route in self.routes:
            if route.fault:
                at = f"line {route.line}: " if route.line else ""
                where = f"names of {cut(route.zone, MAXIMUM_NAME)} go to {node}"
                faults.append(f"ConfigMap {self._source}: {at}{route.fault}; {where}; or set --upstream")
        return faults

    @property
    def saved(self) -> SavedUpstreams | None:
        """The last good upstreams for a snapshot."""
        if not self.routes:
            return None
        return SavedUpstreams(str(self._source), self.routes, self._domains.zones, all_domains=self._domains.complete)

    def restore(self, saved: SavedUpstreams | None) -> None:
        """Use the upstreams of a snapshot until the ConfigMap is read."""
        known = {str(ref): ref for ref in self._config_maps.refs}
        if saved is not None and saved.config_map in known:
            self.routes, self._source = saved.routes, known[saved.config_map]
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
        """Follow the ConfigMaps until cancelled."""
        async with trio.open_nursery() as nursery:
            for one in self._imports:
                nursery.start_soon(partial(one.run, client, pace=pace, patience=patience))
            await self._config_maps.run(client, expected=self._source, pace=pace, patience=patience)

    def _follow_import(self, ref: ObjectRef) -> RankedConfigMaps:
        def take(found: ConfigMap | Unreadable | None) -> None:
            self._files[ref] = found
            if self._knows_files:
                self._judge()
                self._tell_synced()

        return RankedConfigMaps((ref,), on_found=lambda _, found: take(found), on_missing=lambda _: take(None))

    @property
    def _knows_files(self) -> bool:
        return len(self._files) == len(self._imports)

    def _find(self, ref: ObjectRef, found: ConfigMap | Unreadable) -> None:
        self._set_judge(lambda: self._take(ref, found))

    def _miss(self, hidden: Hidden) -> None:
        self._set_judge(lambda: self._take_none(hidden))

    def _set_judge(self, judge: Callable[[], None]) -> None:
        self._judge = judge
        if self._knows_files:
            judge()

    def _note_listed(self) -> None:
        self._is_listed = True
        self._tell_synced()

    def _tell_synced(self) -> None:
        if self._is_listed and self._knows_files:
            self._on_synced()

    def _files_for(self, ref: ObjectRef) -> Files:
        """The imported files of a Corefile's namespace. Raises NoUpstreams for those that cannot be read."""
        files: dict[str, str] = {}
        for one, found in self._files.items():
            if isinstance(found, Unreadable) and one.namespace == ref.namespace:
                raise NoUpstreams(f"its imports are unreadable: {found.reason}")
            if isinstance(found, ConfigMap) and one.namespace == ref.namespace:
                files |= found.data or {}
        return files

    def _take(self, ref: ObjectRef, found: ConfigMap | Unreadable | None) -> None:
        domains = read_cluster_domains(found)
        if domains is not None:
            self._domains = domains
            self._on_domains(domains)
        try:
            routes = seen_from(self._listening, read_routes(ref, found, self._files_for(ref)))
        except NoUpstreams as error:
            self._note_fault(f"ConfigMap {ref}: {error}")
            return
        if choose_upstreams(routes, node=self._node, listening=self._listening) is None:
            self._note_fault(f"ConfigMap {ref}: its upstreams are dnsproxy itself")
            return
        is_new = describe_routes(routes) != describe_routes(self.routes) or not self.routes
        is_new = is_new or (self._source is not None and ref != self._source)
        self.routes, self._source = routes, ref
        self._note_fault("")
        if is_new:
            self._report(ref)

    def _take_none(self, hidden: Hidden) -> None:
        refs = self._config_maps.refs
        if len(refs) == 1 and not hidden:
            self._take(refs[0], None)
        else:
            self._note_fault(_missing(refs, hidden))

    def _note_fault(self, fault: str) -> None:
        if fault and fault != self._fault:
            self._fault = fault
            self._log.warning("no upstreams in the ConfigMap", note=self.notes[0])
        self._fault = fault
        self._use()

    def _report(self, ref: ObjectRef) -> None:
        told = describe_routes(self.routes)
        self._log.info("forwarding as the cluster's DNS did", upstreams=told, config_map=str(ref))
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
            self._log.warning("the upstreams are this server itself; those before stay", config_map=str(self._source))
        elif (settings, describe_routes(routes)) != self._used:
            self._used = settings, describe_routes(routes)
            self._apply(*self._used)


def _nothing() -> None:
    """Nothing is known of a deciding ConfigMap."""


def _missing(refs: Sequence[ObjectRef], hidden: Hidden) -> str:
    """Why none of the ConfigMaps counts."""
    if len(refs) == 1:
        return f"ConfigMap {refs[0]}: {hidden[refs[0]]}"
    named = (f"{ref} (RBAC hides it)" if ref in hidden else str(ref) for ref in refs)
    return f"none of these ConfigMaps is there: {', '.join(named)}"

"""The guarded domains of a running server: the search domains and the cluster domains, from all that tell them.

The law: each source changes only its own part; what it told last stays if it cannot be read any more.
"""

from __future__ import annotations

from dataclasses import replace

import structlog

from dnsproxy.corefile.cluster_zones import ClusterZones
from dnsproxy.forward.resolv_conf import find_cluster_domain
from dnsproxy.hostnames.cluster_domains import USUAL, ClusterDomains
from dnsproxy.hostnames.keeper import TableKeeper


class GuardedDomains:
    """Passes changed domains to the keeper's registry, and logs them. Begins with those of the settings."""

    def __init__(self, keeper: TableKeeper, *, search: tuple[str, ...], domains: ClusterDomains) -> None:
        self.domains = domains
        self._keeper = keeper
        self._search = search
        self._log = structlog.get_logger("dnsproxy")

    def use_search(self, search: tuple[str, ...]) -> None:
        """Set the search domains of the resolv.conf, and the cluster domain among them."""
        found = find_cluster_domain(list(search))
        self._search, self.domains = search, replace(self.domains, search=(found,) if found else ())
        self._guard()

    def use_corefile(self, found: ClusterZones) -> None:
        """Set the cluster domains of the Corefile; if it may hide some, the last and the usual ones are guarded too."""
        hidden = () if found.complete else (*self.domains.corefile, *USUAL)
        self.domains = replace(self.domains, corefile=tuple(dict.fromkeys((*found.zones, *hidden))))
        self._guard()

    def _guard(self) -> None:
        guarded = self.domains.guarded
        if self._keeper.registry.set_guarded(search=self._search, cluster_domains=guarded):
            told = {"cluster_domains": guarded, "told_by": self.domains.told_by}
            self._log.info("guarded domains changed", search_domains=self._search, **told)
            self._keeper.wake()

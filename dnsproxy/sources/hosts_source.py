"""The hosts file as a source: from what it says now to changes of claims.

The law: pure; a line that says what it said before costs a comparison, and what the registry is told of is the whole
change and never half of one, although the work is done in steps.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.registry import Registry
from dnsproxy.sources.static_names import HostsFile

SOURCE: Final = "hosts file"


class HostsSource:
    """Feeds one registry with the claims of one hosts file."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._claims: dict[str, Claim] = {}

    def replace(self, found: HostsFile) -> Generator[None, None, None]:
        """Take in what the file says now, a step a name."""
        store = self._registry.store
        old, self._claims = self._claims, dict(found.claims)
        # A dict, because a list of so many would be walked through by the garbage collector.
        touched: dict[str, None] = {}
        for hostname, claim in found.claims.items():
            if old.pop(hostname, None) != claim:
                store.replace(SOURCE, hostname, [claim])
                touched[hostname] = None
            yield
        while old:
            hostname, _ = old.popitem()
            store.replace(SOURCE, hostname, [])
            touched[hostname] = None
            yield
        store.replace(SOURCE, "", [], found.rejections)
        # Only now: a name that went on one line and came on another must not be missing from a table in between.
        self._registry.touch(touched)

"""The static names of a server: those of --host, and those of --hosts-file, which is followed.

The law: a thin shell over sources/static_names.py; the file is read once before the first answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.serve.settings import ServeSettings
from dnsproxy.sources.hosts_file import follow_hosts_file, read_hosts_file
from dnsproxy.sources.static_names import HostsFile, HostsSource
from sidecar.files.follow import Mark, Reloads
from sidecar.loop.slices import in_slices


class StaticHosts:
    """Feeds the registry of a keeper; `on_change` is called after each reading of the file."""

    def __init__(
        self, settings: ServeSettings, keeper: TableKeeper, *, on_change: Callable[[], Awaitable[None]]
    ) -> None:
        self._settings = settings
        self._keeper = keeper
        self._on_change = on_change
        self._source = HostsSource(keeper.registry)
        self._mark: Mark = ()
        """The state of the file that was read."""

    async def load(self) -> None:
        """Read the flags and the file. Raises StartError."""
        for claim in self._settings.hosts:
            self._keeper.registry.replace("flag", claim.origin.name, [claim])
        if self._settings.hosts_file:
            found, self._mark = await read_hosts_file(self._settings.hosts_file)
            await self._apply(found)

    async def follow(self, reloads: Reloads | None) -> None:
        """Read the file again when it changes, until cancelled; returns at once without a file."""
        if self._settings.hosts_file:
            await follow_hosts_file(self._settings.hosts_file, seen=self._mark, tell=self._apply, reloads=reloads)

    async def _apply(self, found: HostsFile) -> None:
        await in_slices(self._source.replace(found))
        self._keeper.wake()
        await self._on_change()

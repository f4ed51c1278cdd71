"""A hosts file as a target: the names of the table in a block of ours.

The law: the file is looked at each time, so a block that somebody took out comes back, and nothing is written that is
there already. A file that is not as we left it in a way that we do not understand is told of and left alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog
import trio

from dnsproxy.admin.publication import Publication
from dnsproxy.publish.following import Troubled
from dnsproxy.publish.hosts import file as hosts_file
from dnsproxy.publish.hosts.block import Change, HostsFileError, find_block, foreign_text, plan_block
from dnsproxy.publish.hosts.file import Applied, FileTrouble, Replaced, State
from dnsproxy.publish.hosts.lines import HostsLines, count_names, make_lines, without_taken
from dnsproxy.publish.publisher_status import PublishStatus
from dnsproxy.publish.selection import is_doubtful
from sidecar.errors import ExitStatus, StartError

NAME: Final = "hosts"
"""What a hosts file is called; another name is likelier a mistake than a hosts file."""
WILDCARD: Final = "wildcard"
TAKEN: Final = "taken"
"""Lines of others have the name."""

_SHOWN: Final = 5


class _Doubtful(Exception):
    pass


class HostsTarget:
    """One file."""

    def __init__(self, path: Path, *, zones: Sequence[str] = (), status: PublishStatus) -> None:
        self._path = path
        self._zones = zones
        self._status = status
        self._done: tuple[Publication, State] | None = None
        self._told = HostsLines(())
        self._log = structlog.get_logger("dnsproxy.publish")

    async def publish(self, publication: Publication, *, confirmed: bool) -> str:
        """See Target. Raises StartError where the file is no longer the node's, so that a new container is made."""
        state = await trio.to_thread.run_sync(hosts_file.state_of, self._path)
        if self._done == (publication, state) and not state.replaced:
            return ""
        wanted = make_lines(publication.names, zones=self._zones)
        try:
            made, applied = await trio.to_thread.run_sync(self._apply, wanted, confirmed)
        except _Doubtful as doubt:
            return str(doubt)
        self._note(made, applied)
        self._done = publication, applied.state
        return ""

    async def remove(self) -> bool:
        """Take the block out; whether there was one. Raises Troubled."""
        _, applied = await trio.to_thread.run_sync(self._apply, HostsLines(()), True)
        return applied.old != applied.new

    async def plan(self, publication: Publication | None) -> Change:
        """What would be written now; None: without the block. Raises Troubled."""
        wanted = make_lines(publication.names, zones=self._zones) if publication else HostsLines(())
        return await trio.to_thread.run_sync(self._plan, wanted)

    def _plan(self, wanted: HostsLines) -> Change:
        try:
            text = hosts_file.read(self._path)
            return plan_block(text, without_taken(wanted, foreign_text(text)).lines)
        except (FileTrouble, HostsFileError) as error:
            raise self._troubled(error) from None

    def _apply(self, wanted: HostsLines, confirmed: bool) -> tuple[HostsLines, Applied]:
        made = wanted

        def plan(text: bytes) -> Change:
            nonlocal made
            made = without_taken(wanted, foreign_text(text))
            block = find_block(text)
            before = count_names(block.lines) if block else 0
            if not confirmed and is_doubtful(before=before, after=made.names):
                raise _Doubtful(f"the table has {made.names} names of {before}; a second look decides")
            return plan_block(text, made.lines)

        try:
            applied = hosts_file.apply(self._path, plan)
        except Replaced as error:
            raise StartError(str(error), status=ExitStatus.NO) from None
        except (FileTrouble, HostsFileError) as error:
            raise self._troubled(error) from None
        return made, applied

    def _troubled(self, error: FileTrouble | HostsFileError) -> Troubled:
        return Troubled(f"{self._path}: {error}" if isinstance(error, HostsFileError) else str(error))

    def _note(self, made: HostsLines, applied: Applied) -> None:
        self._status.names = made.names
        self._status.left_out = {WILDCARD: len(made.wildcards), TAKEN: len(made.taken)}
        if applied.old != applied.new:
            self._status.writes["done"] += 1
            self._log.info("hosts file written", path=str(self._path), names=made.names)
        if made.wildcards != self._told.wildcards:
            self._tell("a hosts file cannot have wildcards; these names are left out", made.wildcards)
        if made.taken != self._told.taken:
            self._tell("the file has lines of others for these names, which stay as they are", made.taken)
        self._told = HostsLines((), made.wildcards, made.taken)

    def _tell(self, what: str, names: Sequence[str]) -> None:
        if names:
            self._log.warning(what, count=len(names), names=", ".join(names[:_SHOWN]))


def check_name(path: Path) -> str:
    """Why a path is not taken for a hosts file, or an empty text."""
    for one in (path, Path(os.path.realpath(path))):
        if one.name != NAME:
            return f"{one} is not called `{NAME}`; --force takes it all the same"
    return ""

"""A hosts file as a target: the names of the table in our block.

The law: the file is checked at every read of the table, so a removed block comes back, and an unchanged file is not
written. A file whose markers were edited is reported and left unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog
import trio

from dnsproxy.admin.publication import Publication
from dnsproxy.publish.following import PublishError
from dnsproxy.publish.hosts import file as hosts_file
from dnsproxy.publish.hosts.block import Change, HostsFileError, find_block, foreign_text, plan_block
from dnsproxy.publish.hosts.file import Applied, FileError, FileReplaced, FileState
from dnsproxy.publish.hosts.lines import HostsLines, count_names, make_lines, without_taken
from dnsproxy.publish.publisher_status import DONE, PublishStatus
from dnsproxy.publish.selection import describe_loss, is_sudden_loss
from sidecar.values.diffs import format_diff
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import escape_controls

NAME: Final = "hosts"
"""The name of a hosts file; another name is more likely a mistake than a hosts file."""
WILDCARD: Final = "wildcard"
TAKEN: Final = "taken"
"""The name has a line outside our block."""

_SHOWN: Final = 5


class _SuddenLoss(Exception):
    pass


class HostsTarget:
    """One file."""

    def __init__(self, path: Path, *, zones: Sequence[str] = (), status: PublishStatus) -> None:
        self._path = path
        self._zones = zones
        self._status = status
        self._done: tuple[Publication, FileState] | None = None
        self._logged = HostsLines(())
        self._log = structlog.get_logger("dnsproxy.publish")

    async def publish(self, publication: Publication, *, confirmed: bool) -> str:
        """See Target. Raises StartError if the node replaced the mounted file, so that a new container is started."""
        state = await trio.to_thread.run_sync(hosts_file.state_of, self._path)
        if self._done == (publication, state) and not state.replaced:
            return ""
        wanted = make_lines(publication.names, zones=self._zones)
        try:
            made, applied = await trio.to_thread.run_sync(self._apply, wanted, confirmed)
        except _SuddenLoss as loss:
            return str(loss)
        self._note(made, applied)
        self._done = publication, applied.state
        return ""

    async def remove(self) -> bool:
        """Remove the block; whether there was one. Raises PublishError."""
        _, applied = await trio.to_thread.run_sync(self._apply, HostsLines(()), True)
        return applied.old != applied.new

    async def preview(self, publication: Publication | None) -> str:
        """The diff of the file, escaped; None: to the file without the block. Raises PublishError."""
        wanted = make_lines(publication.names, zones=self._zones) if publication else HostsLines(())
        change = await trio.to_thread.run_sync(self._plan, wanted)
        return escape_controls(format_diff(change.old, change.new, str(self._path).lstrip("/")), keep="\n\t")

    def _plan(self, wanted: HostsLines) -> Change:
        try:
            text = hosts_file.read(self._path)
            return plan_block(text, without_taken(wanted, foreign_text(text)).lines)
        except (FileError, HostsFileError) as error:
            raise self._publish_error(error) from None

    def _apply(self, wanted: HostsLines, confirmed: bool) -> tuple[HostsLines, Applied]:
        made = wanted

        def plan(text: bytes) -> Change:
            nonlocal made
            made = without_taken(wanted, foreign_text(text))
            block = find_block(text)
            before = count_names(block.lines) if block else 0
            if not confirmed and is_sudden_loss(before=before, after=made.names):
                raise _SuddenLoss(describe_loss(before=before, after=made.names))
            return plan_block(text, made.lines)

        try:
            applied = hosts_file.apply(self._path, plan)
        except FileReplaced as error:
            raise StartError(str(error), status=ExitStatus.NO) from None
        except (FileError, HostsFileError) as error:
            raise self._publish_error(error) from None
        return made, applied

    def _publish_error(self, error: FileError | HostsFileError) -> PublishError:
        return PublishError(f"{self._path}: {error}" if isinstance(error, HostsFileError) else str(error))

    def _note(self, made: HostsLines, applied: Applied) -> None:
        self._status.names = made.names
        self._status.excluded = {WILDCARD: len(made.wildcards), TAKEN: len(made.taken)}
        if applied.old != applied.new:
            self._status.writes[DONE] += 1
            self._log.info("hosts file written", path=str(self._path), names=made.names)
        if made.wildcards != self._logged.wildcards:
            self._warn("a hosts file cannot have wildcards; these names are excluded", made.wildcards)
        if made.taken != self._logged.taken:
            self._warn("the file already has lines for these names, which stay as they are", made.taken)
        self._logged = HostsLines((), made.wildcards, made.taken)

    def _warn(self, message: str, names: Sequence[str]) -> None:
        if names:
            self._log.warning(message, count=len(names), names=", ".join(names[:_SHOWN]))


def check_name(path: Path) -> str:
    """Why a path is refused as a hosts file, or an empty text."""
    for one in (path, Path(os.path.realpath(path))):
        if one.name != NAME:
            return f"{one} is not called `{NAME}`; --force accepts it"
    return ""

"""A hosts file as a target: the names of the table in our block.

The law: the file is checked at every read of the table, so a removed block comes back, and an unchanged file is not
written. A file whose markers were edited is reported and left unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import structlog
import trio

from dnsproxy.admin.publication import Publication
from dnsproxy.publish.following import PublishError
from dnsproxy.publish.hosts import file as hosts_file
from dnsproxy.publish.hosts.block import Change, HostsFileError, find_block, foreign_text, plan_block
from dnsproxy.publish.hosts.file import Applied, FileError, FileReplaced, FileState
from dnsproxy.publish.hosts.lines import HostsLines, InFile, Why, make_lines, names_in_block, names_outside
from dnsproxy.publish.hosts.rules import Rules
from dnsproxy.publish.publisher_status import DONE, PublishStatus
from dnsproxy.publish.selection import describe_loss, is_sudden_loss
from sidecar.values.diffs import format_diff
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import escape_controls

NAME: Final = "hosts"
"""The name of a hosts file; another name is more likely a mistake than a hosts file."""

_REASONS: Final[Mapping[Why, str]] = {
    Why.WILDCARD: "a hosts file cannot have wildcards; these names are excluded",
    Why.PROTECTED: "nodes need these names for themselves, or --deny has them; --allow NAME takes one",
    Why.ADDRESS: "addresses of the host itself, of one link, of a group or of a metadata service are excluded",
    Why.TAKEN: "the file already has lines for these names, which stay as they are",
    Why.LIMIT: "more names than --max-names; these are excluded",
}
_SHOWN: Final = 5


class _SuddenLoss(Exception):
    pass


class HostsTarget:
    """One file."""

    def __init__(self, path: Path, *, rules: Rules, status: PublishStatus) -> None:
        self._path = path
        self._rules = rules
        self._status = status
        self._done: tuple[Publication, FileState] | None = None
        self._logged: Mapping[Why, tuple[str, ...]] = {}
        self._log = structlog.get_logger("dnsproxy.publish")

    async def publish(self, publication: Publication, *, confirmed: bool) -> str:
        """See Target. Raises StartError if the node replaced the mounted file, so that a new container is started."""
        state = await trio.to_thread.run_sync(hosts_file.state_of, self._path)
        if self._done == (publication, state) and not state.replaced:
            return ""
        try:
            made, applied = await trio.to_thread.run_sync(self._apply, publication, confirmed)
        except _SuddenLoss as loss:
            return str(loss)
        self._note(made, applied)
        self._done = publication, applied.state
        return ""

    async def remove(self) -> bool:
        """Remove the block; whether there was one. Raises PublishError."""
        _, applied = await trio.to_thread.run_sync(self._apply, None, True)
        return applied.old != applied.new

    async def preview(self, publication: Publication | None) -> str:
        """The diff of the file, escaped; None: to the file without the block. Raises PublishError."""
        change = await trio.to_thread.run_sync(self._plan, publication)
        return escape_controls(format_diff(change.old, change.new, str(self._path).lstrip("/")), keep="\n\t")

    def _plan(self, publication: Publication | None) -> Change:
        try:
            text = hosts_file.read(self._path)
            return plan_block(text, self._make(publication, text).lines)
        except (FileError, HostsFileError) as error:
            raise self._publish_error(error) from None

    def _make(self, publication: Publication | None, text: bytes) -> HostsLines:
        """Seconds for 500,000 names, so in a thread."""
        if publication is None:
            return HostsLines()
        there = InFile(names_outside(foreign_text(text)), _published(text))
        return make_lines(publication.names, rules=self._rules, there=there)

    def _apply(self, publication: Publication | None, confirmed: bool) -> tuple[HostsLines, Applied]:
        made = HostsLines()

        def plan(text: bytes) -> Change:
            nonlocal made
            made = self._make(publication, text)
            before = len(_published(text))
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
        self._status.excluded = {why.value: len(made.excluded[why]) for why in Why}
        if applied.old != applied.new:
            self._status.writes[DONE] += 1
            self._log.info("hosts file written", path=str(self._path), names=made.names)
        for why, names in made.excluded.items():
            if names and names != self._logged.get(why):
                self._log.warning(_REASONS[why], count=len(names), names=", ".join(names[:_SHOWN]))
        self._logged = made.excluded


def _published(text: bytes) -> frozenset[str]:
    block = find_block(text)
    return names_in_block(block.lines) if block else frozenset()


def check_name(path: Path) -> str:
    """Why a path is refused as a hosts file, or an empty text."""
    for one in (path, Path(os.path.realpath(path))):
        if one.name != NAME:
            return f"{one} is not called `{NAME}`; --force accepts it"
    return ""

"""Objects for external-dns as a target: one for each hostname of the table.

The law: nothing is deleted because the table is empty, unless that was allowed; a list of the objects is read when the
table has changed and every few minutes, and never more often. What stands in the way of one hostname is told once and
keeps no other from being published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog
import trio

from dnsproxy.admin.publication import Publication
from dnsproxy.publish.externaldns.health import OLD_ENOUGH, unobserved
from dnsproxy.publish.externaldns.manifests import Kind, Style, make_manifest
from dnsproxy.publish.externaldns.objects import Objects, Outcome
from dnsproxy.publish.externaldns.planning import Changes, Stored, is_owned, plan
from dnsproxy.publish.externaldns.records import make_records
from dnsproxy.publish.following import Troubled
from dnsproxy.publish.hosts.lines import select_names
from dnsproxy.publish.publisher_status import PublishStatus
from dnsproxy.publish.selection import is_doubtful
from sidecar.errors import ExitStatus
from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import ObjectMeta

TRIES: Final = 5
RESYNC: Final = 300.0
"""Seconds after which the objects are read again though the table is the same: somebody may have changed them."""

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Seen:
    """The objects as they are, and what would make them as they should be."""

    current: list[Stored | ObjectMeta]
    changes: Changes
    owned: int
    wanted: int


class ExternalDnsTarget:
    """The objects of one publisher."""

    def __init__(
        self,
        client: ApiClient,
        style: Style,
        *,
        zones: Sequence[str] = (),
        allow_empty: bool = False,
        status: PublishStatus,
    ) -> None:
        self._objects = Objects(client, style.kind, style.namespace)
        self._others = Objects(client, style.kind.other, style.namespace)
        self._style = style
        self._zones = zones
        self._allow_empty = allow_empty
        self._status = status
        self._done: Publication | None = None
        self._due = 0.0
        self._rests_since = 0.0
        self._told: tuple[str, ...] = ()
        self._orphans_told = False
        self._log = structlog.get_logger("dnsproxy.publish")

    async def publish(self, publication: Publication, *, confirmed: bool) -> str:
        """See Target."""
        if self._done == publication and trio.current_time() < self._due:
            return ""
        try:
            if not self._orphans_told:
                self._orphans_told = True
                await self._tell_orphans()
            return await self._publish(publication, confirmed)
        except ApiError as error:
            raise self._troubled(error) from None

    async def look(self, publication: Publication | None) -> Seen:
        """What is there and what would be done; None: to take all out. Raises Troubled."""
        try:
            return await self._look(publication)
        except ApiError as error:
            raise self._troubled(error) from None

    async def remove(self) -> bool:
        """Delete what is ours, of either kind; whether there was anything. Raises Troubled."""
        removed = await self._remove(self._objects)
        try:
            return await self._remove(self._others) or removed
        except Troubled:
            # Of the kind that was never used, its definition or the right to list it may be missing.
            return removed

    async def _publish(self, publication: Publication, confirmed: bool) -> str:
        for _ in range(TRIES):
            seen = await self._look(publication)
            if held_back := self._held_back(seen, confirmed):
                return held_back
            outcomes = await self._objects.carry_out(seen.changes)
            self._count(seen, [outcome for outcome, _ in outcomes.values()])
            if not any(outcome is Outcome.CHANGED_MEANWHILE for outcome, _ in outcomes.values()):
                refused = {name: said for name, (outcome, said) in outcomes.items() if outcome is Outcome.REFUSED}
                self._note(publication, seen, refused)
                return ""
        raise Troubled(f"{self._where} are changed by somebody else each time before they can be written")

    def _held_back(self, seen: Seen, confirmed: bool) -> str:
        if not seen.wanted and seen.owned and not self._allow_empty:
            return f"the table is empty; --allow-empty would delete {seen.owned} objects, without it they stay"
        if not confirmed and is_doubtful(before=seen.owned, after=seen.wanted):
            return f"the table has {seen.wanted} names, and {seen.owned} are published; a second look decides"
        return ""

    async def _look(self, publication: Publication | None) -> Seen:
        current = await self._objects.list()
        names = select_names(publication.names, zones=self._zones) if publication else []
        desired = [make_manifest(record, self._style) for record in make_records(names)]
        owner = self._style.owner
        owned = sum(isinstance(one, Stored) and is_owned(one, owner) for one in current)
        return Seen(current, plan(current, desired, owner=owner), owned, len(desired))

    async def _remove(self, objects: Objects) -> bool:
        try:
            for _ in range(TRIES):
                ours = [one for one in await objects.list(selector=self._style.selector) if isinstance(one, Stored)]
                outcomes = await objects.carry_out(Changes(delete=tuple(ours)))
                if all(outcome is Outcome.DONE for outcome, _ in outcomes.values()):
                    return bool(ours)
        except ApiError as error:
            raise self._troubled(error) from None
        raise Troubled(f"{self._where} are changed by somebody else each time before they can be deleted")

    async def _tell_orphans(self) -> None:
        other = self._style.kind.other
        try:
            left = await self._others.list(selector=self._style.selector)
        except (Forbidden, NotFound):
            return
        if left:
            command = f"kubectl -n {self._style.namespace} delete {other.plural} -l {self._style.selector}"
            self._log.warning(
                "objects of the other output are still there", kind=other.shown, count=len(left), do=command
            )

    def _note(self, publication: Publication, seen: Seen, refused: dict[str, str]) -> None:
        self._done, self._due = publication, trio.current_time() + RESYNC
        status, changes = self._status, seen.changes
        status.names = status.objects = seen.wanted - len(changes.conflicts) - len(refused)
        status.conflicts = len(changes.conflicts)
        status.left_out = {"conflict": len(changes.conflicts), "refused": len(refused)}
        notes = [f"{one.manifest.record.hostname} is not published: {one.reason}" for one in changes.conflicts]
        notes += [f"{name} is not published: {said}" for name, said in sorted(refused.items())]
        notes += self._behind(seen)
        if tuple(notes) != self._told:
            for note in notes[:_SHOWN]:
                self._log.warning("not as it should be", what=note, of=len(notes))
        status.notes = self._told = tuple(notes)

    def _behind(self, seen: Seen) -> list[str]:
        if seen.changes.any:
            self._rests_since = trio.current_time()
        resting = trio.current_time() - self._rests_since
        if self._style.kind is Kind.SERVICE or resting < OLD_ENOUGH:
            return []
        ours = [one for one in seen.current if isinstance(one, Stored) and is_owned(one, self._style.owner)]
        behind = unobserved(ours, now=datetime.now(UTC))
        if not behind:
            return []
        shown = ", ".join(behind[:_SHOWN])
        return [f"external-dns has not seen {len(behind)} objects ({shown}): does it run, with --source=crd?"]

    def _count(self, seen: Seen, outcomes: list[Outcome]) -> None:
        done = sum(outcome is Outcome.DONE for outcome in outcomes)
        self._status.writes["done"] += done
        self._status.writes["failed"] += len(outcomes) - done
        if done:
            changes = seen.changes
            self._log.info(
                "published", create=len(changes.create), update=len(changes.update), delete=len(changes.delete)
            )

    @property
    def _where(self) -> str:
        return f"{self._style.kind.shown}s in namespace {self._style.namespace}"

    def _troubled(self, error: ApiError) -> Troubled:
        hint = ""
        if isinstance(error, NotFound) and self._style.kind is Kind.DNS_ENDPOINT:
            hint = "; is the definition of DNSEndpoint installed? --output service does without"
        return Troubled(f"{self._where}: {error}{hint}", status=ExitStatus.UNKNOWN)

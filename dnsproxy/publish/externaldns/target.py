"""Objects for external-dns as a target: one object for each hostname of the table.

The law: an empty table deletes nothing without --allow-empty, and no object of another publisher is deleted without
--take-over, although it has the same --instance. The objects are listed when the table has changed and
every few minutes, never more often. A problem with one hostname is logged once, and the other hostnames are published.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog
import trio

from dnsproxy.admin.publication import Publication
from dnsproxy.dns.names import is_within_any
from dnsproxy.publish.externaldns.manifests import (
    PUBLISHER,
    Kind,
    Style,
    format_record,
    hostname_of,
    make_manifest,
    make_records,
)
from dnsproxy.publish.externaldns.objects import Objects, Outcome
from dnsproxy.publish.externaldns.planning import OBSERVED_AFTER, Changes, Stored, is_owned, plan, unobserved
from dnsproxy.publish.following import PublishError
from dnsproxy.publish.guarded_writes import ATTEMPTS
from dnsproxy.publish.publisher_status import CONFLICT, DONE, FAILED, REFUSED, PublishStatus
from dnsproxy.publish.selection import describe_loss, is_sudden_loss, select_names
from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import ObjectMeta
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import escape_controls

RESYNC: Final = 300.0
"""Seconds until the objects are read again although the table is the same: another writer may have changed them."""

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Comparison:
    """The stored objects, and the changes that make them equal to the desired ones."""

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
        take_over: bool = False,
        status: PublishStatus,
    ) -> None:
        self._objects = Objects(client, style.kind, style.namespace)
        self._others = Objects(client, style.kind.other, style.namespace)
        self._style = style
        self._zones = zones
        self._allow_empty = allow_empty
        self._take_over = take_over
        self._status = status
        self._done: Publication | None = None
        self._due = 0.0
        self._last_change = 0.0
        self._logged: tuple[str, ...] = ()
        self._orphans_logged = False
        self._was_empty = False
        self._log = structlog.get_logger("dnsproxy.publish")

    async def publish(self, publication: Publication, *, confirmed: bool) -> str:
        """See Target."""
        if self._done == publication and trio.current_time() < self._due:
            return ""
        try:
            if not self._orphans_logged:
                self._orphans_logged = True
                await self._log_orphans()
            return await self._publish(publication, confirmed)
        except ApiError as error:
            raise self._publish_error(error) from None

    async def preview(self, publication: Publication | None) -> str:
        """A line for each change, escaped; None: of a removal. Raises PublishError."""
        try:
            compared = await self._compare(publication)
        except ApiError as error:
            raise self._publish_error(error) from None
        return "".join(f"{escape_controls(line)}\n" for line in format_changes(compared.changes))

    async def remove(self) -> bool:
        """Delete our objects of both kinds; whether there were any. Raises PublishError."""
        removed = await self._remove(self._objects)
        try:
            return await self._remove(self._others) or removed
        except PublishError:
            # For a kind that was never used, its definition or the right to list it may be missing.
            return removed

    async def _publish(self, publication: Publication, confirmed: bool) -> str:
        for _ in range(ATTEMPTS):
            compared = await self._compare(publication)
            if held_back := self._held_back(compared, confirmed):
                return held_back
            outcomes = await self._objects.carry_out(compared.changes)
            self._count(compared, [outcome for outcome, _ in outcomes.values()])
            if not any(outcome is Outcome.CHANGED_MEANWHILE for outcome, _ in outcomes.values()):
                refused = {name: message for name, (outcome, message) in outcomes.items() if outcome is Outcome.REFUSED}
                self._note(publication, compared, refused)
                return ""
        raise PublishError(f"another writer changes {self._where} each time before they can be written")

    def _held_back(self, compared: Comparison, confirmed: bool) -> str:
        if not compared.wanted and compared.owned and not self._allow_empty:
            return f"the table is empty; --allow-empty would delete {compared.owned} objects, without it they stay"
        # With --allow-empty, a second read confirms an empty table also where --once needs a flag for other losses.
        confirmed, self._was_empty = confirmed or (self._was_empty and not compared.wanted), not compared.wanted
        if not confirmed and is_sudden_loss(before=compared.owned, after=compared.wanted):
            return describe_loss(before=compared.owned, after=compared.wanted)
        return ""

    async def _compare(self, publication: Publication | None) -> Comparison:
        current = await self._objects.list()
        names = select_names(publication.names, zones=self._zones) if publication else []
        desired = [make_manifest(record, self._style) for record in make_records(names)]
        changes = plan(current, desired, owner=self._style.owner, why_left=self._why_left)
        return Comparison(current, changes, len(self._ours(current)), len(desired))

    def _ours(self, current: list[Stored | ObjectMeta]) -> list[Stored]:
        owner = self._style.owner
        return [one for one in current if isinstance(one, Stored) and is_owned(one, owner) and not self._why_left(one)]

    def _why_left(self, one: Stored) -> str:
        """Why an object with our labels is another publisher's; empty if it is ours."""
        if self._take_over:
            return ""
        annotations, prefixes = one.metadata.annotations or {}, self._style.annotation_prefixes
        other = annotations.get(PUBLISHER, self._style.publisher)
        if other != self._style.publisher:
            return f"a publisher of {other} with the same --instance wrote it"
        hostname = hostname_of(one.spec, annotations, prefixes=prefixes).removeprefix("*.")
        if self._zones and hostname and not is_within_any(hostname, self._zones):
            return "a publisher with the same --instance wrote it for another --zone"
        return ""

    async def _remove(self, objects: Objects) -> bool:
        try:
            for _ in range(ATTEMPTS):
                ours = self._ours(await objects.list(selector=self._style.selector))
                outcomes = await objects.carry_out(Changes(delete=tuple(ours)))
                if all(outcome is Outcome.DONE for outcome, _ in outcomes.values()):
                    return bool(ours)
        except ApiError as error:
            raise self._publish_error(error) from None
        raise PublishError(f"another writer changes {self._where} each time before they can be deleted")

    async def _log_orphans(self) -> None:
        other = self._style.kind.other
        try:
            left = await self._others.list(selector=self._style.selector)
        except (Forbidden, NotFound):
            return
        if left:
            command = f"kubectl -n {self._style.namespace} delete {other.plural} -l {self._style.selector}"
            self._log.warning(
                "objects of the other --output still exist", kind=other.shown, count=len(left), do=command
            )

    def _note(self, publication: Publication, compared: Comparison, refused: dict[str, str]) -> None:
        self._done, self._due = publication, trio.current_time() + RESYNC
        status, changes = self._status, compared.changes
        status.names = status.objects = compared.wanted - len(changes.conflicts) - len(refused)
        status.conflicts = len(changes.conflicts)
        status.excluded = {CONFLICT: len(changes.conflicts), REFUSED: len(refused)}
        notes = [f"{one.manifest.record.hostname} is not published: {one.reason}" for one in changes.conflicts]
        notes += [f"{name} is not published: {message}" for name, message in sorted(refused.items())]
        notes += self._left(changes)
        notes += self._behind(compared)
        if tuple(notes) != self._logged:
            for note in notes[:_SHOWN]:
                self._log.warning("publishing is incomplete", what=note, of=len(notes))
        status.notes = self._logged = tuple(notes)

    def _left(self, changes: Changes) -> list[str]:
        if not changes.left:
            return []
        first, reason = changes.left[0]
        remedy = "give each publisher an --instance of its own, or take the objects over with --take-over"
        return [f"{len(changes.left)} objects stay as they are, such as {first.metadata.name}: {reason}; {remedy}"]

    def _behind(self, compared: Comparison) -> list[str]:
        if compared.changes.any:
            self._last_change = trio.current_time()
        if self._style.kind is Kind.SERVICE or trio.current_time() - self._last_change < OBSERVED_AFTER:
            return []
        behind = unobserved(self._ours(compared.current), now=datetime.now(UTC))
        if not behind:
            return []
        shown = ", ".join(behind[:_SHOWN])
        return [f"external-dns has not read {len(behind)} objects ({shown}): does it run, with --source=crd?"]

    def _count(self, compared: Comparison, outcomes: list[Outcome]) -> None:
        done = sum(outcome is Outcome.DONE for outcome in outcomes)
        self._status.writes[DONE] += done
        self._status.writes[FAILED] += len(outcomes) - done
        if done:
            changes = compared.changes
            self._log.info(
                "published", create=len(changes.create), update=len(changes.update), delete=len(changes.delete)
            )

    @property
    def _where(self) -> str:
        return f"{self._style.kind.shown}s in namespace {self._style.namespace}"

    def _publish_error(self, error: ApiError) -> PublishError:
        hint = ""
        if isinstance(error, NotFound) and self._style.kind is Kind.DNS_ENDPOINT:
            hint = "; is the definition of DNSEndpoint installed? --output service does not need it"
        return PublishError(f"{self._where}: {error}{hint}", status=ExitStatus.UNKNOWN)


def format_changes(changes: Changes) -> Iterator[str]:
    """A line for each change, and for each record that is not published."""
    for one in changes.create:
        yield f"create {one.name}: {format_record(one.record)}"
    for one, _ in changes.update:
        yield f"update {one.name}: {format_record(one.record)}"
    for stored in changes.delete:
        yield f"delete {stored.metadata.name}"
    for stored, reason in changes.left:
        yield f"leave {stored.metadata.name}: {reason}"
    for conflict in changes.conflicts:
        yield f"leave {conflict.manifest.name}: {conflict.reason}"

"""The registry of a replica: the judgements of its primary, in place of claims that are judged here.

The law: one version at a time goes into the table, whole, and rows that did not change are not touched. What pages and
explanations read is the primary's verdict.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import trio

from dnsproxy.answers.answer_records import Claimed
from dnsproxy.answers.table import Host
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.registry import Judgement, Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import Verdict
from dnsproxy.hostnames.wildcards import reaches
from dnsproxy.replace.balancers import NO_BALANCERS, Balancers
from dnsproxy.replica.settings import SOURCE
from dnsproxy.zone.control import Control, parse_control
from dnsproxy.zone.reading import Changes, Transfer, TransferRefused, apply_changes, records_of, row_of, text_of
from dnsproxy.zone.rows import parse_row
from dnsproxy.zone.table_zone import APEX, owner_of

_NOTHING: Final = Verdict(None, (), ())


class NamedRow(NamedTuple):
    """A row of the table zone, and whose it is."""

    hostname: str
    """Empty for the control record."""
    row: bytes | None
    """None: gone."""


class Version(NamedTuple):
    """What a transfer makes of the rows; made whole before any of it counts."""

    serial: int
    control: Control
    rows: Mapping[bytes, NamedRow]
    """The rows that changed, by owner."""


class ReplicaRegistry(Registry):
    """Rows by owner in the table zone `zone`, and the versions that come."""

    def __init__(self, zone: bytes) -> None:
        super().__init__(targets=Targets(), guards=Guards())
        self.serial: int | None = None
        """Of the version in the table."""
        self.versions = 0
        """How many versions were begun to be taken into the table."""
        self._zone = zone
        self._control: Control | None = None
        self._rows: dict[bytes, bytes] = {}
        self._staged: Version | None = None
        self._taking: Version | None = None
        self._taken = trio.Event()
        self._retouched: list[Iterable[str]] = []

    @property
    def ttl(self) -> int | None:
        """See Registry."""
        return self._control.ttl if self._control is not None else None

    @property
    def balancers(self) -> Balancers:
        """See Registry: as the primary has them."""
        return (self._control.balancers if self._control is not None else None) or NO_BALANCERS

    def prepare(self, transfer: Transfer) -> Generator[None, None, Version]:
        """The version of a transfer, in steps. Raises TransferRefused, and has then changed nothing."""
        rows: dict[bytes, NamedRow] = {}
        for owner, changes in transfer.owners.items():
            row = self._changed_row(owner, changes, whole=transfer.whole)
            if row != self._rows.get(owner):
                rows[owner] = NamedRow(self._owner_name(owner, row), row)
            yield
        if transfer.whole:
            for owner in tuple(self._rows):
                if owner not in transfer.owners:
                    rows[owner] = NamedRow(self._owner_name(owner, None), None)
                yield
        control = rows[APEX].row if APEX in rows else self._rows.get(APEX)
        if control is None:
            raise TransferRefused("it has no control record: it is no table of Switchback")
        return Version(transfer.serial, _control_of(control), rows)

    def stage(self, version: Version) -> trio.Event:
        """Hand a version to the next swap; the event is set when it is taken into the table."""
        self._staged, self._taken = version, trio.Event()
        return self._taken

    def texts(self) -> Iterator[bytes]:
        """The texts of the control record and of all rows, to save them."""
        for owner in (APEX, *(one for one in tuple(self._rows) if one != APEX)):
            row = self._rows.get(owner)
            if row is not None:
                yield _text(owner, row)

    def begin(self) -> None:
        """See Registry: the guards, the targets and the rows of the staged version count from now on."""
        if self._staged is None:
            return
        self._taking, self._staged = self._staged, None
        self.versions += 1
        self._control = self._taking.control
        self._targets, self._guards = self._control.targets, self._control.named_guards

    def judgements(self, now: float = 0.0) -> Iterator[Judgement]:
        """See Registry."""
        del now
        taking, self._taking = self._taking, None
        seen: set[bytes] = set()
        if taking is not None:
            for owner, (hostname, row) in taking.rows.items():
                seen.add(owner)
                yield from self._take(owner, hostname, row)
            self.serial = taking.serial
            self._taken.set()
        while self._retouched:
            for hostname in self._retouched.pop():
                owner = owner_of(hostname, self._zone)
                if owner not in seen:
                    yield from self._judgements_at(hostname, owner)

    def touch(self, hostnames: Iterable[str]) -> None:
        """See Registry."""
        self._retouched.append(hostnames)

    def set_guarded(self, *, search: tuple[str, ...], cluster_domains: tuple[str, ...]) -> bool:
        """See Registry: the guards are the primary's."""
        del search, cluster_domains
        return False

    def every_name(self) -> Iterable[str]:
        """See Registry."""
        return self._names_of(tuple(self._rows))

    def verdict(self, hostname: str, reach: Reach) -> Verdict:
        """See Registry."""
        for judgement in self._judged(owner_of(hostname, self._zone)):
            if judgement.host.reach is reach:
                return judgement.verdict
        return _NOTHING

    def claimed(self, claim: Claim) -> Claimed:
        """See Registry: as the primary has it."""
        judged = self._judged(owner_of(claim.hostname, self._zone))
        return next((one.host.claimed for one in judged if one.host.reach is claim.reach), Claimed.NO)

    def is_barred(self, hostname: str) -> bool:
        """See Registry."""
        return any(judgement.host.barred for judgement in self._judged(owner_of(hostname, self._zone)))

    def _names_of(self, owners: Iterable[bytes]) -> Iterator[str]:
        for owner in owners:
            row = self._rows.get(owner)
            if row is not None and owner != APEX:
                yield parse_row(_text(owner, row))[0]

    def _take(self, owner: bytes, hostname: str, row: bytes | None) -> Iterator[Judgement]:
        if row is None:
            self._rows.pop(owner, None)
        else:
            self._rows[owner] = row
        if owner != APEX:
            yield from self._judgements_at(hostname, owner)

    def _judgements_at(self, hostname: str, owner: bytes) -> Iterator[Judgement]:
        judged = {one.host.reach: one for one in self._judged(owner)}
        claims = [claim for one in judged.values() for claim in _claims_of(one.verdict)]
        self.store.replace(SOURCE, hostname, claims)
        for reach in reaches(hostname):
            found = judged.get(reach) or Judgement(Host(hostname, reach, ()), _NOTHING)
            self.outcomes.note((hostname, reach), found.verdict)
            yield found

    def _judged(self, owner: bytes) -> tuple[Judgement, ...]:
        row = self._rows.get(owner)
        return parse_row(_text(owner, row))[1] if row is not None else ()

    def _owner_name(self, owner: bytes, row: bytes | None) -> str:
        """The hostname of a row. Raises TransferRefused for what is no row, or another owner's."""
        text = _text(owner, row if row is not None else self._rows[owner])
        try:
            if owner == APEX:
                parse_control(text)
                return ""
            hostname, _ = parse_row(text)
        except ValueError as error:
            raise TransferRefused(f"a row is not readable: {error}") from None
        if owner_of(hostname, self._zone) != owner:
            raise TransferRefused(f"the row of {hostname} has another owner")
        return hostname

    def _changed_row(self, owner: bytes, changes: Changes, *, whole: bool) -> bytes | None:
        before = None if whole else self._rows.get(owner)
        records = records_of(owner, before) if before is not None else []
        # In one order, so that equal rows are equal octets, whatever the transfer's order was.
        return row_of(owner, sorted(apply_changes(records, changes)))


def _text(owner: bytes, row: bytes) -> bytes:
    """Raises TransferRefused."""
    return text_of(records_of(owner, row))


def _control_of(row: bytes) -> Control:
    """Raises TransferRefused."""
    try:
        return parse_control(_text(APEX, row))
    except ValueError as error:
        raise TransferRefused(str(error)) from None


def _claims_of(verdict: Verdict) -> Iterator[Claim]:
    seen: set[int] = set()
    for claim in (verdict.winner, verdict.unready, *(one.claim for one in verdict.excluded), *verdict.contenders):
        if claim is not None and id(claim) not in seen:
            seen.add(id(claim))
            yield claim

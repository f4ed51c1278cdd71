"""The two zones of a primary: built from what the keeper judged, version by version.

The law: pure; a version is made of the rows up to one published table, and of that table. Rows that are equal change
nothing: if all are, there is no new version. Work for many names is done in steps.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from dnsproxy.answers.table import Host, HostTable
from dnsproxy.dns import names
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.registry import Judgement
from dnsproxy.hostnames.verdict import Verdict
from dnsproxy.replace.balancers import Balancers
from dnsproxy.zone.address_rules import NO_RULES, make_address_rules
from dnsproxy.zone.content import ZoneContent
from dnsproxy.zone.control import Control, format_control
from dnsproxy.zone.policy import Inexpressible, PolicyView, Triggers, Wildcards, is_passed, is_trigger, policy_row
from dnsproxy.zone.rows import format_row
from dnsproxy.zone.table_zone import APEX, ROW_TTL, owner_of, table_zone, text_records
from dnsproxy.zone.zone_records import fits

_NO_TABLE: Final = HostTable()


@dataclass(slots=True)
class Batch:
    """What was judged since the last version, and the table that has it."""

    table: HostTable = _NO_TABLE
    control: Control | None = None
    rows: dict[bytes, bytes | None] = field(default_factory=dict)
    """The table zone's rows, by owner."""
    nodes: dict[bytes, None] = field(default_factory=dict)
    """The wire names whose policy changed."""
    wildcards: set[bytes] = field(default_factory=set)
    """The parents of wildcards that changed."""
    whole: bool = False
    """Whether rows that are not in it are gone."""
    serial: int | None = None
    """The serial of a version that came from a primary; None: the next one is to be chosen."""

    def merge(self, later: Batch) -> None:
        """Take in what was judged later."""
        if later.whole:
            self.rows.clear()
        self.rows.update(later.rows)
        self.nodes.update(later.nodes)
        self.wildcards |= later.wildcards
        self.whole = self.whole or later.whole
        self.table, self.control, self.serial = later.table, later.control, later.serial


class BatchWriter:
    """Collects judged hosts into batches."""

    def __init__(self, zone: bytes) -> None:
        self._table_zone = table_zone(zone)
        self._open = Batch()
        self._hostname = ""
        self._judged: list[Judgement] = []

    def judged(self, host: Host, verdict: Verdict) -> None:
        """Note a judged host; the reaches of one hostname come one after another."""
        if host.hostname != self._hostname:
            self._end_hostname()
            self._hostname = host.hostname
        self._judged.append(Judgement(host, verdict))
        wire = names.to_wire(host.hostname)
        self._open.nodes[wire] = None
        if host.reach is not Reach.NAME:
            self._open.wildcards.add(wire)

    def begin_whole(self) -> None:
        """What comes until the next seal is everything there is."""
        self._open = Batch(whole=True)
        self._hostname, self._judged = "", []

    def seal(self, table: HostTable, control: Control, *, serial: int | None = None) -> Batch:
        """End the batch with a table that has all that was judged."""
        self._end_hostname()
        batch, self._open = self._open, Batch()
        batch.table, batch.control, batch.serial = table, control, serial
        return batch

    def _end_hostname(self) -> None:
        if self._hostname:
            text = format_row(self._hostname, self._judged)
            owner = owner_of(self._hostname, self._table_zone)
            self._open.rows[owner] = None if text is None else text_records(owner, text, ttl=ROW_TTL)
        self._hostname, self._judged = "", []


class Zones:
    """The policy zone and the table zone, with one serial."""

    def __init__(
        self, name: bytes, *, wildcards: Wildcards = Wildcards.EXCLUDE, triggers: Triggers = Triggers.ADDRESSES
    ) -> None:
        self.name = name
        self.table_name = table_zone(name)
        self.policy = ZoneContent()
        self.table = ZoneContent()
        self.inexpressible = Inexpressible()
        self.ttl = 1
        self._view = PolicyView(_NO_TABLE, name, 1, wildcards, triggers)
        self._rules = NO_RULES
        self._ruled: tuple[Balancers, bool, int] | None = None
        """What the rules were made from."""
        self._bars: frozenset[bytes] = frozenset()
        self._too_long: set[bytes] = set()
        self._triggers: set[bytes] = set()
        self._passed: set[bytes] = set()
        self._retimed = False
        """Whether the TTL is another one than that of the last version."""

    @property
    def serial(self) -> int:
        """Of the last version; 0 before the first."""
        return self.table.serial

    @property
    def is_changed(self) -> bool:
        """Whether what was applied makes another version."""
        return self.policy.is_changed or self.table.is_changed or not self.serial

    def content_of(self, name: bytes) -> ZoneContent | None:
        """The content of the zone with this wire name."""
        return {self.name: self.policy, self.table_name: self.table}.get(name)

    def apply(self, batch: Batch) -> Generator[None, None, None]:
        """Change both contents to what a batch says, in steps; nothing may be read of them before commit()."""
        control = batch.control
        if control is None:
            return
        yield from self._apply_rows(batch, control)
        before, self.ttl = self._view, control.ttl
        self._retimed = self._retimed or control.ttl != before.ttl
        bars, above = frozenset(chain(batch.table.never, batch.table.closed)), before.above_bars
        if bars != self._bars:
            self._bars, above = bars, frozenset(name for bar in bars for name in names.ancestors(bar))
        self._make_rules(batch.table, control.ttl)
        self._view = replace(before, table=batch.table, ttl=control.ttl, above_bars=above, rules=self._rules.rows)
        yield
        for node in self._touched(batch, before):
            self._put_policy(node)
            yield
        self._note_left_out(batch)
        self.inexpressible = Inexpressible(
            one_label=sum(one.one_label is not None for one in batch.table.wildcards.values()),
            too_long=len(self._too_long),
            triggers=len(self._triggers),
            passed=len(self._passed),
            balancer_hostnames=self._rules.hostnames,
            balancer_addresses=self._rules.addresses,
        )
        # The table is not kept: the next one reuses its parts (table_writer.py). The rules are.
        kept = HostTable(closed=batch.table.closed, unready=batch.table.unready)
        self._view = replace(self._view, table=kept)

    def commit(self, serial: int) -> None:
        """Make what was applied the version with this serial."""
        self.policy.commit(serial)
        self.table.commit(serial)
        if self._retimed:
            # The records at the apex are in no row, and a difference has their new TTL only.
            self._retimed = False
            self.forget()

    def forget(self) -> None:
        """Empty the journals."""
        self.policy.forget()
        self.table.forget()

    def _apply_rows(self, batch: Batch, control: Control) -> Generator[None, None, None]:
        table = self.table
        if batch.whole:
            for owner in table.keys():  # noqa: SIM118  # no mapping
                if owner not in batch.rows:
                    table.put(owner, None)
                yield
        for owner, row in batch.rows.items():
            table.put(owner, row)
            yield
        table.put(APEX, text_records(APEX, format_control(control), ttl=ROW_TTL))

    def _make_rules(self, table: HostTable, ttl: int) -> None:
        made_from = table.leads.balancers, bool(table.conditional), ttl
        if self._view.triggers is Triggers.ADDRESSES and made_from != self._ruled:
            balancers, conditional, _ = self._ruled = made_from
            self._rules = make_address_rules(balancers, conditional=conditional, ttl=ttl)

    def _put_policy(self, node: bytes) -> None:
        row = policy_row(self._view, node)
        self.policy.put(node, row)
        if row is not None and not is_trigger(node) and is_passed(self._view, node):
            self._passed.add(node)
        else:
            self._passed.discard(node)

    def _note_left_out(self, batch: Batch) -> None:
        if batch.whole:
            self._too_long.clear()
            self._triggers.clear()
        for node in batch.nodes:
            self._too_long.discard(node)
            self._triggers.discard(node)
            if node not in batch.table.exact and node not in batch.table.wildcards:
                continue
            if is_trigger(node):
                self._triggers.add(node)
            elif not fits(node[:-1], self.name):
                self._too_long.add(node)

    def _touched(self, batch: Batch, before: PolicyView) -> Iterator[bytes]:
        """The nodes whose policy may have changed."""
        table, old = batch.table, before.table
        everything = (
            batch.whole
            or self._view.ttl != before.ttl
            or table.unready != old.unready
            or table.closed != old.closed
            or self._view.above_bars != before.above_bars
        )
        if everything:
            yield from self.policy.keys()
            yield from _nodes_of(table, self._bars, self._view.above_bars)
            yield from self._view.rules
            return
        if self._view.rules is not before.rules:
            yield from {**before.rules, **self._view.rules}
        seen: set[bytes] = set()
        for node in batch.nodes:
            for one in (node, *names.ancestors(node)):
                if one not in seen:
                    seen.add(one)
                    yield one
        if batch.wildcards:
            parents = tuple(batch.wildcards)
            for node in chain(self.policy.keys(), _nodes_of(table, self._bars, self._view.above_bars)):
                if node.endswith(parents):
                    yield node


def _nodes_of(table: HostTable, *more: Iterable[bytes]) -> Iterator[bytes]:
    yield from chain(table.exact, table.wildcards, table.above, *more)

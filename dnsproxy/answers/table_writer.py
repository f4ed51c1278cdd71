"""The table writer: collects hosts into the next table and publishes it.

The law: a published table never changes while there is a reference to it. Putting one name costs the same for every
size of the table, and so does publishing, as long as there is no reference to the table before the last (Rows).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Generic, TypeVar

from dnsproxy.answers.answer_records import Answers, Claimed, build_answers
from dnsproxy.answers.table import Host, HostTable, Wildcard
from dnsproxy.dns import names
from dnsproxy.dns.names import Reach
from dnsproxy.replace.balancers import Balancers, Leads

_NEITHER: Final = Wildcard(None, None)
_Key = tuple[tuple[str, ...], str, Claimed]
"""Addresses, their Service, and whether public DNS has a say."""
V = TypeVar("V")

_SHARE: Final = 8
"""If more than one row in this many has changed, a copy takes less time."""


class Rows(Generic[V]):
    """A dict that is handed out again and again, and changes in between. None is not a value.

    There are two dicts: one is handed out while the other changes. When the other one is handed out, the first gets the
    changes that it missed. If the first is still in use, a copy replaces it, which for 100,000 rows blocks the loop for
    some milliseconds.
    """

    __slots__ = ("_changed", "_last", "_rows")

    def __init__(self) -> None:
        self._rows: dict[bytes, V] = {}
        self._last: dict[bytes, V] = {}
        """The dict that was handed out before."""
        self._changed: dict[bytes, None] = {}
        """The keys in which the two dicts differ."""

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: bytes) -> V | None:
        """The value of a key."""
        return self._rows.get(key)

    def put(self, key: bytes, value: V | None) -> None:
        """Set the value of a key, or remove it. After hand_out(), go_on() must be called first."""
        self._changed[key] = None
        if value is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = value

    def hand_out(self) -> Mapping[bytes, V]:
        """All rows."""
        return self._rows

    def go_on(self, *, free: bool) -> None:
        """Leave the dict that was handed out unchanged from now on. `free`: the one before it is no longer in use."""
        rows = self._last
        if free and len(self._changed) * _SHARE <= len(self._rows):
            for key in self._changed:
                value = self._rows.get(key)
                if value is None:
                    rows.pop(key, None)
                else:
                    rows[key] = value
        else:
            rows = self._rows.copy()
        self._rows, self._last, self._changed = rows, self._rows, {}


def _no_table() -> None:
    """The reference to a table before the first one."""


class TableWriter:
    """Collects hosts; TTL in seconds. `never` are hostnames that no wildcard covers (--deny)."""

    def __init__(self, *, ttl: int, never: Iterable[str] = ()) -> None:
        self._ttl = ttl
        self._exact: Rows[Answers] = Rows()
        self._wildcards: Rows[Wildcard] = Rows()
        self._above: Rows[int] = Rows()
        self._published: Callable[[], HostTable | None] = _no_table
        """A weak reference to the table that was published last."""
        self._before: Callable[[], HostTable | None] = _no_table
        """The same for the table before it."""
        self._is_open = True
        # A denied wildcard is that wildcard itself, which the registry excludes.
        self._never: Rows[bool] = Rows()
        for name in never:
            if not names.is_wildcard(name):
                self._never.put(names.to_wire(name), True)
        self._denied = frozenset(self._never.hand_out())
        self._closed: frozenset[bytes] = frozenset()
        self._unready: frozenset[str] = frozenset()
        self._leads = Leads()
        self._conditional = 0
        self._shared: dict[_Key, Answers] = {}
        self._uses: dict[_Key, int] = {}
        self._names: dict[str, int] = {}
        """How many names are answered with the addresses of a Service."""

    def put(self, host: Host) -> tuple[str, ...]:
        """Set the addresses of a host; without addresses, the name is removed. Returns those that it had."""
        self.open()
        wire = names.to_wire(host.hostname)
        before = self._row(wire, host.reach)
        answers = self._use(host) if host.addresses else None
        if host.reach is Reach.NAME:
            self._put_exact(wire, answers, before)
            self._put_bar(wire, barred=host.barred)
        else:
            self._put_wildcard(wire, host.reach, answers)
        return self._leave(before)

    def addresses_of(self, host: Host) -> tuple[str, ...]:
        """The addresses that put() would return."""
        row = self._row(names.to_wire(host.hostname), host.reach)
        return row.addresses if row is not None else ()

    def close(self, zones: Iterable[str]) -> None:
        """Set the zones that no wildcard from above reaches into."""
        closed = frozenset(map(names.to_wire, zones))
        if closed != self._closed:
            self.open()
            self._closed = closed

    def forward(self, unready: frozenset[str]) -> bool:
        """Set the Services, `NAMESPACE/NAME`, whose names are forwarded. Returns whether they changed."""
        if unready == self._unready:
            return False
        self.open()
        self._unready = unready
        return True

    def lead(self, balancers: Balancers) -> bool:
        """Set the load balancers that lead here. Returns whether they changed."""
        if balancers == self._leads.balancers:
            return False
        self.open()
        self._leads = Leads(balancers)
        return True

    def open(self) -> None:
        """Prepare for changes after a table was published; put() does it too."""
        if not self._is_open:
            self._is_open = True
            free = self._before() is None
            self._exact.go_on(free=free)
            self._wildcards.go_on(free=free)
            self._above.go_on(free=free)
            self._never.go_on(free=free)

    def publish(self) -> HostTable:
        """The table of all hosts so far."""
        table = None if self._is_open else self._published()
        if table is None:
            rows = self._exact.hand_out(), self._wildcards.hand_out(), self._above.hand_out()
            forwarded = sum(self._names.get(service, 0) for service in self._unready)
            table = HostTable(
                *rows,
                self._never.hand_out(),
                self._closed,
                self._unready,
                forwarded,
                self._leads,
                self._ttl,
                self._conditional,
            )
            if self._is_open:
                self._before = self._published
            self._published = weakref.ref(table)
            self._is_open = False
        return table

    def _use(self, host: Host) -> Answers:
        """The answers of a host, which all names with the same addresses share."""
        addresses, service, claimed = key = host.addresses, host.service, host.claimed
        answers = self._shared.get(key)
        if answers is None:
            answers = self._shared[key] = build_answers(addresses, ttl=self._ttl, service=service, claimed=claimed)
        self._uses[key] = self._uses.get(key, 0) + 1
        self._conditional += claimed.is_conditional
        self._names[service] = self._names.get(service, 0) + 1
        return answers

    def _row(self, wire: bytes, reach: Reach) -> Answers | None:
        if reach is Reach.NAME:
            return self._exact.get(wire)
        found = self._wildcards.get(wire) or _NEITHER
        return found.one_label if reach is Reach.ONE_LABEL else found.any_labels

    def _leave(self, answers: Answers | None) -> tuple[str, ...]:
        """Count one name less with these answers, and free them after the last one. Returns their addresses."""
        if answers is None:
            return ()
        key = answers.addresses, answers.service, answers.claimed
        self._uses[key] -= 1
        self._conditional -= answers.claimed.is_conditional
        if not self._uses[key]:
            del self._uses[key], self._shared[key]
        self._names[answers.service] -= 1
        if not self._names[answers.service]:
            del self._names[answers.service]
        return answers.addresses

    def _put_exact(self, wire: bytes, answers: Answers | None, before: Answers | None) -> None:
        if answers is not None or before is not None:
            self._exact.put(wire, answers)
        if (answers is None) != (before is None):
            self._count(names.ancestors(wire), 1 if before is None else -1)

    def _put_bar(self, wire: bytes, *, barred: bool) -> None:
        if wire not in self._denied and barred != (self._never.get(wire) is not None):
            self._never.put(wire, False if barred else None)

    def _put_wildcard(self, wire: bytes, reach: Reach, answers: Answers | None) -> None:
        before = self._wildcards.get(wire) or _NEITHER
        if reach is Reach.ONE_LABEL:
            after = before._replace(one_label=answers)
        else:
            after = before._replace(any_labels=answers)
        if after != before:
            self._wildcards.put(wire, None if after == _NEITHER else after)
        # The parent of a wildcard is an ancestor of our names too.
        self._count([wire, *names.ancestors(wire)], (after != _NEITHER) - (before != _NEITHER))

    def _count(self, ancestors: Iterable[bytes], step: int) -> None:
        if not step:
            return
        for name in ancestors:
            self._above.put(name, ((self._above.get(name) or 0) + step) or None)

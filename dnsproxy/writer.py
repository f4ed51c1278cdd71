"""The writer: keeps the next table and publishes copies of it.

The law: what is published never changes again. Putting one name costs the same whatever the size of the table, and
publishing costs a copy of three dicts. It is made in one go: a copy in steps takes three times as long in all, and the
step in which the new dict grows for the last time as long as this.
"""

from __future__ import annotations

from collections.abc import Iterable

from dnsproxy import names
from dnsproxy.claims import Reach
from dnsproxy.table import Answers, Host, HostTable, Wildcard, build_answers


class TableWriter:
    """Collects hosts; TTL in seconds. `never` are hostnames that no wildcard covers (--deny)."""

    def __init__(self, *, ttl: int, never: Iterable[str] = ()) -> None:
        self._ttl = ttl
        self._exact: dict[bytes, Answers] = {}
        self._wildcards: dict[bytes, Wildcard] = {}
        self._above: dict[bytes, int] = {}
        # A name that is denied as a wildcard is that wildcard, which the registry leaves out.
        self._never = frozenset(names.to_wire(name) for name in never if not names.is_wildcard(name))
        self._shared: dict[tuple[str, ...], Answers] = {}
        self._uses: dict[tuple[str, ...], int] = {}

    def put(self, host: Host) -> None:
        """Set the addresses of a host; with none, the name is taken out."""
        wire = names.to_wire(host.hostname)
        answers = self._use(host.addresses) if host.addresses else None
        if host.reach is Reach.NAME:
            self._put_exact(wire, answers)
        else:
            self._put_wildcard(wire, host.reach, answers)

    def publish(self) -> HostTable:
        """The table of all that was put so far."""
        return HostTable(self._exact.copy(), self._wildcards.copy(), self._above.copy(), self._never)

    def _use(self, addresses: tuple[str, ...]) -> Answers:
        """The answers that all names with these addresses share."""
        answers = self._shared.get(addresses)
        if answers is None:
            answers = self._shared[addresses] = build_answers(addresses, ttl=self._ttl)
        self._uses[addresses] = self._uses.get(addresses, 0) + 1
        return answers

    def _leave(self, answers: Answers | None) -> None:
        """One name less has these: addresses come and go for as long as the service runs."""
        if answers is None:
            return
        self._uses[answers.addresses] -= 1
        if not self._uses[answers.addresses]:
            del self._uses[answers.addresses], self._shared[answers.addresses]

    def _put_exact(self, wire: bytes, answers: Answers | None) -> None:
        before = self._exact.pop(wire, None) if answers is None else self._exact.get(wire)
        if answers is not None:
            self._exact[wire] = answers
        if (answers is None) != (before is None):
            self._count(names.ancestors(wire), 1 if before is None else -1)
        self._leave(before)

    def _put_wildcard(self, wire: bytes, reach: Reach, answers: Answers | None) -> None:
        before = self._wildcards.get(wire, Wildcard(None, None))
        if reach is Reach.ONE_LABEL:
            after = before._replace(one_label=answers)
            self._leave(before.one_label)
        else:
            after = before._replace(any_labels=answers)
            self._leave(before.any_labels)
        self._wildcards[wire] = after
        if after == (None, None):
            del self._wildcards[wire]
        # The parent of a wildcard is above names of ours too.
        self._count([wire, *names.ancestors(wire)], (after != (None, None)) - (before != (None, None)))

    def _count(self, ancestors: Iterable[bytes], step: int) -> None:
        if not step:
            return
        for name in ancestors:
            count = self._above.get(name, 0) + step
            if count:
                self._above[name] = count
            else:
                del self._above[name]

"""A kernel in memory, as strict as the real one: it refuses a transaction as a whole if it does not fit its table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace

import trio

from wholeip.kernel.table_dump import GiveWay, Place
from wholeip.ruleset.nft_errors import NftFailed, Refused
from wholeip.ruleset.ruleset import Ruleset, Transaction
from wholeip.ruleset.static_rules import COLLECTIONS


@dataclass
class FakeKernel:
    """A Table like that of wholeip.kernel.nft. `failures` are raised first, one for each call."""

    ruleset: Ruleset | None = None
    failures: list[NftFailed] = field(default_factory=list)
    late_failures: list[NftFailed] = field(default_factory=list)
    """Raised after transactions that were applied all the same, as if nft was killed at its end; one for each."""
    deaf: NftFailed | None = None
    """The reason for missing notifications."""
    tells_generation: bool = True
    seconds: float = 0
    """How long a transaction takes."""
    applied: list[Transaction] = field(default_factory=list)
    reads: int = 0
    dumped: list[Ruleset] = field(default_factory=list)
    """What the next dumps show instead of the ruleset, as they may while the kernel resizes a hash table."""
    meanwhile: Callable[[], Awaitable[None]] | None = None
    """What happens after a dump has read the table and before it returns."""
    _generation: int = 0
    _counted: Ruleset | None = None
    """The ruleset of that generation."""
    _listeners: list[Callable[[], None]] = field(default_factory=list)

    async def read_ruleset(self) -> Ruleset | None:
        await trio.lowlevel.checkpoint()
        self._fail()
        self.reads += 1
        return self.ruleset

    async def dump_ruleset(self, *, give_way: GiveWay = trio.lowlevel.checkpoint) -> Ruleset | None:
        await give_way()
        found = await self.read_ruleset()
        if self.dumped:
            found = self.dumped.pop(0)
        if self.meanwhile is not None:
            await self.meanwhile()
        return found

    async def find_elements(self, wanted: Iterable[Place]) -> dict[Place, str]:
        await trio.lowlevel.checkpoint()
        elements = self.ruleset.elements if self.ruleset is not None else {}
        whole = {one.name for one in COLLECTIONS if not one.interval}
        places = [one for one in wanted if one[0] in whole]
        return {(name, key): elements[name][key] for name, key in places if key in elements.get(name, {})}

    async def read_generation(self) -> int | None:
        await trio.lowlevel.checkpoint()
        if not self.tells_generation:
            return None
        if self.ruleset is not self._counted:
            self._generation, self._counted = self._generation + 1, self.ruleset
        return self._generation

    async def apply(self, transaction: Transaction) -> None:
        await trio.lowlevel.checkpoint()
        if not transaction:
            return
        if self.seconds:
            await trio.sleep(self.seconds)
        self._fail()
        self.ruleset = after(self.ruleset, transaction)
        self.applied.append(transaction)
        if self.late_failures:
            raise self.late_failures.pop(0)

    async def delete_table(self) -> None:
        await trio.lowlevel.checkpoint()
        self._fail()
        self.ruleset = None

    async def watch_changes(
        self, changed: Callable[[], None], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        if self.deaf is not None:
            raise self.deaf
        self._listeners.append(changed)
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            self._listeners.remove(changed)

    def change(self, ruleset: Ruleset | None) -> None:
        """Another program changes the table."""
        self.ruleset = ruleset
        for listener in self._listeners:
            listener()

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)


def after(ruleset: Ruleset | None, transaction: Transaction) -> Ruleset:
    """The table after a transaction. Raises Refused."""
    if transaction.whole is not None:
        return transaction.whole
    if ruleset is None:
        raise Refused("No such file or directory")
    elements = {name: dict(items) for name, items in ruleset.elements.items()}
    for name, items in transaction.deletes.items():
        for key in items:
            if key not in elements[name]:
                raise Refused("No such file or directory", f"delete {name} {key}")
            del elements[name][key]
    for name, items in transaction.adds.items():
        for key, value in items.items():
            if elements[name].setdefault(key, value) != value:
                raise Refused("File exists", f"add {name} {key}")
    return replace(ruleset, elements=elements)

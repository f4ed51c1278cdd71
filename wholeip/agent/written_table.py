"""The table that the agent has written, and the one place where it writes.

The law: one transaction at a time; the caller must hold the lock `writing`. While a comparison runs, each key is noted
before it is written, and the comparison ignores what it has read of that key.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import structlog
import trio

from wholeip.agent.status import APPLIED, AgentStatus
from wholeip.agent.update import DesiredTable
from wholeip.kernel.nft import Table
from wholeip.ruleset.differences import Difference
from wholeip.ruleset.ruleset import Transaction

log: structlog.stdlib.BoundLogger = structlog.get_logger("wholeip")


class WrittenTable:
    """What the kernel has as far as we know."""

    def __init__(self, table: Table, status: AgentStatus) -> None:
        self._table = table
        self._status = status
        self.writing = trio.Lock()
        """Fair: a change waits for one transaction of a repair at most."""
        self.known: DesiredTable | None = None
        """The table of the last update: the kernel has it unless another program changed it."""
        self.uncertain = True
        """Whether the kernel may have another table because of a failure or a start."""
        self._noted: set[tuple[str, str]] | None = None
        """Collection and key of what was written since begin_noting; None: nothing is noted."""

    async def give_way(self) -> None:
        """A checkpoint that ends once no change is being written."""
        async with self.writing:
            pass

    def begin_noting(self) -> None:
        """Note what is written."""
        self._noted = set()

    def end_noting(self) -> None:
        """Note nothing more; a comparison that still runs is overtaken, because all is read and compared anew."""
        self._noted = None

    @property
    def is_noting(self) -> bool:
        """Whether all that was written since begin_noting is noted, and known to be applied."""
        return self._noted is not None and not self.uncertain

    def unwritten(self, differences: Iterable[Difference]) -> list[Difference]:
        """Those of elements that were not written since begin_noting."""
        noted = self._noted or set()
        return [one for one in differences if (one.collection, one.key) not in noted]

    async def apply(self, transaction: Transaction) -> None:
        """Apply all of it or nothing. The caller must hold `writing`. Raises NftFailed."""
        begun = time.perf_counter()
        if self._noted is not None:
            for elements in (transaction.deletes, transaction.adds):
                self._noted |= {(name, key) for name, keys in elements.items() for key in keys}
        # From here on it may be applied, even if nft reports a failure.
        self.uncertain = True
        await self._table.apply(transaction)
        self.uncertain = False
        took = time.perf_counter() - begun
        status = self._status
        status.attempts[APPLIED] += 1
        status.durations.add(took)
        status.applied_time = time.time()
        log.info(
            "rules applied",
            added=sum(map(len, transaction.adds.values())),
            deleted=sum(map(len, transaction.deletes.values())),
            whole=transaction.whole is not None,
            seconds=round(took, 4),
        )

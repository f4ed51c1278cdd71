"""Reconciles the kernel's table with what the cluster asks for.

The law: nothing is written before the whole cluster was read once. Changes that arrive together are one transaction. A
failed transaction is retried, and until then the table stays as it was; it also stays when the agent exits. The cost of
a change depends on what it touches, and a change does not wait for a comparison with the kernel; all Services are
planned at the start, after a failure, and when the table must be replaced because another program has changed more than
its elements.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from math import inf
from typing import Final

import structlog
import trio

from sidecar.loop.slices import in_slices
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from wholeip.agent.applied_updates import AppliedUpdates, OnApplied
from wholeip.agent.comparison import Compared, Comparison
from wholeip.agent.notifications import Notifications
from wholeip.agent.operator_log import Advise, OperatorLog
from wholeip.agent.pace import ReconcilePace
from wholeip.agent.status import FAILED, AgentStatus
from wholeip.agent.update import DesiredTable, Update, update_from, whole_update
from wholeip.agent.written_table import WrittenTable
from wholeip.kernel.nft import Table
from wholeip.kernel.sysctls import advise
from wholeip.mappings.cluster_state import ClusterState
from wholeip.mappings.plan import Plan
from wholeip.ruleset.in_use import address_count, in_use_of
from wholeip.ruleset.nft_errors import NftFailed, NoAnswer, Refused
from wholeip.ruleset.ruleset import TABLE, BadMapping, Ruleset, changes

log: structlog.stdlib.BoundLogger = structlog.get_logger("wholeip")

OnReports = Callable[[Iterable[str] | None, Plan], None]
"""Receives the Services whose reports may differ (None: any), and the plan that the kernel has."""

_REST: Final = 4
"""Wait this multiple of a comparison's duration until the next one, but never longer than after a repair."""


class Reconciler:
    """Keeps one table equal to a state."""

    def __init__(
        self,
        table: Table,
        state: ClusterState,
        status: AgentStatus,
        *,
        name: str = TABLE,
        pace: ReconcilePace | None = None,
        on_applied: OnApplied | None = None,
        on_reports: OnReports | None = None,
        advise: Advise = advise,
    ) -> None:
        self._table = table
        self._state = state
        self._status = status
        self._name = name
        self._pace = pace or ReconcilePace()
        self._applied = AppliedUpdates(on_applied)
        self._on_reports = on_reports
        self._operator_log = OperatorLog(state, status, advise)
        self._woken = trio.Event()
        self._written = WrittenTable(table, status)
        self._comparison = Comparison(table, self._written, self._note_repair)
        self._suspected = trio.Event()
        """Set when another program may have changed the table since the last comparison began."""
        self.is_comparing = False
        """Whether the kernel's table is being compared, beside the changes."""
        self._replace = False
        """Whether another program has changed more of the table than its elements."""
        self._repaired_time = -inf
        self._failures = 0
        self._in_use = in_use_of(None)
        """The mappings that an earlier run left in the kernel."""

    async def begin(self) -> int:
        """Read the table that an earlier run left; the number of its addresses.

        Raises StartError if the kernel cannot be read for a permanent reason.
        """
        try:
            present = await self._table.read_ruleset()
        except NftFailed as error:
            if not error.transient:
                raise StartError(f"nftables: {error}", status=ExitStatus.UNKNOWN) from error
            log.warning("cannot read the table yet", cause=str(error))
            return 0
        self._in_use = in_use_of(present)
        return address_count(present)

    def wake(self) -> None:
        """The state may have changed."""
        self._woken.set()

    async def run(self) -> None:
        """Reconcile until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Notifications(self._table, self._pace, self._suspect).run)
            nursery.start_soon(self._compare_when_suspected)
            while True:
                await self._woken.wait()
                self._woken = trio.Event()
                if self._status.synced:
                    await self._rest(await self._reconcile())

    async def _rest(self, pause: float) -> None:
        """Collect changes; after a failure, a new change may be the cure, so it ends the wait."""
        if not self._failures:
            await trio.sleep(pause)
            return
        least = min(pause, self._pace.after_repair)
        await trio.sleep(least)
        with trio.move_on_after(pause - least):
            await self._woken.wait()
        self._woken.set()

    async def _reconcile(self) -> float:
        """One attempt; the seconds to rest afterwards."""
        async with self._written.writing:
            try:
                await self._attempt()
            except (NftFailed, BadMapping) as error:
                self._note_failure(error)
                return min(self._pace.backoff_first * 2.0 ** min(self._failures - 1, 16), self._pace.backoff_limit)
        status = self._status
        if status.trouble:
            log.info("the kernel accepts the rules again")
        status.trouble, status.in_step = "", True
        self._failures = 0
        return self._pace.gather

    def _note_failure(self, error: Exception) -> None:
        status = self._status
        status.attempts[FAILED] += 1
        self._written.uncertain = True
        self._failures += 1
        if status.trouble != str(error):
            log.warning("the kernel refuses the rules; its table stays", cause=str(error))
        status.trouble, status.in_step = str(error), False

    async def _attempt(self) -> None:
        """Update the kernel. Raises NftFailed and BadMapping."""
        known = self._written.known
        if known is None or self._written.uncertain or self._replace:
            await self._start_anew(known)
            return
        try:
            await self._apply_update(update_from(known, self._state))
        except Refused:
            if not self._is_suspect() or trio.current_time() < self._repaired_time + self._pace.after_repair:
                raise
            # Another program has changed what this is about, and no comparison has found it yet. Nothing is applied.
            self._written.uncertain, self._replace = False, True
            await self._start_anew(known)

    async def _start_anew(self, known: DesiredTable | None) -> None:
        """Plan all Services and compare them with the kernel; the same errors as _attempt."""
        # Before the read: a change after it needs another comparison.
        replace, self._replace = self._replace and not self._written.uncertain, False
        self._written.end_noting()
        try:
            current = await self._table.dump_ruleset()
        except NoAnswer:
            # Another program may have added a million elements: reading them would never end, replacing the table does.
            current = None
        repaired = replace and known is not None and bool(changes(current, await in_slices(known.steps())))
        self._state.take_touched()
        update = whole_update(current, self._state, known.plan.in_use() if known else self._in_use, self._name)
        await self._apply_update(update, told=None if known is None else update.since(known))
        if known is None:
            # Most objects of now live long; the garbage collector would delay changes by scanning them.
            gc.collect()
            gc.freeze()
        if repaired:
            self._note_repair()

    async def _apply_update(self, update: Update, *, told: Update | None = None) -> None:
        """`told`: what the task that ends flows hears of it, if that is another one."""
        told = told or update
        transaction = changes(*await in_slices(update.steps()))
        if transaction:
            with self._applied.doubting(told):
                await self._written.apply(transaction)
        if transaction or self._written.known is None or self._applied.has_doubted:
            # At the start too: an earlier run may have ended after a transaction and before its flows.
            self._applied.note(told)
        self._note(update)

    def _note_repair(self, before: Ruleset | None = None) -> None:
        """Another program's change was undone; `before` is what it had left, if no update says so."""
        self._status.repaired += 1
        self._repaired_time = trio.current_time()
        log.warning("another program had changed the table; it is repaired", table=self._name)
        if before is not None and self._written.known is not None:
            self._applied.note(Update(before, self._written.known, gap=True))

    def _note(self, update: Update) -> None:
        """Record what the kernel has now."""
        status, plan = self._status, update.desired.plan
        before = self._written.known.plan if self._written.known else Plan()
        self._written.known, self._written.uncertain = update.desired, False
        status.plan, status.services = plan, len(self._state)
        if self._on_reports is not None:
            self._on_reports(update.services, plan)
        self._operator_log.note_plan(update.services, before, plan)

    def _suspect(self) -> None:
        self._suspected.set()

    def _is_suspect(self) -> bool:
        return self.is_comparing or self._suspected.is_set()

    async def _compare_when_suspected(self) -> None:
        while True:
            await self._suspected.wait()
            self._suspected, self.is_comparing = trio.Event(), True
            begun = trio.current_time()
            compared = await self._compare()
            self.is_comparing = False
            pause = self._pace.after_repair
            if compared is None or not (compared.repaired or compared.unrepairable):
                pause = min(pause, _REST * (trio.current_time() - begun))
            await trio.sleep(pause)

    async def _compare(self) -> Compared | None:
        try:
            compared = await self._comparison.run()
        except (NftFailed, BadMapping) as error:
            async with self._written.writing:
                self._note_failure(error)
            self.wake()
            return None
        if compared is not None:
            self._note_comparison(compared)
        return compared

    def _note_comparison(self, compared: Compared) -> None:
        if compared.unrepairable:
            self._replace = True
            self.wake()
        is_current = compared.known is self._written.known
        self._operator_log.note_comparison(compared.families if is_current else None)

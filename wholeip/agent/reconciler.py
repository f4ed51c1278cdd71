"""Reconciles the kernel's table with what the cluster asks for.

The law: nothing is written before the whole cluster was read once. Changes that arrive together are one transaction. A
failed transaction is retried, and until then the table stays as it was; it also stays when the agent exits. The cost of
a change depends on what it touches; all Services are planned and compared at the start, after a failure, and when
another program may have changed the table.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog
import trio

from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from wholeip.agent.status import APPLIED, FAILED, AgentStatus
from wholeip.agent.update import DesiredTable, Update, update_from, whole_update
from wholeip.kernel.nft import Table
from wholeip.kernel.sysctls import advise
from wholeip.mappings.cluster_state import ClusterState
from wholeip.mappings.plan import Plan
from wholeip.mappings.reports import NOTES
from wholeip.ruleset.in_use import address_count, in_use_of
from wholeip.ruleset.nft_errors import NftFailed
from wholeip.ruleset.ruleset import TABLE, BadMapping, Transaction, changes

log: structlog.stdlib.BoundLogger = structlog.get_logger("wholeip")

OnApplied = Callable[[Update], None]
"""Receives each update that the kernel has applied; the first one also if there was nothing to change."""

Advise = Callable[[Iterable[int]], Iterable[str]]
"""The sysctls to change on this node for mappings of these families."""


@dataclass(frozen=True, slots=True)
class ReconcilePace:
    """Times in seconds."""

    gather: float = 0.01
    """After a transaction; changes that arrive meanwhile go into the next one."""
    backoff_first: float = 0.25
    backoff_limit: float = 30.0
    resync: float = 60.0
    """Between two comparisons with the kernel, while it notifies us of changes."""
    resync_blind: float = 10.0
    """The same without notifications."""
    after_repair: float = 1.0
    """After a repair: a program that keeps changing the table must not set our pace."""


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
        advise: Advise = advise,
    ) -> None:
        self._table = table
        self._state = state
        self._status = status
        self._name = name
        self._pace = pace or ReconcilePace()
        self._on_applied = on_applied
        self._advise = advise
        self._woken = trio.Event()
        self._known: DesiredTable | None = None
        """The table of the last update: the kernel has it unless another program changed it."""
        self._uncertain = True
        """Whether the kernel may have another table because of a failure or a start."""
        self._maybe_changed = False
        """Whether another program may have changed the table."""
        self._watching = False
        self._failures = 0
        self._in_use = in_use_of(None)
        """The mappings that an earlier run left in the kernel."""
        self._families = frozenset[int]()
        """The address families of the mappings."""

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
            nursery.start_soon(self._watch)
            nursery.start_soon(self._compare_periodically)
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
        status = self._status
        try:
            repaired = await self._attempt()
        except (NftFailed, BadMapping) as error:
            status.attempts[FAILED] += 1
            self._uncertain = True
            self._failures += 1
            if status.trouble != str(error):
                log.warning("the kernel refuses the rules; its table stays", cause=str(error))
            status.trouble, status.in_step = str(error), False
            return min(self._pace.backoff_first * 2.0 ** min(self._failures - 1, 16), self._pace.backoff_limit)
        if status.trouble:
            log.info("the kernel accepts the rules again")
        status.trouble, status.in_step = "", True
        self._failures = 0
        return self._pace.after_repair if repaired else self._pace.gather

    async def _attempt(self) -> bool:
        """Update the kernel; whether that repaired a foreign change. Raises NftFailed and BadMapping."""
        known = self._known
        if known is None or self._uncertain or self._maybe_changed:
            return await self._start_anew(known)
        await self._apply_update(update_from(known, self._state))
        return False

    async def _start_anew(self, known: DesiredTable | None) -> bool:
        """Plan all Services and compare them with the kernel; the same result as _attempt."""
        # Before the read: a change after it needs another comparison.
        self._maybe_changed = False
        current = await self._table.read_ruleset()
        repaired = not self._uncertain and known is not None and bool(changes(current, known.ruleset()))
        self._state.take_touched()
        await self._apply_update(
            whole_update(current, self._state, known.plan.in_use() if known else self._in_use, self._name)
        )
        if known is None:
            # Most objects of now live long; the garbage collector would delay changes by scanning them.
            gc.collect()
            gc.freeze()
        if repaired:
            self._status.repaired += 1
            log.warning("another program had changed the table; it is repaired", table=self._name)
        return repaired

    async def _apply_update(self, update: Update) -> None:
        transaction = changes(*update.rulesets)
        if transaction:
            await self._apply(transaction)
        if self._on_applied is not None and (transaction or self._known is None):
            # At the start too: an earlier run may have ended after a transaction and before its flows.
            self._on_applied(update)
        self._note(update)

    async def _apply(self, transaction: Transaction) -> None:
        begun = time.perf_counter()
        # From here on it may be applied, even if nft reports a failure.
        self._uncertain = True
        await self._table.apply(transaction)
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

    def _note(self, update: Update) -> None:
        """Record what the kernel has now; each report is logged once while it lasts."""
        status, plan = self._status, update.desired.plan
        before = self._known.plan if self._known else Plan()
        self._known, self._uncertain = update.desired, False
        status.plan, status.services = plan, len(self._state)
        services = plan.parts.keys() if update.services is None else update.services
        # The next comparison removes a family that has no mappings left.
        kept = self._families if update.services is not None else frozenset[int]()
        self._families = kept.union(one.address.version for one in plan.mappings_of(services))
        advice = (*self._state.advise(), *self._advise(sorted(self._families)))
        for line in advice:
            if line not in status.advice:
                log.warning("an operator must change this", advice=line)
        status.advice = advice
        for service in sorted(services):
            known = before.part(service).reports
            for report in plan.part(service).reports:
                if report not in known:
                    write = log.info if report.reason in NOTES else log.warning
                    write("Service", service=report.service, reason=str(report.reason), detail=report.detail)

    def _compare(self) -> None:
        self._maybe_changed = True
        self._woken.set()

    async def _watch(self) -> None:
        """Listen to the kernel's notifications; without them, the periodic comparisons must do."""
        logged = ""
        while True:
            try:
                async with trio.open_nursery() as nursery:
                    await nursery.start(self._table.watch_changes, self._compare)
                    self._watching = True
                    if logged:
                        # Changes in the meantime were not notified.
                        self._compare()
            except* NftFailed as group:
                cause = str(_first(group))
                if cause != logged:
                    log.warning("no notifications from the kernel; the table is compared periodically", cause=cause)
                logged = cause
            self._watching = False
            await trio.sleep(self._pace.backoff_limit)

    async def _compare_periodically(self) -> None:
        while True:
            await trio.sleep(self._pace.resync if self._watching else self._pace.resync_blind)
            self._compare()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner

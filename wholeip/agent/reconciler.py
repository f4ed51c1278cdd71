"""The agent: brings the kernel's table to what the cluster wants, and keeps it there.

The law: nothing is written before the whole cluster was read once; one transaction for all that changed together; what
fails is tried again, and until then the table stays as it was. It also stays when the agent ends. What a change takes
depends on what it touches; everything is planned and compared at the start, after a failure, and where in doubt.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog
import trio

from sidecar.values.errors import ExitStatus, StartError
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
"""Gets each step that the kernel has taken; the first one also where nothing was to do."""

Advise = Callable[[Iterable[int]], Iterable[str]]
"""What to set on this node for mappings of these families."""


@dataclass(frozen=True, slots=True)
class ReconcilePace:
    """Times in seconds."""

    gather: float = 0.01
    """After a transaction, in which further changes are gathered for the next one."""
    backoff_first: float = 0.25
    backoff_limit: float = 30.0
    resync: float = 60.0
    """Between two comparisons with the kernel, while it tells of changes by itself."""
    resync_blind: float = 10.0
    """The same while it does not."""
    after_repair: float = 1.0
    """Somebody who changes the table again and again must not make us do so as fast as he can."""


class Reconciler:
    """One table and the state that it follows."""

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
        """What the kernel was brought to last, and has where nobody else has changed it."""
        self._unsure = True
        """Whether what it has may be something else, through nobody's fault."""
        self._doubted = False
        """Whether somebody else may have changed it."""
        self._watching = False
        self._failures = 0
        self._in_use = in_use_of(None)
        """As an earlier run has left it."""
        self._families = frozenset[int]()
        """Of mappings."""

    async def begin(self) -> int:
        """Read what an earlier run has left; how many addresses that is.

        Raises StartError where the kernel can't be asked for a reason that does not pass by itself.
        """
        try:
            present = await self._table.read_ruleset()
        except NftFailed as error:
            if not error.transient:
                raise StartError(f"nftables: {error}", status=ExitStatus.UNKNOWN) from error
            log.warning("the table cannot be read yet", cause=str(error))
            return 0
        self._in_use = in_use_of(present)
        return address_count(present)

    def wake(self) -> None:
        """The state may have changed."""
        self._woken.set()

    async def run(self) -> None:
        """Keep the kernel's table what the cluster wants until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch)
            nursery.start_soon(self._compare_now_and_then)
            while True:
                await self._woken.wait()
                self._woken = trio.Event()
                if self._status.synced:
                    await self._rest(await self._bring_up())

    async def _rest(self, pause: float) -> None:
        """Changes gather meanwhile; after a failure, one of them may be what helps."""
        if not self._failures:
            await trio.sleep(pause)
            return
        least = min(pause, self._pace.after_repair)
        await trio.sleep(least)
        with trio.move_on_after(pause - least):
            await self._woken.wait()
        self._woken.set()

    async def _bring_up(self) -> float:
        """One attempt; how long to rest, in seconds."""
        status = self._status
        try:
            repaired = await self._attempt()
        except (NftFailed, BadMapping) as error:
            status.attempts[FAILED] += 1
            self._unsure = True
            self._failures += 1
            if status.trouble != str(error):
                log.warning("the kernel does not take the rules; what it has stays", cause=str(error))
            status.trouble, status.in_step = str(error), False
            return min(self._pace.backoff_first * 2.0 ** min(self._failures - 1, 16), self._pace.backoff_limit)
        if status.trouble:
            log.info("the kernel takes the rules again")
        status.trouble, status.in_step = "", True
        self._failures = 0
        return self._pace.after_repair if repaired else self._pace.gather

    async def _attempt(self) -> bool:
        """Bring the kernel up to date; whether that was to repair what somebody else had done. Raises NftFailed."""
        known = self._known
        if known is None or self._unsure or self._doubted:
            return await self._start_anew(known)
        await self._take(update_from(known, self._state))
        return False

    async def _start_anew(self, known: DesiredTable | None) -> bool:
        """Plan everything and compare it with what the kernel has; the result is that of an attempt."""
        # Before the look: a change that comes after it is to be looked at again.
        self._doubted = False
        current = await self._table.read_ruleset()
        repaired = not self._unsure and known is not None and bool(changes(current, known.ruleset()))
        self._state.take_touched()
        await self._take(whole_update(current, self._state, known.plan.in_use() if known else self._in_use, self._name))
        if known is None:
            # What is loaded by now lives on, mostly: a search for garbage among it would hold up changes.
            gc.collect()
            gc.freeze()
        if repaired:
            self._status.repaired += 1
            log.warning("somebody else had changed the table; it is repaired", table=self._name)
        return repaired

    async def _take(self, step: Update) -> None:
        """Have the kernel take it."""
        transaction = changes(*step.rulesets)
        if transaction:
            await self._apply(transaction)
        if self._on_applied is not None and (transaction or self._known is None):
            # At the start too: an earlier run may have ended between the one and the other.
            self._on_applied(step)
        self._note(step)

    async def _apply(self, transaction: Transaction) -> None:
        begun = time.perf_counter()
        # From here on it may have been applied, whatever we hear of it.
        self._unsure = True
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

    def _note(self, step: Update) -> None:
        """The kernel has the target of this step; each report is told once for as long as it holds."""
        status, plan = self._status, step.target.plan
        before = self._known.plan if self._known else Plan()
        self._known, self._unsure = step.target, False
        status.plan, status.services = plan, len(self._state)
        services = plan.parts.keys() if step.services is None else step.services
        # One that nothing is left of is found out by the next comparison.
        kept = self._families if step.services is not None else frozenset[int]()
        self._families = kept.union(one.address.version for one in plan.mappings_of(services))
        advice = (*self._state.advise(), *self._advise(sorted(self._families)))
        for line in advice:
            if line not in status.advice:
                log.warning("this needs an operator", advice=line)
        status.advice = advice
        for service in sorted(services):
            told = before.part(service).reports
            for report in plan.part(service).reports:
                if report not in told:
                    tell = log.info if report.reason in NOTES else log.warning
                    tell("Service", service=report.service, reason=str(report.reason), detail=report.detail)

    def _doubt(self) -> None:
        self._doubted = True
        self._woken.set()

    async def _watch(self) -> None:
        """Have the kernel tell of changes; where it cannot, the comparisons have to do."""
        told = ""
        while True:
            try:
                async with trio.open_nursery() as nursery:
                    await nursery.start(self._table.watch_changes, self._doubt)
                    self._watching = True
                    if told:
                        # What happened meanwhile was not heard.
                        self._doubt()
            except* NftFailed as group:
                cause = str(_first(group))
                if cause != told:
                    log.warning("the kernel does not tell of changes; the table is compared instead", cause=cause)
                told = cause
            self._watching = False
            await trio.sleep(self._pace.backoff_limit)

    async def _compare_now_and_then(self) -> None:
        while True:
            await trio.sleep(self._pace.resync if self._watching else self._pace.resync_blind)
            self._doubt()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner

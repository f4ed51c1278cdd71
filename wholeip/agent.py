"""The agent: brings the kernel's table to what the cluster wants, and keeps it there.

The law: nothing is written before the whole cluster was read once; one transaction for all that changed together; what
fails is tried again, and until then the table stays as it was. It also stays when the agent ends.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog
import trio

from sidecar.errors import StartError
from wholeip.mapping import Mapping
from wholeip.nft import Table
from wholeip.nft_errors import NftFailed
from wholeip.plan import Plan
from wholeip.present import address_count, in_use_of
from wholeip.reports import NOTES, Report
from wholeip.ruleset import TABLE, BadMapping, Ruleset, Transaction, changes, make_ruleset
from wholeip.state import ClusterState
from wholeip.status import APPLIED, FAILED, AgentStatus
from wholeip.sysctls import advise

_COULD_NOT: Final = 3

log: structlog.stdlib.BoundLogger = structlog.get_logger("wholeip")

OnApplied = Callable[[Ruleset | None, Ruleset], None]
"""Gets the table before (None: there was none) and after a transaction; at first also where nothing was to do."""

Advise = Callable[[Sequence[Mapping]], Iterable[str]]
"""What to set on this node for these mappings."""


@dataclass(frozen=True, slots=True)
class AgentPace:
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


class Agent:
    """One table and the state that it follows."""

    def __init__(
        self,
        table: Table,
        state: ClusterState,
        status: AgentStatus,
        *,
        name: str = TABLE,
        pace: AgentPace | None = None,
        on_applied: OnApplied | None = None,
        advise: Advise = advise,
    ) -> None:
        self._table = table
        self._state = state
        self._status = status
        self._name = name
        self._pace = pace or AgentPace()
        self._on_applied = on_applied
        self._advise = advise
        self._woken = trio.Event()
        self._known: Ruleset | None = None
        """What the kernel has, where nobody else has changed it."""
        self._unsure = True
        """Whether what it has may be something else, through nobody's fault."""
        self._doubted = False
        """Whether somebody else may have changed it."""
        self._applied = False
        """Whether the kernel was brought up to date once."""
        self._watching = False
        self._failures = 0
        self._in_use = in_use_of(None)
        self._told: frozenset[Report] = frozenset()

    async def begin(self) -> int:
        """Read what an earlier run has left; how many addresses that is.

        Raises StartError where the kernel can't be asked for a reason that does not pass by itself.
        """
        try:
            present = await self._table.read_ruleset()
        except NftFailed as error:
            if not error.transient:
                raise StartError(f"nftables: {error}", status=_COULD_NOT) from error
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
        plan = self._state.plan(self._in_use)
        desired = make_ruleset(plan.mappings, cluster=self._state.networks, table=self._name)
        current, repaired = self._known, False
        if self._unsure or self._doubted:
            # Before the look: a change that comes after it is to be looked at again.
            self._doubted = False
            current = await self._table.read_ruleset()
            repaired = not self._unsure and self._known is not None and bool(changes(current, self._known))
        transaction = changes(current, desired)
        if transaction:
            await self._apply(transaction)
        if self._on_applied is not None and (transaction or not self._applied):
            # At the start too: an earlier run may have ended between the one and the other.
            self._on_applied(current, desired)
        if not self._applied:
            self._applied = True
            # What is loaded by now lives on, mostly: a search for garbage among it would hold up changes.
            gc.collect()
            gc.freeze()
        self._known, self._unsure, self._in_use = desired, False, plan.in_use
        if repaired:
            self._status.repaired += 1
            log.warning("somebody else had changed the table; it is repaired", table=self._name)
        self._note(plan)
        return repaired

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

    def _note(self, plan: Plan) -> None:
        """Take the plan into the status, and tell each report once for as long as it holds."""
        status = self._status
        status.plan, status.services = plan, len(self._state)
        advice = (*self._state.advise(), *self._advise(plan.mappings))
        for line in advice:
            if line not in status.advice:
                log.warning("this needs an operator", advice=line)
        status.advice = advice
        for report in plan.reports:
            if report not in self._told:
                tell = log.info if report.reason in NOTES else log.warning
                tell("Service", service=report.service, reason=str(report.reason), detail=report.detail)
        self._told = frozenset(plan.reports)

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

"""What an operator should know: the reports of Services, and what to change on the node or in the flags.

The law: each is logged once while it lasts. Nothing is decided here: reports come from the plan, advice from the state
of the cluster and from the node's sysctls. Tested in tests/wholeip/agent/test_reconciler.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

import structlog

from wholeip.agent.status import AgentStatus
from wholeip.mappings.cluster_state import ClusterState
from wholeip.mappings.plan import Plan
from wholeip.mappings.reports import NOTES

log: structlog.stdlib.BoundLogger = structlog.get_logger("wholeip")

Advise = Callable[[Iterable[int]], Iterable[str]]
"""The sysctls to change on this node for mappings of these families."""


class OperatorLog:
    """Logs what is new in it, and keeps the advice in the status."""

    def __init__(self, state: ClusterState, status: AgentStatus, advise: Advise) -> None:
        self._state = state
        self._status = status
        self._advise = advise
        self._families = frozenset[int]()
        """The address families of the mappings."""

    def note_plan(self, services: AbstractSet[str] | None, before: Plan, plan: Plan) -> None:
        """The kernel has another plan, which differs in these Services, or in any (None)."""
        # The next comparison removes a family that has no mappings left.
        kept = frozenset[int]() if services is None else self._families
        touched = plan.parts.keys() if services is None else services
        self._families = kept.union(one.address.version for one in plan.mappings_of(touched))
        self._look_at_node()
        for service in sorted(touched):
            known = before.part(service).reports
            for report in plan.part(service).reports:
                if report not in known:
                    write = log.info if report.reason in NOTES else log.warning
                    write("Service", service=report.service, reason=str(report.reason), detail=report.detail)

    def note_comparison(self, families: frozenset[int] | None) -> None:
        """A comparison has ended. All mappings are of these families; None: it has not looked at all of them."""
        if families is not None:
            self._families = families
        # Another program may have changed a sysctl since.
        self._look_at_node()

    def _look_at_node(self) -> None:
        advice = (*self._state.advise(), *self._advise(sorted(self._families)))
        for line in advice:
            if line not in self._status.advice:
                log.warning("an operator must change this", advice=line)
        self._status.advice = advice

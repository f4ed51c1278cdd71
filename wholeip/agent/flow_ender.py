"""Ends flows that the rules no longer allow or that are older than a mapping, in a task beside the reconciler.

The law: updates that arrive while flows are read are processed together afterwards, a failed one is retried, and none
is left undone at the end. Else the flows of a moved address would continue to the previous pod, or to the next owner of
that pod's address; the next run of the agent does not know an address that the table has no longer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NoReturn

import structlog
import trio

from sidecar.loop.slices import in_slices
from wholeip.agent.status import AgentStatus
from wholeip.agent.update import Update
from wholeip.mappings.networks import NetworkSet
from wholeip.ruleset.ended_flows import NewEgress
from wholeip.ruleset.nft_errors import NftFailed
from wholeip.ruleset.ruleset import NEVER_OUTSIDE, Ruleset

RETRY_SECONDS: Final = 10.0
_REST: Final = 4
"""Wait this multiple of the last run's duration, so that reading flows takes at most a fifth of the time."""

EndFlows = Callable[[Ruleset | None, Ruleset, NewEgress, Sequence[Ruleset]], Awaitable[int]]
"""The signature of conntrack.end_flows."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("wholeip")


class FlowEnder:
    """Receives each applied update, and ends the flows that it no longer allows."""

    def __init__(self, end_flows: EndFlows, status: AgentStatus, *, connections: bool = False) -> None:
        """`connections`: whether connections end too that are older than their pod's address."""
        self._end_flows = end_flows
        self._connections = connections
        self._status = status
        self._pending: Update | None = None
        self._woken = trio.Event()
        self._logged = ""
        """The last failure, while it lasts."""

    def note(self, update: Update) -> None:
        """The kernel has applied this update."""
        self._pending = self._pending.then(update) if self._pending else update
        self._woken.set()

    async def run(self) -> NoReturn:
        """End flows until cancelled."""
        while True:
            await self._woken.wait()
            self._woken = trio.Event()
            begun = trio.current_time()
            if await self.finish():
                await trio.sleep(_REST * (trio.current_time() - begun))
            else:
                await trio.sleep(RETRY_SECONDS)
                self._woken.set()

    async def finish(self) -> bool:
        """End the flows of all updates until now; whether that worked. Cancelled, it has forgotten no update."""
        pending, self._pending = self._pending, None
        if pending is None:
            return True
        done = False
        try:
            inside = NetworkSet((*pending.desired.networks, *NEVER_OUTSIDE))
            before, after = await in_slices(pending.steps())
            addresses = await in_slices(pending.egress_steps(before, after))
            between = await in_slices(pending.between_steps())
            egress = NewEgress(addresses, inside, self._connections)
            ended = await self._end_flows(before, after, egress, between)
            done = True
        except NftFailed as error:
            self._status.flow_failures += 1
            if self._logged != str(error):
                log.warning("flows that no rule allows may continue", cause=str(error))
            self._logged = str(error)
            return False
        finally:
            if not done:
                self._pending = pending.then(self._pending) if self._pending else pending
        self._logged = ""
        self._status.flows_ended += ended
        if ended:
            log.info("flows ended that the rules do not allow or that are older than a mapping", flows=ended)
        return True

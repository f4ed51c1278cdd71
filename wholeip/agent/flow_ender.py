"""Has flows ended that the rules no longer allow, beside the agent, who goes on meanwhile.

The law: changes that come while flows are read are taken together next, and one that failed is not forgotten: the flows
of an address that moved would go on to where it no longer is, or to whoever has the pod's address next.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

import structlog
import trio

from wholeip.agent.status import AgentStatus
from wholeip.agent.update import Update
from wholeip.ruleset.nft_errors import NftFailed
from wholeip.ruleset.ruleset import Ruleset

RETRY_SECONDS: Final = 10.0
_REST: Final = 4
"""For so many times as long as it took to read all flows of the node, they are not read again."""

EndFlows = Callable[[Ruleset | None, Ruleset], Awaitable[int]]
"""As conntrack.end_flows."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("wholeip")


class FlowEnder:
    """Gets each step that the kernel has taken, and has the flows judged by it."""

    def __init__(self, end_flows: EndFlows, status: AgentStatus) -> None:
        self._end_flows = end_flows
        self._status = status
        self._pending: Update | None = None
        self._woken = trio.Event()

    def note(self, step: Update) -> None:
        """The kernel has taken this step."""
        self._pending = self._pending.then(step) if self._pending else step
        self._woken.set()

    async def run(self) -> NoReturn:
        """End flows until cancelled."""
        told = ""
        while True:
            await self._woken.wait()
            self._woken = trio.Event()
            pending, self._pending = self._pending, None
            if pending is None:
                continue
            begun = trio.current_time()
            try:
                ended = await self._end_flows(*pending.rulesets)
            except NftFailed as error:
                self._status.flow_failures += 1
                if told != str(error):
                    log.warning("flows that no rule allows any more may go on", cause=str(error))
                told = str(error)
                await trio.sleep(RETRY_SECONDS)
                self._pending = pending.then(self._pending) if self._pending else pending
                self._woken.set()
                continue
            told = ""
            self._status.flows_ended += ended
            if ended:
                log.info("flows ended that no rule allows any more", flows=ended)
            await trio.sleep(_REST * (trio.current_time() - begun))

"""Pod documents: what the admin ports of several pods say, asked at once and again and again.

The law: all pods within SECONDS, and a pod that says nothing is a reason and never an absence. A pod whose document has
not changed sends no body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import trio

from sidecar.admin.asking import NoAnswer, get
from sidecar.values.endpoints import Endpoint
from sidecar.values.text import message_of

MOST_PODS: Final = 3
"""Pods that are asked; a DaemonSet may have thousands, with the same table."""
SECONDS: Final = 2.0
"""For the answers of all pods: from outside of the cluster there may be no route to them."""

D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class PodAnswers(Generic[D]):
    """What the asked pods said."""

    documents: dict[Endpoint, D] = field(default_factory=dict)
    """In the order of the pods' addresses."""
    reasons: dict[Endpoint, str] = field(default_factory=dict)
    """Why a pod gave no document."""

    @property
    def doubt(self) -> str:
        """Why something may be missing, if a pod gave no document or there is none."""
        reason = next((f"{pod}: {self.reasons[pod]}" for pod in sorted(self.reasons, key=str)), "")
        return reason or ("" if self.documents else "no pod is ready")

    def find_doubt(self, judge: Callable[[D], str]) -> str:
        """The same, or the first that `judge` has about a document; empty if every asked pod answered completely."""
        doubts = (f"{pod}: {why}" for pod, one in self.documents.items() if (why := judge(one)))
        return self.doubt or next(doubts, "")


class PodDocuments(Generic[D]):
    """Asks the admin ports of `dnsproxy serve` for one document; `parse` raises ValueError for any other one."""

    def __init__(self, path: str, parse: Callable[[bytes], D], *, largest: int) -> None:
        self._path = path
        self._parse = parse
        self._largest = largest
        self._known: dict[Endpoint, tuple[str, D]] = {}

    async def read(self, pods: Sequence[Endpoint]) -> PodAnswers[D]:
        """The documents of these pods. Never raises."""
        asked = sorted(set(pods), key=str)[:MOST_PODS]
        self._known = {pod: known for pod, known in self._known.items() if pod in asked}
        documents: dict[Endpoint, D] = {}
        reasons = dict.fromkeys(asked, f"no complete answer within {SECONDS:g} s")

        async def ask(pod: Endpoint) -> None:
            try:
                documents[pod] = await self._ask(pod)
            except NoAnswer as error:
                reasons[pod] = str(error)
            except ValueError as error:
                reasons[pod] = f"the answer is not that of a `dnsproxy serve` ({message_of(error)})"
            else:
                del reasons[pod]

        with trio.move_on_after(SECONDS):
            async with trio.open_nursery() as nursery:
                for pod in asked:
                    nursery.start_soon(ask, pod)
        return PodAnswers({pod: documents[pod] for pod in asked if pod in documents}, reasons)

    async def _ask(self, pod: Endpoint) -> D:
        known = self._known.get(pod)
        headers = {"If-None-Match": known[0]} if known else {}
        reply = await get(pod, self._path, program="dnsproxy serve", largest=self._largest, headers=headers)
        if known and not reply.modified:
            return known[1]
        document = self._parse(reply.body)
        if reply.tag:
            self._known[pod] = reply.tag, document
        return document

"""Own zones: what dnsproxy's pods say about the zones that the cluster's DNS has to ask them for.

The law: every pod is asked at once, within SECONDS, and a pod that says nothing takes no zone away: the zones are those
of all answers together, and they are complete only if every asked pod has answered completely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import trio

from dnsproxy.admin.zones_document import LARGEST, PATH, ZonesDocument, parse_zones
from sidecar.admin.asking import NoAnswer, get
from sidecar.values.endpoints import Endpoint
from sidecar.values.text import one_line

MOST_PODS: Final = 3
"""Pods that are asked; a DaemonSet may have thousands, with the same table."""
SECONDS: Final = 2.0
"""For the answers of all pods: from outside of the cluster there may be no route to them."""


@dataclass(frozen=True, slots=True)
class OwnZones:
    """What the pods said."""

    zones: tuple[str, ...] = ()
    """Sorted."""
    answered: int = 0
    """Pods that answered."""
    doubt: str = ""
    """Why zones may be missing; empty if a zone that is not among them is not wanted."""


class ZonesReader:
    """Asks pods again and again; a pod whose zones have not changed sends no body."""

    def __init__(self) -> None:
        self._known: dict[Endpoint, tuple[str, ZonesDocument]] = {}

    async def read(self, pods: Sequence[Endpoint]) -> OwnZones:
        """The zones of these pods. Never raises."""
        asked = sorted(set(pods), key=str)[:MOST_PODS]
        self._known = {pod: known for pod, known in self._known.items() if pod in asked}
        found: dict[Endpoint, ZonesDocument] = {}
        doubts: dict[Endpoint, str] = dict.fromkeys(asked, f"no complete answer within {SECONDS:g} s")

        async def ask(pod: Endpoint) -> None:
            try:
                found[pod] = await self._ask(pod)
            except NoAnswer as error:
                doubts[pod] = str(error)
            except ValueError as error:
                doubts[pod] = f"the answer is not that of a `dnsproxy serve` ({one_line(str(error))})"
            else:
                doubts[pod] = _doubt(found[pod])

        with trio.move_on_after(SECONDS):
            async with trio.open_nursery() as nursery:
                for pod in asked:
                    nursery.start_soon(ask, pod)
        zones = {zone for document in found.values() for zone in document.zones}
        doubt = next((f"{pod}: {doubts[pod]}" for pod in asked if doubts[pod]), "" if asked else "no pod is ready")
        return OwnZones(tuple(sorted(zones)), len(found), doubt)

    async def _ask(self, pod: Endpoint) -> ZonesDocument:
        known = self._known.get(pod)
        headers = {"If-None-Match": known[0]} if known else {}
        reply = await get(pod, PATH, program="dnsproxy serve", largest=LARGEST, headers=headers)
        if known and not reply.modified:
            return known[1]
        document = parse_zones(reply.body)
        if reply.tag:
            self._known[pod] = reply.tag, document
        return document


def _doubt(document: ZonesDocument) -> str:
    if document.waiting_for:
        return f"waiting for the first sync of: {', '.join(document.waiting_for)}"
    return f"the zones of {document.left_out} hostnames are left out" if document.left_out else ""

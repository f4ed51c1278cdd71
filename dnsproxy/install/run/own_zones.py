"""Own zones: what dnsproxy's pods say about the zones that the cluster's DNS has to ask them for.

The law: a pod that says nothing takes no zone away: the zones are those of all answers together, and they are complete
only if every asked pod has answered completely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dnsproxy.admin.pod_documents import PodDocuments
from dnsproxy.admin.zones_document import LARGEST, PATH, ZonesDocument, parse_zones
from sidecar.values.endpoints import Endpoint


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
    """Asks pods again and again."""

    def __init__(self) -> None:
        self._documents = PodDocuments(PATH, parse_zones, largest=LARGEST)

    async def read(self, pods: Sequence[Endpoint]) -> OwnZones:
        """The zones of these pods. Never raises."""
        answers = await self._documents.read(pods)
        zones = {zone for document in answers.documents.values() for zone in document.zones}
        return OwnZones(tuple(sorted(zones)), len(answers.documents), answers.find_doubt(_doubt))


def _doubt(document: ZonesDocument) -> str:
    if document.waiting_for:
        return f"waiting for the first sync of: {', '.join(document.waiting_for)}"
    return f"the zones of {document.left_out} hostnames are left out" if document.left_out else ""

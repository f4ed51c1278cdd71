"""Own rewrites: what dnsproxy's pods say about the names that a Service answers.

The law: as for zones, a pod that says nothing takes no name away. Of two answers about one name, that of the first pod
in the order of addresses counts; replicas have the same table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dnsproxy.admin.pod_documents import PodDocuments
from dnsproxy.admin.rewrites_document import LARGEST, PATH, Name, RewritesDocument, parse_rewrites_document
from dnsproxy.corefile.rewrite_lines import Rewrite
from dnsproxy.install.change.rewrite_choice import LiveRewrites
from sidecar.values.endpoints import Endpoint


class RewritesReader:
    """Asks pods again and again."""

    def __init__(self) -> None:
        self._documents = PodDocuments(PATH, parse_rewrites_document, largest=LARGEST)

    async def read(self, pods: Sequence[Endpoint]) -> LiveRewrites:
        """The names of these pods. Never raises."""
        answers = await self._documents.read(pods)
        documents = tuple(answers.documents.values())
        names = _union(name for document in documents for name in document.names)
        there = {one.key for one in names}
        exempt = _union(name for document in documents for name in document.exempt)
        return LiveRewrites(
            names,
            tuple(one for one in exempt if one.key not in there),
            plain=max((document.plain for document in documents), default=0),
            left_out=max((document.left_out for document in documents), default=0),
            answered=len(documents),
            doubt=answers.find_doubt(_doubt),
        )


def _union(names: Iterable[Name]) -> tuple[Rewrite, ...]:
    """The names in order, each once."""
    found: dict[tuple[str, object], Rewrite] = {}
    for name in names:
        rewrite = Rewrite(name.hostname, name.reach, name.service)
        found.setdefault(rewrite.key, rewrite)
    return tuple(found.values())


def _doubt(document: RewritesDocument) -> str:
    # Names that are left out are those of the youngest objects: one that is not among the others is not wanted.
    return f"waiting for the first sync of: {', '.join(document.waiting_for)}" if document.waiting_for else ""

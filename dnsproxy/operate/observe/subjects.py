"""Subjects: the ingress classes and Gateways that have hostnames at dnsproxy's pods, followed.

The law: a pod that says nothing takes no subject away: the subjects are those of all answers together, and those that
are missing are gone only if every asked pod has answered completely. Without an answer the last ones stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

import structlog

from dnsproxy.admin.pod_documents import PodAnswers, PodDocuments
from dnsproxy.admin.pod_poller import PodPoller
from dnsproxy.admin.subjects_document import LARGEST, PATH, SubjectsDocument, parse_subjects
from dnsproxy.hostnames.claimed_subjects import ClaimedSubject
from dnsproxy.hostnames.public_addresses import UnknownAddress, merge_unknown
from sidecar.values.endpoints import Endpoint
from sidecar.values.text import one_line

NO_POD = "no pod of dnsproxy is ready"

log = structlog.get_logger("dnsproxy.operate")


class SubjectsFollower:
    """Asks the pods again and again; `on_change` is called after each change."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self.claimed: tuple[ClaimedSubject, ...] = ()
        """Sorted."""
        self.doubt = NO_POD
        """Why a subject may be missing; empty if one that is not among them has no hostname."""
        self.unknown_addresses: tuple[UnknownAddress, ...] = ()
        """Where many of their names lead, if no status names it."""
        self._on_change = on_change
        self._documents = PodDocuments(PATH, parse_subjects, largest=LARGEST)
        self._poller = PodPoller(self._read)

    def follow(self, pods: tuple[Endpoint, ...]) -> None:
        """Ask these admin ports."""
        self._poller.follow(pods)
        if not pods:
            self._note(self.claimed, NO_POD)

    async def run(self) -> NoReturn:
        """Ask until cancelled."""
        await self._poller.run()

    async def _read(self, pods: Sequence[Endpoint]) -> bool:
        answers = await self._documents.read(pods)
        documents = answers.documents.values()
        claimed = merge_subjects(one.subjects for one in documents) if documents else self.claimed
        unknown = merge_unknown(one.unknown_addresses for one in documents) if documents else self.unknown_addresses
        if unknown != self.unknown_addresses:
            self.unknown_addresses = unknown
            self._on_change()
        self._note(claimed, _doubt(answers))
        return bool(documents)

    def _note(self, claimed: tuple[ClaimedSubject, ...], doubt: str) -> None:
        before = self.claimed, self.doubt
        self.claimed, self.doubt = claimed, doubt
        if bool(doubt) != bool(before[1]) and doubt:
            log.warning("dnsproxy's subjects are not certain, and those before stay", cause=one_line(doubt))
        elif bool(doubt) != bool(before[1]):
            log.info("dnsproxy's subjects", subjects=[one.subject for one in claimed])
        if before != (claimed, doubt):
            self._on_change()


def merge_subjects(documents: Iterable[Iterable[ClaimedSubject]]) -> tuple[ClaimedSubject, ...]:
    """The subjects of all documents; of one that several have, what the largest says, and every load balancer."""
    found: dict[str, ClaimedSubject] = {}
    for document in documents:
        for one in document:
            other = found.get(one.subject, one)
            larger = max(one, other, key=lambda each: (each.hostnames, each.examples))
            status = tuple(sorted({*one.status, *other.status}))
            found[one.subject] = ClaimedSubject(
                subject=one.subject, hostnames=larger.hostnames, examples=larger.examples, status=status
            )
    return tuple(found[subject] for subject in sorted(found))


def _doubt(answers: PodAnswers[SubjectsDocument]) -> str:
    return answers.find_doubt(_doubt_of_one)


def _doubt_of_one(document: SubjectsDocument) -> str:
    if document.waiting_for:
        return f"waiting for the first sync of: {', '.join(document.waiting_for)}"
    return f"{document.left_out} subjects are left out" if document.left_out else ""

"""What the follower of the subjects keeps of several answers: the addresses that no status names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dnsproxy.admin.pod_documents import PodAnswers
from dnsproxy.admin.subjects_document import SubjectsDocument
from dnsproxy.hostnames.public_addresses import UnknownAddress
from dnsproxy.operate.observe.subjects import SubjectsFollower
from sidecar.values.endpoints import Endpoint

PODS = (Endpoint("10.244.0.5", 8081), Endpoint("10.244.0.6", 8081))
LESS = UnknownAddress(address="198.51.100.1", hostnames=2, asked=2, examples=("app.example.org",))
MORE = UnknownAddress(address="198.51.100.1", hostnames=9, asked=9, examples=("app.example.org",))
OTHER = UnknownAddress(address="203.0.113.99", hostnames=3, asked=9, examples=("app.example.org",))


class Pods:
    """Answers in the place of pods."""

    def __init__(self) -> None:
        self.documents: dict[Endpoint, SubjectsDocument] = {}

    async def read(self, _: Sequence[Endpoint]) -> PodAnswers[SubjectsDocument]:
        return PodAnswers(self.documents, {pod: "silent" for pod in PODS if pod not in self.documents})


async def test_the_addresses_are_those_of_all_answers_and_stay_without_one() -> None:
    changes: list[int] = []
    follower, pods = SubjectsFollower(lambda: changes.append(1)), Pods()
    stub: Any = pods
    follower._documents = stub

    async def look(*documents: tuple[UnknownAddress, ...]) -> tuple[UnknownAddress, ...]:
        made = (SubjectsDocument(subjects=(), unknown_addresses=one) for one in documents)
        pods.documents = dict(zip(PODS, made, strict=False))
        await follower._read(PODS)
        return follower.unknown_addresses

    assert await look((LESS,), (MORE, OTHER)) == (MORE, OTHER)
    count = len(changes)
    assert await look((LESS,), (MORE, OTHER)) == (MORE, OTHER)
    assert len(changes) == count
    assert await look() == (MORE, OTHER)
    assert await look(()) == ()
    assert len(changes) > count

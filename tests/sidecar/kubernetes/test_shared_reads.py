"""Shared reads: equal requests are sent once, and each reader gets what it would get alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sidecar.kubernetes.cluster import Cluster
from sidecar.kubernetes.errors import ApiError, Forbidden, Gone, NotFound, Oversized, ServerTrouble, TimedOut
from sidecar.kubernetes.objects import Collection, ObjectMeta
from sidecar.kubernetes.one_shot import list_all
from sidecar.kubernetes.shared_reads import SharedReads
from tests.kit.faulty_api import cluster_at

PATH = "/api/v1/nodes"


class Node(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


NODES = Collection("Node", PATH, Node)


def chunk(name: str, *, token: str = "") -> bytes:
    """One of a list: a node, and the continue token."""
    return msgspec.json.encode({"metadata": {"continue": token}, "items": [{"metadata": {"name": name}}]})


class Server:
    """A client whose answers take a second."""

    def __init__(self, *answers: bytes | ApiError) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Mapping[str, str]]] = []

    @property
    def cluster(self) -> Cluster:
        return cluster_at("http://api.example.org")

    async def get(
        self, path: str, params: Mapping[str, str] | None = None, *, seconds: float, largest: int | None = None
    ) -> bytes:
        self.asked.append((path, params or {}))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        with trio.move_on_after(seconds):
            await trio.sleep(1)
            if isinstance(answer, ApiError):
                raise answer
            if largest is not None and len(answer) > largest:
                raise Oversized("too long")
            return answer
        raise TimedOut("too late")


def shared(server: Server) -> SharedReads:
    return SharedReads(server)


async def read_together(reads: SharedReads, *calls: Mapping[str, Any]) -> list[bytes | ApiError]:
    found: dict[int, bytes | ApiError] = {}

    async def read(number: int, call: Mapping[str, Any]) -> None:
        try:
            usual: dict[str, Any] = {"path": PATH, "seconds": 5.0}
            found[number] = await reads.get(**(usual | dict(call)))
        except ApiError as error:
            found[number] = error

    async with trio.open_nursery() as nursery:
        for number, call in enumerate(calls):
            nursery.start_soon(read, number, call)
            # Of two equal requests, the first is that of the first reader.
            await wait_all_tasks_blocked()
    return [found[number] for number in range(len(calls))]


@pytest.mark.parametrize("answer", [b"{}", b"", Forbidden("no"), NotFound("absent"), ServerTrouble("500")])
async def test_an_answer_or_an_error_is_shared_by_all_readers(
    answer: bytes | ApiError, autojump_clock: MockClock
) -> None:
    server = Server(answer)
    reads = shared(server)
    assert await read_together(reads, {}, {}, {}) == [answer] * 3
    assert await read_together(reads, {}) == [answer]
    assert len(server.asked) == 1
    assert autojump_clock.current_time() == pytest.approx(1)


@pytest.mark.parametrize(
    "other",
    [{"path": "/api/v1/services"}, {"params": {"limit": "500"}}, {"params": {"limit": "1", "continue": "x"}}],
    ids=["path", "parameter", "page"],
)
async def test_another_request_is_sent_for_itself(other: Mapping[str, Any], autojump_clock: MockClock) -> None:
    server = Server(b"{}")
    await read_together(shared(server), {"params": {"limit": "1"}}, other)
    assert len(server.asked) == 2
    assert autojump_clock.current_time() == pytest.approx(1)


async def test_a_long_answer_is_not_kept(autojump_clock: MockClock) -> None:
    server = Server(b"x" * 300_000)
    reads = shared(server)
    await read_together(reads, {})
    await read_together(reads, {})
    assert len(server.asked) == 2
    assert autojump_clock.current_time() == pytest.approx(2)


async def test_a_long_answer_is_shared_by_those_who_wait_for_it(autojump_clock: MockClock) -> None:
    server = Server(b"x" * 300_000)
    found = await read_together(shared(server), {}, {}, {"largest": 200_000})
    assert found[:2] == [b"x" * 300_000] * 2
    assert isinstance(found[2], Oversized)
    assert len(server.asked) == 1
    assert autojump_clock.current_time() == pytest.approx(1)


async def test_a_request_that_was_cancelled_is_sent_again(autojump_clock: MockClock) -> None:
    server = Server(b"{}")
    reads = shared(server)

    async def give_up() -> None:
        with trio.move_on_after(0.5):
            await reads.get(PATH, seconds=5)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(give_up)
        await wait_all_tasks_blocked()
        assert await reads.get(PATH, seconds=5) == b"{}"
    assert len(server.asked) == 2
    assert autojump_clock.current_time() == pytest.approx(1.5)


async def test_a_reader_waits_for_another_ones_request_only_within_its_own_time(autojump_clock: MockClock) -> None:
    reads = shared(Server(b"{}"))
    found = await read_together(reads, {}, {"seconds": 0.25})
    assert found[0] == b"{}"
    assert isinstance(found[1], TimedOut)
    assert autojump_clock.current_time() == pytest.approx(1)


async def test_the_largest_answer_is_each_readers_own(autojump_clock: MockClock) -> None:
    server = Server(b"12345")
    reads = shared(server)
    found = await read_together(reads, {"largest": 3})
    assert isinstance(found[0], Oversized)
    assert await read_together(reads, {}) == [b"12345"]
    assert isinstance((await read_together(reads, {"largest": 3}))[0], Oversized)
    assert await read_together(reads, {"largest": 5}) == [b"12345"]
    assert len(server.asked) == 2
    assert autojump_clock.current_time() == pytest.approx(2)


async def test_after_an_expired_continue_token_each_list_begins_anew_and_is_shared_again(
    autojump_clock: MockClock,
) -> None:
    server = Server(
        chunk("old", token="expired"), Gone("410: expired"), chunk("n1", token="new"), chunk("n2"), Forbidden("a fifth")
    )
    reads, found = shared(server), list[list[str]]()

    async def read() -> None:
        found.append(sorted(await list_all(reads, NODES)))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(read)
    assert found == [["n1", "n2"]] * 3
    assert [params.get("continue") for _, params in server.asked] == [None, "expired", None, "new"]
    assert autojump_clock.current_time() == pytest.approx(4)


async def test_other_lists_are_kept_when_a_continue_token_expires(autojump_clock: MockClock) -> None:
    server = Server(b"{}", Gone("410: expired"))
    reads = shared(server)
    await read_together(reads, {"path": "/api/v1/services"})
    await read_together(reads, {"params": {"continue": "x"}})
    assert await read_together(reads, {"path": "/api/v1/services"}) == [b"{}"]
    assert autojump_clock.current_time() == pytest.approx(2)

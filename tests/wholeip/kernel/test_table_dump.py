"""A kernel that is interrupted, refuses or loses its answers; test_nft_contract.py has what works."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio

from tests.wholeip.ruleset.test_netlink import message
from tests.wholeip.ruleset.test_nft_dump import T, ours, set_message
from tests.wholeip.ruleset.test_set_elements import datagram, element, packed
from wholeip.kernel import table_dump
from wholeip.kernel.table_dump import dump_table, read_generation
from wholeip.ruleset.netlink import DONE, ERROR, parse_messages
from wholeip.ruleset.ruleset import Ruleset, make_ruleset
from wholeip.ruleset.static_rules import COLLECTIONS, Collection, static_part

GET_SETS, GET_ELEMENTS = 10 << 8 | 10, 10 << 8 | 13
END = message(bytes(4), kind=DONE)
INTERRUPTED = message(bytes(4), kind=DONE, flags=0x12)


def refused(number: int) -> bytes:
    return message(struct.pack("=i", -number), kind=ERROR)


@dataclass
class Kernel:
    """Answers the requests for our table; `answer` may answer otherwise."""

    answer: Callable[[int, int], Sequence[bytes | OSError] | None] = lambda _kind, _number: None
    """From the kind of a request and the number of those of its kind before, what is received."""
    changing: trio.Lock = field(default_factory=trio.Lock)
    held: list[bool] = field(default_factory=list)
    """For each request, whether our own changes were held."""
    kinds: list[int] = field(default_factory=list)
    waiting: list[bytes | OSError] = field(default_factory=list)

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    async def send(self, request: bytes) -> None:
        await trio.lowlevel.checkpoint()
        assert self.waiting == []
        ((kind, _, _),) = parse_messages(request)
        answer = self.answer(kind, self.kinds.count(kind))
        self.kinds.append(kind)
        self.held.append(self.changing.locked())
        if answer is None:
            answer = [END] if kind == GET_ELEMENTS else [*(ours() if len(self.kinds) == 1 else ()), END]
        self.waiting = [*answer]

    async def recv(self, _size: int) -> bytes:
        await trio.lowlevel.checkpoint()
        received = self.waiting.pop(0)
        if isinstance(received, OSError):
            self.waiting = []
            raise received
        return received

    async def dump(self, monkeypatch: pytest.MonkeyPatch) -> Ruleset | None:
        async def opened() -> Any:
            await trio.lowlevel.checkpoint()
            return self

        monkeypatch.setattr(table_dump, "netfilter_socket", opened)
        return await dump_table(T, self.changing)


def on_elements(*answers: Sequence[bytes | OSError]) -> Callable[[int, int], Sequence[bytes | OSError] | None]:
    """These answers to the first requests for elements."""
    return lambda kind, number: answers[number] if kind == GET_ELEMENTS and number < len(answers) else None


async def test_an_empty_table_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel()
    assert await kernel.dump(monkeypatch) == Ruleset(T, {name: {} for name in make_ruleset([]).elements})
    assert not any(kernel.held)


async def test_a_dump_that_was_interrupted_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    half, whole = datagram(element(packed("192.0.2.1"))), datagram(element(packed("192.0.2.2")))
    kernel = Kernel(on_elements([half, INTERRUPTED], [whole, END]))
    found = await kernel.dump(monkeypatch)
    assert found is not None
    assert found.elements["addresses_v4"] == {"192.0.2.2": ""}
    assert not any(kernel.held)


async def test_after_some_tries_our_own_changes_are_held_and_no_longer_than_for_that_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = Kernel(on_elements(*[[INTERRUPTED]] * 5))
    assert await kernel.dump(monkeypatch) is not None
    of_elements = [held for kind, held in zip(kernel.kinds, kernel.held, strict=True) if kind == GET_ELEMENTS]
    assert of_elements[:7] == [False] * 4 + [True] * 2 + [False]
    assert not any(of_elements[6:])
    assert not kernel.changing.locked()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(on_elements(*[[INTERRUPTED]] * 99), id="interrupted all the time"),
        pytest.param(on_elements([refused(errno.EPERM)]), id="refused"),
        pytest.param(on_elements([END], [refused(errno.ENOENT)]), id="the table goes meanwhile"),
        pytest.param(on_elements([OSError(errno.ENOBUFS, "no buffer space")]), id="ENOBUFS"),
        pytest.param(on_elements([message(struct.pack("=i", -errno.EINTR), kind=DONE)]), id="an end that is an error"),
        pytest.param(on_elements([datagram(element(b"12345")), END]), id="a key of another length"),
        pytest.param(on_elements([datagram(b"\x04\0\1\0"), END]), id="an element without a key"),
        pytest.param(on_elements([b"x", END]), id="no message"),
        pytest.param(lambda kind, _: [refused(errno.EOPNOTSUPP)] if kind != GET_ELEMENTS else None, id="no dumps"),
        pytest.param(lambda kind, _: [END] if kind != GET_ELEMENTS else None, id="no table"),
    ],
)
async def test_anything_else_is_left_to_nft(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    kernel = Kernel(answer)
    assert await kernel.dump(monkeypatch) is None
    assert not kernel.changing.locked()


async def test_a_set_of_another_program_is_told_and_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    more = set_message(Collection("more", "ipv4_addr"))
    kernel = Kernel(lambda kind, _: [more, END] if kind == GET_SETS else None)
    found = await kernel.dump(monkeypatch)
    assert found is not None
    assert found.static == static_part() | {"set more ipv4_addr"}
    assert kernel.kinds.count(GET_ELEMENTS) == len(COLLECTIONS)


async def test_a_set_of_ours_that_is_missing_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    first = set_message(COLLECTIONS[0])
    kernel = Kernel(lambda kind, _: [END] if kind == GET_ELEMENTS else [first, END])
    found = await kernel.dump(monkeypatch)
    assert found == Ruleset(T, {one.name: {} for one in COLLECTIONS}, frozenset({COLLECTIONS[0].identity()}))
    assert kernel.kinds.count(GET_ELEMENTS) == 1


@pytest.mark.parametrize("fails", ["open", "answer"])
async def test_without_a_generation_there_is_none(monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    async def opened() -> Any:
        await trio.lowlevel.checkpoint()
        if fails == "open":
            raise PermissionError(errno.EPERM, "not permitted")
        return Kernel(lambda _kind, _number: [refused(errno.EPERM)])

    monkeypatch.setattr(table_dump, "netfilter_socket", opened)
    assert await read_generation() is None

"""Reads our table from the kernel by netlink, in slices between which other tasks run.

The law: only the elements of our sets and maps are read, however much another program has put into the table, and only
if they are fully understood. Otherwise the result is None, and the caller has to read the table with nft. This module
runs no program.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final

import trio

from sidecar.loop.slices import in_slices
from wholeip.kernel.netlink_socket import netfilter_socket
from wholeip.ruleset.netlink import is_interrupted, parse_answer
from wholeip.ruleset.nft_dump import (
    format_element_request,
    format_elements_request,
    format_generation_request,
    format_static_requests,
    parse_generation,
    parse_static,
)
from wholeip.ruleset.ruleset import Ruleset
from wholeip.ruleset.set_elements import NotUnderstood, format_element, parse_elements
from wholeip.ruleset.static_rules import COLLECTIONS, Collection
from wholeip.ruleset.steps import at_once

GiveWay = Callable[[], Awaitable[None]]
Place = tuple[str, str]
"""A set or map, and the key of an element."""
_DATAGRAM_SIZE: Final = 65536
_TIMEOUT_SECONDS: Final = 30
_TRIES: Final = 4
"""Of a dump that changes interrupt, each without and with our own changes held."""
_NOT_READ: Final = (OSError, struct.error, LookupError, ValueError, trio.TooSlowError)
"""ValueError includes NotUnderstood."""


async def dump_table(table: str, changing: trio.Lock, give_way: GiveWay = trio.lowlevel.checkpoint) -> Ruleset | None:
    """The ruleset in the kernel; None without a table, if an element is not understood, or if the kernel refuses.

    A set that is not ours adds to the static part alone: nft lists 25,000 of them, even if empty, for half a minute.
    Each set is as it was at one time between the call and the return, but not all at the same time. `changing` is held
    while nothing of ours may change; `give_way` is that of in_slices.
    """
    try:
        with trio.fail_after(_TIMEOUT_SECONDS), await netfilter_socket() as kernel:
            answers = [await _dump(kernel, request, changing) for request in format_static_requests(table)]
            steps = parse_static([one for answer in answers for one in answer], table)
            static = await in_slices(steps, give_way=give_way)
            elements: dict[str, dict[str, str]] = {one.name: {} for one in COLLECTIONS}
            for collection in COLLECTIONS:
                if collection.identity() in static:
                    answer = await _dump(kernel, format_elements_request(table, collection.name), changing)
                    elements[collection.name] = await in_slices(parse_elements(answer, collection), give_way=give_way)
            return Ruleset(table, elements, static) if static else None
    except _NOT_READ:
        return None


async def find_elements(table: str, wanted: Iterable[Place]) -> dict[Place, str]:
    """The values of those of some elements that are there, empty in a set; each is asked for by its key.

    A dump walks through a hash table, and lacks elements while the kernel resizes it; a look-up does not. An element
    that the kernel does not tell, or in words that are not understood, counts as absent.
    """
    collections = {one.name: one for one in COLLECTIONS if not one.interval}
    found: dict[Place, str] = {}
    with suppress(*_NOT_READ), trio.fail_after(_TIMEOUT_SECONDS), await netfilter_socket() as kernel:
        for name, key in wanted:
            collection = collections.get(name)
            if collection is None:
                continue
            await kernel.send(format_element_request(table, name, format_element(collection, key)))
            answer = await kernel.recv(_DATAGRAM_SIZE)
            if not parse_answer(answer):
                found |= {(name, key): value for key, value in _understood(answer, collection).items()}
    return found


def _understood(answer: bytes, collection: Collection) -> dict[str, str]:
    try:
        return at_once(parse_elements([answer], collection))
    except (NotUnderstood, struct.error):
        return {}


async def read_generation() -> int | None:
    """The number of the last transaction with any table of this network namespace; None if the kernel tells none."""
    try:
        with trio.fail_after(_TIMEOUT_SECONDS), await netfilter_socket() as kernel:
            await kernel.send(format_generation_request())
            return parse_generation(await kernel.recv(_DATAGRAM_SIZE))
    except _NOT_READ:
        return None


async def _dump(kernel: trio.socket.SocketType, request: bytes, changing: trio.Lock) -> list[bytes]:
    """The datagrams of a whole answer. Raises OSError."""
    for _ in range(_TRIES):
        if (answer := await _try_dump(kernel, request)) is not None:
            return answer
    async with changing:
        for _ in range(_TRIES):
            if (answer := await _try_dump(kernel, request)) is not None:
                return answer
    raise InterruptedError("other programs change tables all the time")


async def _try_dump(kernel: trio.socket.SocketType, request: bytes) -> list[bytes] | None:
    """The same, or None if a change interrupted it. All is received before any of it is parsed: that takes longer."""
    await kernel.send(request)
    answer, interrupted = [], False
    while True:
        datagram = await kernel.recv(_DATAGRAM_SIZE)
        answer.append(datagram)
        interrupted = interrupted or is_interrupted(datagram)
        if (number := parse_answer(datagram)) is not None:
            if number:
                raise OSError(number, os.strerror(number))
            return None if interrupted else answer

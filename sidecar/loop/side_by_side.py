"""Side by side: reads that run at the same time, each with its result.

The law: the order of the results is that of the program, never that of the answers. A StartError ends all of them and
is raised as it is, not in a group. Tested in tests/sidecar/loop/test_side_by_side.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Generic, Protocol, TypeVar, TypeVarTuple

import trio

from sidecar.values.errors import StartError

T = TypeVar("T")
U = TypeVar("U")
Ts = TypeVarTuple("Ts")


class Pending(Generic[T]):
    """The result of one read; usable after the block of side_by_side, and in it by waiting."""

    _value: T

    def __init__(self) -> None:
        self._read = trio.Event()

    @property
    def value(self) -> T:
        """The result. Raises AttributeError within the block."""
        return self._value

    async def wait_read(self, read: Callable[[*Ts], Awaitable[T]], *arguments: *Ts) -> None:
        """Read, and keep the result."""
        self._value = await read(*arguments)
        self._read.set()

    async def wait(self) -> T:
        """The result, for a read that needs another one's."""
        await self._read.wait()
        return self._value


class Start(Protocol):
    """Starts a read, and returns the place of its result."""

    def __call__(self, read: Callable[[*Ts], Awaitable[T]], /, *arguments: *Ts) -> Pending[T]:
        """Start `read(*arguments)`."""
        ...


@asynccontextmanager
async def side_by_side() -> AsyncIterator[Start]:
    """The block ends when all reads that were started in it have ended. Raises the first StartError of a read."""
    errors: list[StartError] = []
    async with trio.open_nursery() as nursery:

        async def run(pending: Pending[T], read: Callable[[*Ts], Awaitable[T]], arguments: tuple[*Ts]) -> None:
            try:
                await pending.wait_read(read, *arguments)
            except StartError as error:
                errors.append(error)
                nursery.cancel_scope.cancel()

        def start(read: Callable[[*Ts], Awaitable[T]], /, *arguments: *Ts) -> Pending[T]:
            pending: Pending[T] = Pending()
            nursery.start_soon(run, pending, read, arguments)
            return pending

        yield start
    if errors:
        raise errors[0]


async def read_each(read: Callable[[T], Awaitable[U]], ones: Iterable[T]) -> list[U]:
    """The result of a read for each, in their order."""
    async with side_by_side() as start:
        pending = [start(read, one) for one in ones]
    return [one.value for one in pending]

"""Several ways to one answer: each is tried when the one before has failed or keeps silent, and the first answer wins.

The law: a slow way is not given up for a later one, it runs beside it; when the answer is there, or the caller is
cancelled, nothing is left running.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import trio

Ask = Callable[[], Awaitable[bytes | None]]
"""One way: the answer, or None where it has none."""


async def first_answer(asks: Iterable[Ask], *, patience: float) -> bytes | None:
    """The first answer, or None when every way has failed; `patience` is in seconds. The deadline is the caller's."""
    answers: list[bytes] = []
    async with trio.open_nursery() as nursery:

        async def run(ask: Ask, ended: trio.Event) -> None:
            answer = await ask()
            if answer is not None:
                answers.append(answer)
                nursery.cancel_scope.cancel()
            ended.set()

        for ask in asks:
            ended = trio.Event()
            nursery.start_soon(run, ask, ended)
            with trio.move_on_after(patience):
                await ended.wait()
    return answers[0] if answers else None

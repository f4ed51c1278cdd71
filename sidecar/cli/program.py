"""Runs a trio program, and turns its end into an exit status.

The law: an expected failure is one line on stderr and an exit status; only a bug shows a traceback.
"""

from __future__ import annotations

import errno
import os
import select
import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Final, NoReturn, TypeVarTuple

import click

from sidecar.sockets.descriptors import descriptor_limit, raise_descriptor_limit, too_few
from sidecar.values.errors import StartError
from sidecar.values.text import one_line

Arguments = TypeVarTuple("Arguments")

INTERRUPTED: Final = 130
"""The exit status after Ctrl-C: 128 plus the number of SIGINT, as in shells."""


def run_program(
    async_fn: Callable[[*Arguments], Awaitable[int | None]], *args: *Arguments, handlers: int | None = None
) -> NoReturn:
    """Run a program under trio and exit with the status that it returns; None is 0.

    With `handlers` the program is hosted (loop.host): the most handlers that are called between two turns of trio.

    A StartError, alone or in nested groups, is one line on stderr and its status; so is a want of descriptors, with 2.
    Ctrl-C exits with 130. If the reader of stdout has gone, the program ends without a message. Any other exception is
    a bug and keeps its traceback.
    """
    import trio  # noqa: PLC0415  # --help and completion need no event loop, and it is half of their time

    run: Callable[..., int | None] = trio.run
    if handlers is not None:
        from sidecar.loop.host import run_hosted  # noqa: PLC0415  # most programs have no host

        run = partial(run_hosted, batch=handlers)
    raise_descriptor_limit()
    try:
        status = run(async_fn, *args)
    except (StartError, KeyboardInterrupt, OSError, BaseExceptionGroup) as error:
        known = _status_of(list(_leaves(error)))
        if known is None:
            raise
        raise SystemExit(known) from None
    raise SystemExit(status or 0)


def _status_of(causes: list[BaseException]) -> int | None:
    if all(isinstance(cause, KeyboardInterrupt) for cause in causes):
        return INTERRUPTED
    if all(isinstance(cause, BrokenPipeError) for cause in causes) and _stdout_has_no_reader():
        return 0
    starts = [_as_start_error(cause) for cause in causes if not isinstance(cause, KeyboardInterrupt)]
    known = [start for start in starts if start is not None]
    if len(known) < len(starts):
        return None
    # Several parts may run out of descriptors together, with one message.
    for message in dict.fromkeys(map(str, known)):
        click.echo(f"Error: {one_line(message)}", err=True)
    return known[0].status


def _as_start_error(cause: BaseException) -> StartError | None:
    if isinstance(cause, OSError) and cause.errno == errno.EMFILE:
        return StartError(too_few(descriptor_limit()))
    return cause if isinstance(cause, StartError) else None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _stdout_has_no_reader() -> bool:
    """Checks the descriptor itself: a broken socket raises the same exception and must not end a server silently."""
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, ValueError, OSError):
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    if not any(events & select.POLLERR for _, events in poll.poll(0)):
        return False
    # The interpreter flushes stdout once more at its end; that must not fail either.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return True

"""Watches a live answer for a command: until it has seen enough, a time has passed, a signal comes or the server ends.

The law: the exit status depends on what was seen, not on what ended the watching; only a server that cannot be asked,
or is lost, is an error. Tested in test_watching.py.
"""

from __future__ import annotations

import math
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import trio

from sidecar.admin.asking import NoAnswer
from sidecar.admin.following import follow
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.tally import Tally


async def watch(
    endpoint: Endpoint,
    target: str,
    *,
    program: str,
    show: Callable[[bytes], bool],
    tally: Tally,
    seconds: float | None = None,
) -> ExitStatus:
    """Call `show` for each line of the live answer to `GET target`; it returns whether the line counts.

    SIGINT and SIGTERM end the watching, as `seconds` do. `show` raises ValueError for a line that it does not
    understand. `program` is the command expected there, for messages. Raises StartError with status 3.
    """
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_at, signals, nursery.cancel_scope)
            with trio.move_on_after(math.inf if seconds is None else seconds):
                try:
                    async with aclosing(follow(endpoint, target, program=program)) as lines:
                        await _count(lines, show, tally)
                except NoAnswer as error:
                    raise StartError(f"--admin {endpoint}: {error}", status=ExitStatus.UNKNOWN) from None
                except ValueError as error:
                    raise StartError(
                        f"--admin {endpoint}: the answer is not one of this version's `{program}` ({error})",
                        status=ExitStatus.UNKNOWN,
                    ) from None
            nursery.cancel_scope.cancel()
    return tally.status


async def _count(lines: AsyncIterator[bytes], show: Callable[[bytes], bool], tally: Tally) -> None:
    async for line in lines:
        if show(line):
            tally.add()
        if tally.is_complete:
            return


async def _cancel_at(signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
    await anext(signals)
    scope.cancel()

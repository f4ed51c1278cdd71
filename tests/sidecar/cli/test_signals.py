"""Signals: the first asks a program to end; the second, or the end of the grace period, cancels it."""

from __future__ import annotations

import os
import signal

import pytest
import trio

from sidecar.cli.signals import run_until_signal


def send(number: int) -> None:
    os.kill(os.getpid(), number)


async def test_what_returns_by_itself_exits_0() -> None:
    async def serve(_stopping: trio.Event) -> None:
        await trio.lowlevel.checkpoint()

    assert await run_until_signal(serve, grace=60) == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_the_first_signal_asks_to_finish(number: signal.Signals, status: int) -> None:
    finished = False

    async def serve(stopping: trio.Event) -> None:
        nonlocal finished
        send(number)
        await stopping.wait()
        finished = True

    assert await run_until_signal(serve, grace=60) == status
    assert finished


async def test_the_end_of_the_grace_cancels() -> None:
    async def serve(_stopping: trio.Event) -> None:
        send(signal.SIGTERM)
        await trio.sleep_forever()

    assert await run_until_signal(serve, grace=0.05) == 0


async def test_no_grace_at_all_cancels_at_once() -> None:
    async def serve(_stopping: trio.Event) -> None:
        send(signal.SIGTERM)
        await trio.sleep_forever()

    assert await run_until_signal(serve, grace=0) == 0


async def test_a_second_signal_cancels() -> None:
    async def serve(stopping: trio.Event) -> None:
        send(signal.SIGTERM)
        await stopping.wait()
        send(signal.SIGINT)
        await trio.sleep_forever()

    assert await run_until_signal(serve, grace=60) == 0


async def test_an_error_of_the_program_comes_out() -> None:
    async def serve(_stopping: trio.Event) -> None:
        raise ZeroDivisionError("its own error")

    with pytest.RaisesGroup(pytest.RaisesExc(ZeroDivisionError, match="its own error")) as caught:
        await run_until_signal(serve, grace=60)
    assert len(caught.value.exceptions) == 1

"""An admin port in this process with a tap, and `dnsproxy tap` as a program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import trio
from prometheus_client import CollectorRegistry

from dnsproxy.admin.tap_route import TapRoute
from dnsproxy.tap.hub import Tap
from dnsproxy.tap.mode import TapMode
from dnsproxy.tap.seen import Outcome
from sidecar.admin.server import Readiness, serve_admin
from sidecar.sockets.listeners import bound_endpoint, listen_tcp
from sidecar.values.endpoints import Endpoint
from tests.kit import messages

SECONDS: Final = 50
"""For the start of a program and what it then does: a busy machine may take tens of seconds."""

PLAIN: Final = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "KUBECONFIG")}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dnsproxy", "tap", *arguments]


class Listened:
    """A tap, and the events that somebody began or ceased to listen."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.tap = Tap()
        self._changed = trio.Event()
        self.tap.on_change = self._note_change

    def note(
        self,
        name: str = "app.example.org",
        client: str = "192.0.2.7",
        outcome: Outcome = Outcome.REFUSED,
        qtype: int = 1,
    ) -> None:
        query = messages.query(name, qtype)
        self.tap.note((None, (client, 5353)), query, query, outcome, seconds=0.001)

    async def wait_listening(self, listening: bool = True) -> None:
        with trio.fail_after(SECONDS):
            while self.tap.listening is not listening:
                await self._changed.wait()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


@asynccontextmanager
async def tapped(mode: TapMode = TapMode.ON) -> AsyncIterator[Listened]:
    listener = listen_tcp(Endpoint("127.0.0.1", 0), flag="--admin")
    listened = Listened(bound_endpoint(listener))
    serve = partial(
        serve_admin,
        [listener],
        readiness=lambda: Readiness(ready=True, reason="ready"),
        registry=CollectorRegistry(),
        page=str,
        routes=TapRoute(listened.tap, mode).routes(),
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(serve)
        yield listened
        nursery.cancel_scope.cancel()


class Running:
    """A `dnsproxy tap` whose output is read."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self._read = b""

    async def read_until(self, text: bytes) -> bytes:
        """All of stdout, when it has this text."""
        assert self.process.stdout is not None
        with trio.fail_after(SECONDS):
            while text not in self._read:
                received = await self.process.stdout.receive_some()
                assert received, self._read
                self._read += received
        return self._read

    async def read_note(self) -> bytes:
        """The first line of stderr."""
        assert self.process.stderr is not None
        read = b""
        with trio.fail_after(SECONDS):
            while not read.endswith(b"\n"):
                received = await self.process.stderr.receive_some(1)
                assert received, read
                read += received
        return read

    async def end(self) -> tuple[int, str, str]:
        """The exit status, stdout and stderr."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        with trio.fail_after(SECONDS):
            output = self._read + b"".join([bytes(one) async for one in self.process.stdout])
            errors = b"".join([bytes(one) async for one in self.process.stderr])
            return await self.process.wait(), output.decode(), errors.decode()


@asynccontextmanager
async def running(*arguments: str, environment: Mapping[str, str] = PLAIN) -> AsyncIterator[Running]:
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(
            partial(
                trio.run_process,
                command(*arguments),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                check=False,
                env=environment,
            )
        )
        yield Running(process)
        nursery.cancel_scope.cancel()

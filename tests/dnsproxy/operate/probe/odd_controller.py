"""A controller on 127.0.0.1 whose applications are odd, each in its own way.

The law: it speaks HTTP, takes the PROXY header in version 1 or not at all, and answers a host that it does not know by
itself with 404, as controllers do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum

import trio

from sidecar.values.endpoints import Endpoint

V2 = b"\r\n\r\n\0\r\nQUIT\n"


class Application(Enum):
    """What an application does with a request."""

    WELL = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    BAD_REQUEST = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"
    CLOSES = ""
    HANGS = "nothing"


@dataclass
class OddController:
    """`demands`: it requires the header; otherwise it answers 400 to one."""

    hosts: Mapping[str, Application]
    demands: bool = True
    asked: Counter[str] = field(default_factory=Counter)
    """Requests by host."""
    endpoint: Endpoint = field(init=False)

    async def serve(self, stream: trio.SocketStream) -> None:
        # A client that has seen enough goes away.
        with suppress(trio.BrokenResourceError):
            await self._serve(stream)

    async def _serve(self, stream: trio.SocketStream) -> None:
        async with stream:
            received = b""
            while b"\r\n\r\n" not in received:
                more = await stream.receive_some(4096)
                if not more:
                    return
                received += more
            headed = not received.startswith(b"GET ")
            if headed is not self.demands or received.startswith(V2):
                if headed:
                    await stream.send_all(Application.BAD_REQUEST.value.encode())
                return
            await self._answer(stream, received.decode())

    async def _answer(self, stream: trio.SocketStream, received: str) -> None:
        host = next(line[6:] for line in received.splitlines() if line.lower().startswith("host: "))
        self.asked[host] += 1
        application = self.hosts.get(host)
        if application is None:
            await stream.send_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        elif application is Application.HANGS:
            await trio.sleep_forever()
        else:
            await stream.send_all(application.value.encode())


@asynccontextmanager
async def running(hosts: Mapping[str, Application], *, demands: bool = True) -> AsyncIterator[OddController]:
    """A controller that listens."""
    controller = OddController(hosts, demands)
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    controller.endpoint = Endpoint("127.0.0.1", listener.socket.getsockname()[1])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, controller.serve, [listener])
        yield controller
        nursery.cancel_scope.cancel()

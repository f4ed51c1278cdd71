"""TCP clients that misbehave: a bounded number of connections to loopback, opened again when they are closed on.

The law: no more than `size` at a time and `most` in all; nothing here ever waits.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import Final, Self

MOST: Final = 5_000


class Client:
    """One connection and what it still wants to send."""

    def __init__(self, port: int, octets: bytes) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.socket.connect_ex(("127.0.0.1", port))
        self._left = memoryview(octets)

    def send(self, most: int) -> int:
        """Send up to `most` octets; how many went. Raises OSError where the connection is over."""
        try:
            count = self.socket.send(self._left[:most])
        except BlockingIOError:
            return 0
        self._left = self._left[count:]
        return count

    def is_over(self) -> bool:
        """Whether the server has closed it."""
        try:
            return not self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True


class Crowd:
    """A context manager that owns the connections."""

    def __init__(self, port: int, *, size: int, octets: Callable[[], bytes], most: int = MOST) -> None:
        self._port = port
        self._size = size
        self._octets = octets
        self._left = most
        self._clients: list[Client] = []
        self.opened = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.socket.close()

    def press(self, most: int) -> None:
        """Let every connection send up to `most` octets, and put new ones where the server ended some."""
        for client in list(self._clients):
            if not self._press_one(client, most):
                client.socket.close()
                self._clients.remove(client)
        while len(self._clients) < self._size and self._left:
            self._left -= 1
            self.opened += 1
            self._clients.append(Client(self._port, self._octets()))

    def _press_one(self, client: Client, most: int) -> bool:
        with contextlib.suppress(OSError):
            client.send(most)
            return not client.is_over()
        return False

"""An upstream that knows no name, in a thread: what is not in the table is denied at once."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def knowing_nothing() -> Iterator[int]:
    """The port of an upstream that answers NXDOMAIN to everything, for a block."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as upstream:
        upstream.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=_deny_all, args=(upstream,), daemon=True)
        thread.start()
        port = upstream.getsockname()[1]
        try:
            yield port
        finally:
            # An empty datagram is no query: it ends the thread.
            upstream.sendto(b"", ("127.0.0.1", port))
            thread.join()


def _deny_all(upstream: socket.socket) -> None:
    while True:
        message, client = upstream.recvfrom(65535)
        if not message:
            return
        question = message[12 : message.index(b"\0", 12) + 5]
        upstream.sendto(message[:2] + b"\x81\x83\0\1\0\0\0\0\0\0" + question, client)

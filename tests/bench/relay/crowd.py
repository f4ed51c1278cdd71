"""Many clients that ask once and then stay: a process of its own, so that its descriptors are its own.

The law: every client has had its answer before the crowd says that it is there.

    python -m tests.bench.relay.crowd PORT COUNT        prints READY, and stays until it is ended
"""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
import sys
from typing import Final

READY: Final = "all are there"
_REQUEST: Final = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
_SILENCE: Final = 30.0


def open_client(port: int) -> socket.socket:
    """A connection that has had one answer. Raises OSError."""
    client = socket.create_connection(("127.0.0.1", port), timeout=_SILENCE)
    client.sendall(_REQUEST)
    answer = client.recv(65_536)
    if not answer.startswith(b"HTTP/1.1 200 "):
        client.close()
        raise OSError(f"no answer, but {answer[:100]!r}")
    return client


def main(arguments: list[str]) -> None:
    """See the head of this file."""
    port, count = map(int, arguments)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.ExitStack() as clients:
        for _ in range(count):
            clients.enter_context(open_client(port))
        print(READY, flush=True)  # noqa: T201  # its output
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])

"""A crowd of idle TCP connections in a process of its own, so that the test's own descriptors stay free.

    python -m tests.kit.idle_crowd PORT COUNT

They come from many loopback addresses. A line on stdout says that all are open; the end of stdin closes them. The law:
a connection that the server refuses or ends is not replaced.
"""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.kit.launched import ROOT

_EACH = 100
"""Connections from one address: fewer than a server takes from one client."""


@contextmanager
def idle_crowd(port: int, count: int) -> Iterator[None]:
    """`count` idle connections to a port of 127.0.0.1 for the duration of a block."""
    command = [sys.executable, "-m", "tests.kit.idle_crowd", str(port), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"open\n"
            yield
        finally:
            process.kill()


def main(port: int, count: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    crowd = []
    for number in range(count):
        source = (f"127.0.1.{1 + number // _EACH % 200}", 0)
        crowd.append(socket.create_connection(("127.0.0.1", port), timeout=60, source_address=source))
    sys.stdout.write("open\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

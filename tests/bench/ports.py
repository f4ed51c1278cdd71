"""Ports for servers that are about to start.

The law: free for UDP and for TCP, and outside the range that the kernel gives to clients, because thousands of those
come and go between the choice of a port and the server's bind.
"""

from __future__ import annotations

import random
import socket
from typing import Final

_RANGE: Final = range(20_000, 32_000)
_TRIES: Final = 100


class NoPort(Exception):
    """All ports that were tried are taken."""


def free_port() -> int:
    """A port of loopback. Raises NoPort."""
    for port in random.sample(_RANGE, _TRIES):
        if all(_is_free(port, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)):
            return port
    raise NoPort(f"{_TRIES} ports between {_RANGE.start} and {_RANGE.stop} are all taken")


def _is_free(port: int, kind: socket.SocketKind) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True

"""Ports for servers that are about to start.

The law: free for UDP and for TCP on every address, and outside the kernel's range for client ports, because thousands
of those are used between the choice of a port and the server's bind. Each process of a test run uses a separate share
of the ports, so that two servers never choose the same port.
"""

from __future__ import annotations

import functools
import itertools
import os
import random
import socket
from collections.abc import Iterator
from typing import Final

_RANGE: Final = range(20_000, 32_000)
_SHARES: Final = 5
"""One share for each possible worker of pytest-xdist, and the last one for any other process."""


class NoPort(Exception):
    """All ports of the share are taken."""


def free_port() -> int:
    """A port that is free now. Raises NoPort."""
    return next(_chosen())


def free_ports(count: int) -> list[int]:
    """As many different ports as `count`. Raises NoPort."""
    return [free_port() for _ in range(count)]


def port_share(worker: str) -> range:
    """The ports for a worker, by its pytest-xdist name: gw0 ..."""
    size = len(_RANGE) // _SHARES
    name = worker.removeprefix("gw")
    number = int(name) % (_SHARES - 1) if name.isdigit() else _SHARES - 1
    return _RANGE[number * size : (number + 1) * size]


def walk(share: range) -> Iterator[int]:
    """The free ports of a share in an endless cycle, from a given start. Raises NoPort."""
    first = random.randrange(len(share))  # noqa: S311  # not a secret
    taken = 0
    for port in itertools.cycle([*share[first:], *share[:first]]):
        taken = 0 if is_free(port) else taken + 1
        if taken == 0:
            yield port
        if taken == len(share):
            raise NoPort(f"all ports between {share.start} and {share.stop} are in use")


def is_free(port: int) -> bool:
    """Whether a server could bind it now, by either protocol and on any address."""
    return all(_is_bindable(port, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM))


@functools.cache
def _chosen() -> Iterator[int]:
    """One cycle for the whole process."""
    return walk(port_share(os.environ.get("PYTEST_XDIST_WORKER", "")))


def _is_bindable(port: int, kind: socket.SocketKind) -> bool:
    both = socket.has_dualstack_ipv6()
    with socket.socket(socket.AF_INET6 if both else socket.AF_INET, kind) as probe:
        if both:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True

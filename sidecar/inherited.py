"""Listening sockets that systemd opened for us (sd_listen_fds(3)): descriptors from 3 on, counted in LISTEN_FDS.

The law: descriptors are taken only where LISTEN_PID names this very process, because the variables outlive a fork.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Final

from sidecar.errors import StartError

_FIRST: Final = 3  # SD_LISTEN_FDS_START


def inherited_count(environment: Mapping[str, str], *, process: int) -> int:
    """How many descriptors are meant for a process. Raises StartError for values that make no sense."""
    pid, count = environment.get("LISTEN_PID", ""), environment.get("LISTEN_FDS", "")
    if not pid or not count:
        return 0
    if not pid.isdigit() or not count.isdigit():
        raise StartError(f"LISTEN_PID={pid!a} LISTEN_FDS={count!a}: systemd sets both to numbers")
    return int(count) if int(pid) == process else 0


def take_inherited(*, flag: str) -> tuple[list[socket.socket], list[socket.socket]]:
    """The stream and the datagram sockets handed to this process, non-blocking. Raises StartError without any."""
    count = inherited_count(os.environ, process=os.getpid())
    if not count:
        raise StartError(f"{flag} systemd: no socket was handed over; start it by a .socket unit")
    taken = [_take(descriptor, flag) for descriptor in range(_FIRST, _FIRST + count)]
    streams = [one for one in taken if one.type == socket.SOCK_STREAM]
    return streams, [one for one in taken if one.type == socket.SOCK_DGRAM]


def _take(descriptor: int, flag: str) -> socket.socket:
    try:
        taken = socket.socket(fileno=descriptor)
    except OSError as error:
        raise StartError(f"{flag} systemd: descriptor {descriptor} is no socket: {error.strerror}") from error
    if taken.family not in (socket.AF_INET, socket.AF_INET6):
        taken.close()
        raise StartError(f"{flag} systemd: descriptor {descriptor} is neither IPv4 nor IPv6")
    taken.setblocking(False)
    taken.set_inheritable(False)
    return taken

"""Sockets opened by systemd (sd_listen_fds(3)): descriptors from 3 on, counted in LISTEN_FDS.

The law: descriptors are taken only if LISTEN_PID is this process, because the variables survive a fork. A descriptor
that cannot be such a socket is left open, because it may belong to other code.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Final, NamedTuple

from sidecar.values.errors import StartError

SYSTEMD: Final = "systemd"
"""The value of a flag that stands for these sockets instead of an address."""

_FIRST: Final = 3  # SD_LISTEN_FDS_START
_LONGEST: Final = 10  # digits; longer numbers are neither a process nor a descriptor, and int() is slow for thousands
_INTERNET: Final = (socket.AF_INET, socket.AF_INET6)


class Inherited(NamedTuple):
    """The inherited sockets, non-blocking, in the order of their descriptors; one of the two lists may be empty."""

    streams: list[socket.socket]
    """TCP sockets that listen."""
    datagrams: list[socket.socket]
    """UDP sockets."""


def inherited_count(environment: Mapping[str, str], *, process: int) -> int:
    """How many descriptors are meant for a process. Raises ValueError for invalid values."""
    pid, count = environment.get("LISTEN_PID", ""), environment.get("LISTEN_FDS", "")
    if not pid or not count:
        return 0
    if not (_is_number(pid) and _is_number(count)):
        raise ValueError(f"LISTEN_PID={pid[:80]!a} LISTEN_FDS={count[:80]!a}: systemd sets both to numbers")
    if int(pid) != process:
        raise ValueError(f"the sockets are for process {int(pid)}, and this is {process}; start it without a wrapper")
    return int(count)


def take_inherited(*, flag: str) -> Inherited:
    """The sockets passed to this process; the caller closes them. Raises StartError, which names the flag."""
    try:
        count = inherited_count(os.environ, process=os.getpid())
        if not count:
            raise ValueError("no socket was passed; start it with a .socket unit")  # noqa: TRY301  # one form for all
        return _sort(range(_FIRST, _FIRST + count))
    except ValueError as error:
        raise StartError(f"{flag} systemd: {error}") from error


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST


def _sort(descriptors: range) -> Inherited:
    taken = Inherited([], [])
    try:
        for descriptor in descriptors:
            one = _take(descriptor)
            (taken.streams if one.type == socket.SOCK_STREAM else taken.datagrams).append(one)
    except ValueError:
        for one in (*taken.streams, *taken.datagrams):
            one.close()
        raise
    return taken


def _take(descriptor: int) -> socket.socket:
    try:
        taken = socket.socket(fileno=descriptor)
    except OSError as error:
        raise ValueError(f"descriptor {descriptor} is not a socket: {error.strerror}") from error
    fault = _fault_of(taken)
    if fault:
        taken.detach()
        raise ValueError(f"descriptor {descriptor} {fault}")
    taken.setblocking(False)
    taken.set_inheritable(False)
    return taken


def _fault_of(one: socket.socket) -> str:
    """Why a socket cannot be used; empty if it can."""
    if one.family not in _INTERNET:
        return "is neither IPv4 nor IPv6"
    if one.type not in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        return "is neither TCP nor UDP"
    listens = one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    if one.type == socket.SOCK_STREAM and not listens:
        return "does not listen; the .socket unit needs Accept=no"
    return "" if one.getsockname()[1] else "is not bound to a port"

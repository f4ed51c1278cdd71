"""Replies that leave after their batch: up to BATCH of them a system call, each to a sender of its own.

The law: what the kernel refuses costs that one reply and is counted; the others leave.
"""

from __future__ import annotations

import array
import ctypes
import itertools
import socket
from collections.abc import Sequence
from typing import Final

from dnsproxy.datagrams.headers import Headers, pinned
from dnsproxy.datagrams.port import BATCH, CONTROL, Sender

_LARGEST: Final = 65536

Late = tuple[bytes, Sender]


class LateReplies:
    """Sends on one UDP socket; `local`: senders say which address they asked."""

    def __init__(self, sock: socket.socket, *, local: bool) -> None:
        self._descriptor = sock.fileno()
        # PyDLL keeps the interpreter lock: the call never waits, and giving it up costs more than it takes.
        self._sendmmsg = ctypes.PyDLL(None, use_errno=True).sendmmsg
        self._local = local
        self._name_size = 28 if sock.family == socket.AF_INET6 else 16  # struct sockaddr_in6, sockaddr_in
        self._headers = Headers()
        self._octets, self._base = pinned(_LARGEST * BATCH)
        self._names, names = pinned(self._name_size * BATCH)
        self._controls, controls = pinned(CONTROL * BATCH)
        every = range(BATCH)
        self._headers.names[:] = array.array("Q", [names + index * self._name_size for index in every])
        self._headers.name_lengths[:] = array.array("I", [self._name_size] * BATCH)
        if local:
            self._headers.controls[:] = array.array("Q", [controls + index * CONTROL for index in every])
        self._pointer = ctypes.byref(self._headers.headers)

    def send(self, late: Sequence[Late]) -> int:
        """Send them all; gives how many the kernel refused."""
        refused = 0
        while late:
            # A failure stops the call, which tells why only where it is the first: then that one is passed over.
            sent = self._send_batch(late[:BATCH])
            refused += sent <= 0
            late = late[max(sent, 1) :]
        return refused

    def _send_batch(self, late: Sequence[Late]) -> int:
        count = len(late)
        replies = [message for message, _ in late]
        octets = b"".join(replies)
        names = b"".join([sender[0] for _, sender in late])
        lengths = array.array("Q", map(len, replies))
        ends = itertools.accumulate(lengths, initial=self._base)
        self._octets[: len(octets)] = octets
        self._names[: len(names)] = names
        self._headers.sizes[:count] = lengths
        self._headers.bases[:count] = array.array("Q", itertools.islice(ends, count))
        if self._local:
            controls = b"".join([sender[1].ljust(CONTROL, b"\0") for _, sender in late])
            self._controls[: len(controls)] = controls
            self._headers.control_lengths[:count] = array.array("Q", [len(sender[1]) for _, sender in late])
        return int(self._sendmmsg(self._descriptor, self._pointer, count, socket.MSG_DONTWAIT))

"""Batches of datagrams on connected UDP sockets: sendmmsg(2) and recvmmsg(2) over buffers that all sockets share.

The law: as a DatagramPort does, it moves octets and never waits. One call is done before the next begins, so one set of
buffers is enough.
"""

from __future__ import annotations

import ctypes
import socket
from typing import Final

from dnsproxy.datagrams.headers import Headers, addresses, lengths_of, mapped, system_calls
from dnsproxy.datagrams.port import BATCH, MESSAGE
from dnsproxy.datagrams.send_buffer import SendBuffer, last_error

_SLOT: Final = 65536
"""Room for a reply: it may have any size, and the kernel touches no more memory than it fills."""


class Batches(SendBuffer):
    """Up to BATCH datagrams a system call; a query has at most MESSAGE octets."""

    def __init__(self) -> None:
        super().__init__(MESSAGE)
        self._recvmmsg, _ = system_calls()
        self._input, base = mapped(_SLOT * BATCH)
        self._incoming = Headers()
        self._starts = range(0, _SLOT * BATCH, _SLOT)
        self._incoming.bases[:] = addresses(base, _SLOT)
        self._incoming.sizes[:] = lengths_of(_SLOT - 1)
        self._incoming_pointer = ctypes.byref(self._incoming.headers)

    def receive(self, descriptor: int) -> list[bytes]:
        """The datagrams that are queued, BATCH at most. Raises OSError, BlockingIOError if the queue is empty."""
        count = self._recvmmsg(descriptor, self._incoming_pointer, BATCH, socket.MSG_DONTWAIT, None)
        if count < 0:
            raise last_error()
        lengths = self._incoming.lengths[:count].tolist()
        octets = self._input
        return [octets[start : start + length] for start, length in zip(self._starts, lengths, strict=False)]

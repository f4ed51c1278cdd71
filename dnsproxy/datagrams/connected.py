"""Batches of datagrams on connected UDP sockets: sendmmsg(2) and recvmmsg(2) over buffers that all sockets share.

The law: as datagrams.DatagramPort it moves octets and never waits. One call is done before the next begins, so one set
of buffers is enough.
"""

from __future__ import annotations

import array
import ctypes
import itertools
import os
import socket
from collections.abc import Sequence
from typing import Final

from dnsproxy.datagrams.headers import Headers, mapped, pinned
from dnsproxy.datagrams.port import BATCH, MESSAGE

_LARGEST: Final = 65535


class Batches:
    """Up to BATCH datagrams a system call."""

    def __init__(self) -> None:
        # PyDLL keeps the interpreter lock: these calls never wait, and giving it up costs more than they take.
        library = ctypes.PyDLL(None, use_errno=True)
        self._recvmmsg, self._sendmmsg = library.recvmmsg, library.sendmmsg
        self._output, self._output_base = pinned(MESSAGE * BATCH)
        # A reply may have any size; the kernel touches no more of this than it fills.
        self._input, base = mapped((_LARGEST + 1) * BATCH)
        self._incoming, self._outgoing = Headers(), Headers()
        self._starts = range(0, (_LARGEST + 1) * BATCH, _LARGEST + 1)
        self._incoming.bases[:] = array.array("Q", [base + start for start in self._starts])
        self._incoming.sizes[:] = array.array("Q", [_LARGEST] * BATCH)
        self._incoming_pointer = ctypes.byref(self._incoming.headers)
        self._outgoing_pointer = ctypes.byref(self._outgoing.headers)

    def send(self, descriptor: int, datagrams: Sequence[bytes]) -> tuple[int, int]:
        """How many of at most BATCH datagrams were sent, and the errno of the one behind them (0 where there is none).

        None is longer than MESSAGE octets.
        """
        count = len(datagrams)
        octets = b"".join(datagrams)
        lengths = array.array("Q", map(len, datagrams))
        ends = itertools.accumulate(lengths, initial=self._output_base)
        self._output[: len(octets)] = octets
        self._outgoing.sizes[:count] = lengths
        self._outgoing.bases[:count] = array.array("Q", itertools.islice(ends, count))
        sent = self._sendmmsg(descriptor, self._outgoing_pointer, count, socket.MSG_DONTWAIT)
        if sent == count:
            return sent, 0
        if sent > 0:
            # The kernel keeps the reason for the call that begins with the datagram it concerns.
            return sent, 0
        return 0, ctypes.get_errno()

    def receive(self, descriptor: int) -> list[bytes]:
        """The datagrams that wait, BATCH at most. Raises OSError, also where none waits."""
        count = self._recvmmsg(descriptor, self._incoming_pointer, BATCH, socket.MSG_DONTWAIT, None)
        if count < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        lengths = self._incoming.lengths[:count].tolist()
        octets = self._input
        return [octets[start : start + length] for start, length in zip(self._starts, lengths, strict=False)]

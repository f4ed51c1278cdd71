"""A send buffer: up to BATCH whole datagrams leave in one sendmmsg(2).

The law: it moves octets and never waits. One call is done before the next begins, so one buffer is enough for any
number of sockets. Tested in tests/dnsproxy/datagrams/test_connected.py and test_late_replies.py.
"""

from __future__ import annotations

import array
import ctypes
import itertools
import os
import socket
from collections.abc import Sequence

from dnsproxy.datagrams.headers import Headers, pinned, system_calls
from dnsproxy.datagrams.port import BATCH


class SendBuffer:
    """Room for BATCH datagrams of `largest` octets on average."""

    def __init__(self, largest: int) -> None:
        _, self._sendmmsg = system_calls()
        self._octets, self._base = pinned(largest * BATCH)
        self._headers = Headers()
        self._pointer = ctypes.byref(self._headers.headers)

    def send_batch(self, descriptor: int, datagrams: Sequence[bytes]) -> int:
        """How many of at most BATCH datagrams were sent, in order. Raises OSError when the kernel refuses the first.

        sendmmsg stops at the first refused datagram, and reports the reason only if that is the first of a call.
        """
        count = len(datagrams)
        octets = b"".join(datagrams)
        lengths = array.array("Q", map(len, datagrams))
        ends = itertools.accumulate(lengths, initial=self._base)
        self._octets[: len(octets)] = octets
        self._headers.sizes[:count] = lengths
        self._headers.bases[:count] = array.array("Q", itertools.islice(ends, count))
        sent: int = self._sendmmsg(descriptor, self._pointer, count, socket.MSG_DONTWAIT)
        if sent < 0:
            raise last_error()
        return sent


def last_error() -> OSError:
    """The error of the last system call."""
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))

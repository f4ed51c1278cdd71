"""Replies that leave after their batch: up to BATCH of them in one system call, each to its own sender.

The law: a reply that the kernel refuses is counted; the others still leave.
"""

from __future__ import annotations

import array
import socket
from collections.abc import Sequence
from typing import Final

from dnsproxy.datagrams.headers import NAME_SIZES, addresses, pinned
from dnsproxy.datagrams.port import BATCH, CONTROL, Sender
from dnsproxy.datagrams.send_buffer import SendBuffer

_LARGEST: Final = 65536

Late = tuple[bytes, Sender]


class LateReplies(SendBuffer):
    """Sends on one UDP socket. `local`: a sender includes the local address that it asked."""

    def __init__(self, sock: socket.socket, *, local: bool) -> None:
        super().__init__(_LARGEST)
        self._descriptor = sock.fileno()
        self._local = local
        name_size = NAME_SIZES.get(sock.family, NAME_SIZES[socket.AF_INET])
        self._names, names = pinned(name_size * BATCH)
        self._controls, controls = pinned(CONTROL * BATCH)
        self._headers.names[:] = addresses(names, name_size)
        self._headers.name_lengths[:] = array.array("I", [name_size] * BATCH)
        if local:
            self._headers.controls[:] = addresses(controls, CONTROL)

    def send(self, late: Sequence[Late]) -> int:
        """Send them all; returns how many the kernel refused."""
        refused = 0
        while late:
            batch = late[:BATCH]
            messages, senders = zip(*batch, strict=True)
            names = b"".join([sender[0] for sender in senders])
            self._names[: len(names)] = names
            if self._local:
                controls = b"".join([sender[1].ljust(CONTROL, b"\0") for sender in senders])
                self._controls[: len(controls)] = controls
                lengths = array.array("Q", [len(sender[1]) for sender in senders])
                self._headers.control_lengths[: len(batch)] = lengths
            try:
                sent = self.send_batch(self._descriptor, messages)
            except OSError:
                # It is the first that was refused: go on behind it.
                refused += 1
                sent = 1
            late = late[sent:]
        return refused

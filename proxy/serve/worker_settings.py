"""What a worker is told by its supervisor, once, before anything else.

The law: both ends are this very program at the same version, so there is no format but pickle's.
"""

from __future__ import annotations

import pickle
import socket
import struct
from dataclasses import dataclass
from typing import Final

from proxy.settings import Settings

_LENGTH: Final = struct.Struct("!I")


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker is to do."""

    number: int
    """Which of the workers it is, from 1; its lines of the log have it."""
    settings: Settings
    drain: float
    log_format: str | None
    log_level: str


def format_orders(orders: Orders) -> bytes:
    """For parse_orders of this very program: pickle is no format for anybody else."""
    octets = pickle.dumps(orders)
    return _LENGTH.pack(len(octets)) + octets


def receive_orders(channel: socket.socket) -> Orders:
    """Wait for them. Raises EOFError where the supervisor is gone."""
    (length,) = _LENGTH.unpack(_receive(channel, _LENGTH.size))
    orders = pickle.loads(_receive(channel, length))  # noqa: S301  # from the process that started this one
    assert isinstance(orders, Orders)  # noqa: S101  # it sends nothing else
    return orders


def _receive(channel: socket.socket, length: int) -> bytes:
    octets = b""
    while len(octets) < length:
        more = channel.recv(length - len(octets))
        if not more:
            raise EOFError("the supervisor is gone")
        octets += more
    return octets

"""The settings that the supervisor sends to a worker, once, when the worker starts.

The law: both ends are the same program in the same version, so the format is pickle.
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
class WorkerSettings:
    """The settings of one worker."""

    number: int
    """The number of the worker, from 1; each of its log lines has it."""
    relay: Settings
    drain: float
    log_format: str | None
    log_level: str


def format_worker_settings(settings: WorkerSettings) -> bytes:
    """The octets for receive_worker_settings in the worker."""
    octets = pickle.dumps(settings)
    return _LENGTH.pack(len(octets)) + octets


def receive_worker_settings(channel: socket.socket) -> WorkerSettings:
    """Wait for the settings. Raises EOFError if the supervisor is gone."""
    (length,) = _LENGTH.unpack(_receive(channel, _LENGTH.size))
    settings = pickle.loads(_receive(channel, length))  # noqa: S301  # from the process that started this one
    assert isinstance(settings, WorkerSettings)  # noqa: S101  # the supervisor sends nothing else
    return settings


def _receive(channel: socket.socket, length: int) -> bytes:
    octets = b""
    while len(octets) < length:
        more = channel.recv(length - len(octets))
        if not more:
            raise EOFError("the supervisor is gone")
        octets += more
    return octets

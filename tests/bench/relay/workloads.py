"""What every relay is measured with. Pure.

The law: a workload says what passes through a relay and what is counted; who relays is peers.py's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What a workload counts."""

    BULK = "bulk"
    """Octets of one connection at a time."""
    REQUESTS = "requests"
    """HTTP requests of many connections."""
    LATENCY = "latency"
    """The time of one HTTP request at a time."""
    IDLE = "idle"
    """The memory of connections where nothing happens."""


@dataclass(frozen=True, slots=True)
class Workload:
    """How a relay is used."""

    name: str
    about: str
    kind: Kind
    size: int = 0
    """Octets of one transfer, or connections, by kind."""
    upload: bool = False
    keep_alive: bool = True
    processes: int = 1
    """Or threads, with which each relays."""
    only_if_named: bool = False


CONNECTIONS: Final = 64
"""Of wrk, as many as a busy ingress controller keeps to one address."""

_MB: Final = 1_000_000

WORKLOADS: Final = (
    Workload("download", "512 MB from the backend, again and again", Kind.BULK, 512 * _MB),
    Workload("upload", "512 MB to the backend, again and again", Kind.BULK, 512 * _MB, upload=True),
    Workload("download-5g", "5 GB from the backend", Kind.BULK, 5_000 * _MB, only_if_named=True),
    Workload("upload-5g", "5 GB to the backend", Kind.BULK, 5_000 * _MB, upload=True, only_if_named=True),
    Workload("new", "HTTP requests, a new connection for each", Kind.REQUESTS, CONNECTIONS, keep_alive=False),
    Workload("keep-alive", "HTTP requests on connections that stay", Kind.REQUESTS, CONNECTIONS),
    Workload("new-2", "as new, each with two processes or threads", Kind.REQUESTS, CONNECTIONS, False, False, 2),
    Workload("keep-alive-2", "as keep-alive, likewise", Kind.REQUESTS, CONNECTIONS, processes=2),
    Workload("latency", "one HTTP request at a time, beside no relay in between", Kind.LATENCY, 1),
    Workload("latency-new", "the same with a new connection for each", Kind.LATENCY, 1, keep_alive=False),
    Workload("idle", "3,000 connections that have asked once and stay open", Kind.IDLE, 3_000),
)

"""The settings of dnstap: where the collector is, and what this server says that it is.

The law: an address, never a name, as of every endpoint; a value is checked once, here. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from sidecar.values.endpoints import Endpoint, parse_endpoint
from sidecar.values.text import quoted

LONGEST_PATH: Final = 107
"""Octets of a Unix socket's path: sun_path has one more, for its end (unix(7))."""
LONGEST_IDENTITY: Final = 255
"""Octets; dnstap.proto says that it is a DNS string (RFC 4892, RFC 5001), and collectors reserve as much."""

Collector = PurePosixPath | Endpoint
"""A Unix socket or a TCP endpoint."""


@dataclass(frozen=True, slots=True)
class DnstapSettings:
    """One collector, and the identity in each message."""

    collector: Collector
    identity: str = ""
    """Which server it was; empty: nothing is said."""
    version: str = ""


def parse_collector(text: str) -> Collector:
    """`unix:PATH` or `tcp:ADDR:PORT`. Raises ValueError with a message for the user."""
    kind, _, rest = text.strip().partition(":")
    if kind == "unix":
        return _parse_path(rest)
    if kind != "tcp":
        raise ValueError(f"{quoted(text)} is not unix:PATH or tcp:ADDR:PORT")
    endpoint = parse_endpoint(rest)
    if not endpoint.port:
        raise ValueError(f"{quoted(text)} has port 0, where nobody listens")
    return endpoint


def format_collector(collector: Collector) -> str:
    """What parse_collector reads."""
    return f"tcp:{collector}" if isinstance(collector, Endpoint) else f"unix:{collector}"


def parse_identity(text: str) -> str:
    """A text of 1 to 255 octets without control characters. Raises ValueError."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{quoted(text)} is not UTF-8") from None
    if not text.isprintable() or not 0 < size <= LONGEST_IDENTITY:
        raise ValueError(f"{quoted(text[:80])} is not a text of 1 to {LONGEST_IDENTITY} octets")
    return text


def _parse_path(text: str) -> PurePosixPath:
    if not text or text.endswith("/") or text.startswith("@") or "\0" in text:
        raise ValueError(f"{quoted(text)} is not the path of a socket, for example unix:/run/dnstap.sock")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{quoted(text)} is not UTF-8") from None
    if size > LONGEST_PATH:
        raise ValueError(f"the path of a socket has at most {LONGEST_PATH} octets, not {size}")
    return PurePosixPath(text)

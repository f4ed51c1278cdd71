"""One connection that has ended: for scripts a JSON object, for people a line.

The law: it has no name, and no address but those of the client, the listener and the backend; how a connection ended is
one of Ending. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from sidecar.values.text import escape_controls


class Ending(StrEnum):
    """How a connection ended."""

    CLOSED = "closed"
    """Client and backend have finished sending."""
    CLIENT_RESET = "client reset"
    """The client has sent RST, or its connection has failed."""
    BACKEND_RESET = "backend reset"
    IDLE = "idle timeout"
    """No data in either direction for --idle-timeout."""
    HALF_CLOSED = "half-close timeout"
    """No data for --half-close-timeout after one side has finished sending."""
    PEER_LOST = "peer lost"
    """One side no longer acknowledges data."""
    CLIENT_LEFT = "client left"
    """The client ended or reset the connection before a backend was connected: a TCP probe, for example."""
    NO_BACKEND = "no backend"
    """No backend could be connected; `cause` says why."""
    LIMIT = "refused by limit"
    """The client has too many connections."""
    HEADER = "refused header"
    """The client sent a PROXY header: its own to a route or endpoint without headers, or that of another connection."""
    STOPPED = "stopped"
    """The relay has ended, and reset what was still open."""
    FAILED = "failed"
    """A fault of the relay, or no descriptor was free; the log says which."""


class Outcome(NamedTuple):
    """What a connection knows of its end."""

    ending: Ending
    cause: str = ""
    backend: tuple[str, int] | None = None
    bytes_in: int = 0
    bytes_out: int = 0


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A connection that has ended; the field names are the keys of the JSON object."""

    time: str
    """When it ended, UTC, RFC 3339 with milliseconds."""
    client: str
    port: int
    route: str
    """Where the relay listens, `ADDR:PORT`."""
    backend: str | None
    """`ADDR:PORT`; null if none was connected."""
    bytes_in: int
    """Payload that was read from the client, without the header that the relay adds."""
    bytes_out: int
    """Payload that was read from the backend."""
    seconds: float
    """From accepting the client to the end."""
    end: Ending
    cause: str = ""
    """Of "no backend": a value of the label of proxy_backend_errors_total; else empty."""


class Dropped(msgspec.Struct, frozen=True):
    """A note between connections: so many are not shown, because there was no room for them."""

    dropped: int


_MAPPED: Final = "::ffff:"
_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Ended)
_DROPPED: Final = msgspec.json.Decoder(Dropped)


def describe(outcome: Outcome, *, client: str, port: int, route: str, ended: float, seconds: float) -> Ended:
    """What to show of a connection; `ended` in seconds of Unix time."""
    return Ended(
        time=datetime.fromtimestamp(ended, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        # A client of IPv4, as a socket of IPv6 shows it.
        client=client.removeprefix(_MAPPED) if "." in client else client,
        port=port,
        route=route,
        backend=None if outcome.backend is None else format_address(*outcome.backend),
        bytes_in=outcome.bytes_in,
        bytes_out=outcome.bytes_out,
        seconds=round(seconds, 6),
        end=outcome.ending,
        cause=outcome.cause,
    )


def format_address(host: str, port: int) -> str:
    """`ADDR:PORT`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def format_json(event: Ended | Dropped) -> bytes:
    """One line of NDJSON, with its end."""
    return _ENCODER.encode(event) + b"\n"


def format_batch(events: Iterable[Ended], dropped: int) -> bytes:
    """Lines of NDJSON, with a note about the connections that were dropped before the last of these."""
    note = format_json(Dropped(dropped)) if dropped else b""
    return note + b"".join(map(format_json, events))


def parse_json(line: bytes) -> Ended | Dropped:
    """A line of format_json. Raises ValueError for any other line."""
    try:
        return _DROPPED.decode(line) if line.startswith(b'{"dropped"') else _DECODER.decode(line)
    except RecursionError as error:
        raise ValueError(str(error)) from None


def format_line(event: Ended | Dropped) -> str:
    """One line for people: time, client, route, backend, bytes in and out, duration, end."""
    if isinstance(event, Dropped):
        return f"... {event.dropped} connections are not shown: there was no room for them"
    end = f"{event.end} ({event.cause})" if event.cause else str(event.end)
    parts = (
        event.time[11:23],
        format_address(event.client, event.port),
        f"{event.route} -> {event.backend or '-'}",
        f"in {event.bytes_in} out {event.bytes_out}",
        f"{event.seconds:.3f} s",
        end,
    )
    return escape_controls("  ".join(parts))

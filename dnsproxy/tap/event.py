"""What people and scripts read of a query: one JSON object, or one line.

The law: an event has no name or address that the query did not have, and every text in it is safe for a terminal.
Pure.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import dns.rcode
import dns.rdatatype
import msgspec

from dnsproxy.dns.edns_options import client_subnet, full_rcode
from dnsproxy.dns.names import format_wire
from dnsproxy.dns.wire import HEADER, question_end
from dnsproxy.tap.seen import Seen
from sidecar.values.text import escape_controls


class TapEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One query and its end; the field names are the keys of the JSON object."""

    time: str
    """When it ended, UTC, RFC 3339 with microseconds."""
    client: str
    port: int
    transport: str
    """`udp` or `tcp`."""
    qname: str
    """As it was asked, without the final dot; `.` is the root. Empty if there is no well-formed question."""
    qtype: str
    outcome: str
    """See seen.Outcome."""
    seconds: float
    rcode: str = ""
    """Empty if nothing was sent."""
    rule: str = ""
    """The row of the table that answered."""
    upstream: str = ""
    """The upstream whose reply was used."""
    subnet: str = ""
    """The network in EDNS Client Subnet: the client of the resolver that asked."""
    pod: str = ""
    """Which replica saw it, where several are merged."""


class Dropped(msgspec.Struct, frozen=True):
    """A note between events: so many were not shown, because the listener or the server had no time for them."""

    dropped: int


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(TapEvent)
_DROPPED: Final = msgspec.json.Decoder(Dropped)


def describe(seen: Seen) -> TapEvent:
    """What to show of a query."""
    query = seen.query
    end = question_end(query)
    return TapEvent(
        time=datetime.fromtimestamp(seen.time, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        client=seen.client,
        port=seen.port,
        transport="udp" if seen.datagram else "tcp",
        qname=(format_wire(query[HEADER : end - 4]).removesuffix(".") or ".") if end else "",
        qtype=type_name(int.from_bytes(query[end - 4 : end - 2], "big")) if end else "",
        outcome=seen.outcome.value,
        seconds=round(seen.seconds, 6),
        rcode=dns.rcode.to_text(dns.rcode.Rcode.make(full_rcode(seen.reply))) if seen.reply else "",
        rule=seen.rule,
        upstream=seen.exchange.upstream if seen.exchange else "",
        subnet=client_subnet(query),
    )


def type_name(rtype: int) -> str:
    """`A`, `HTTPS`, `TYPE65280`."""
    return dns.rdatatype.to_text(dns.rdatatype.RdataType.make(rtype))


def format_event_json(event: TapEvent) -> bytes:
    """One line of NDJSON, with its end."""
    return _ENCODER.encode(event) + b"\n"


def format_dropped_json(count: int) -> bytes:
    """The note about events that were not shown, as a line of NDJSON."""
    return _ENCODER.encode(Dropped(count)) + b"\n"


def parse_event(line: bytes) -> TapEvent | Dropped:
    """A line of NDJSON. Raises ValueError for any other line."""
    try:
        return _DROPPED.decode(line) if line.startswith(b'{"dropped"') else _DECODER.decode(line)
    except RecursionError as error:
        raise ValueError(str(error)) from None


def format_event(event: TapEvent) -> str:
    """One line for people: time, client, question, outcome and where the answer came from, duration."""
    source = event.rule or event.upstream
    parts = [
        event.time[11:26],
        f"{event.pod} " * bool(event.pod) + _client(event),
        event.transport,
        f"{event.qname or '-'} {event.qtype or '-'}",
        " ".join(part for part in (event.outcome, event.rcode, source) if part),
        f"{event.seconds * 1000:.3f} ms",
    ]
    return escape_controls("  ".join(parts))


def _client(event: TapEvent) -> str:
    shown = f"[{event.client}]" if ":" in event.client else event.client
    return f"{shown}:{event.port}" + (f" for {event.subnet}" if event.subnet else "")

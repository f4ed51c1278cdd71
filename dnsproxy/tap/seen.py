"""One query and its end, as the network had it: the value that every listener works with.

The law: it is octets and times and no opinion; what people read is made of it in event.py, dnstap in the room dnstap.
Pure.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from dnsproxy.dns.wire import AA, Rcode, rcode_of


class Outcome(Enum):
    """How a query ended."""

    TABLE = "table"
    """The table answered: addresses, or NODATA of a name that it has."""
    ZONE = "zone"
    """The policy zone answered (--rpz), or sent a transfer."""
    UPSTREAM = "upstream"
    """An upstream answered."""
    REPLACED = "replaced"
    """An upstream answered, and addresses in its reply that lead here were replaced."""
    REFUSED = "refused"
    """This server refused: a limit, a loop, an opcode or a form that it does not handle."""
    FAILED = "failed"
    """No upstream answered in time, or this server failed: SERVFAIL."""
    DROPPED = "dropped"
    """Nothing was sent."""


class Exchange(msgspec.Struct, frozen=True, array_like=True):
    """One question to an upstream, and its reply."""

    upstream: str
    """The endpoint as of --upstream: `192.0.2.53:53`, `[2001:db8::53]:53`, `tls://…`, `tcp://…`."""
    datagram: bool
    """Whether it went over UDP."""
    seconds: float
    """From the question to the reply."""
    query: bytes = b""
    reply: bytes = b""
    """Both empty if the exchange was another query's, which this one shared."""


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """One query and its end."""

    time: float
    """When it ended, in seconds since the epoch."""
    seconds: float
    """From its arrival at this server to its end; a query from the table has the time of its batch."""
    datagram: bool
    """Whether it came over UDP."""
    client: str
    """The address that sent it, without its scope."""
    port: int
    """The client's port; 0 if it is not known."""
    query: bytes
    reply: bytes
    """Empty if nothing was sent, and for a transfer."""
    outcome: Outcome
    rule: str = ""
    """The row of the table that answered, `app.example.org` or `*.example.org`; empty without one."""
    exchange: Exchange | None = None
    """With the upstream whose reply was used."""


def outcome_of(reply: bytes) -> Outcome:
    """Which outcome a reply of this server itself has: only the table's answers are authoritative."""
    if reply[2] & AA >> 8:
        return Outcome.TABLE
    return Outcome.FAILED if rcode_of(reply) == Rcode.SERVFAIL else Outcome.REFUSED

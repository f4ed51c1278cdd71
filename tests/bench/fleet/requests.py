"""What a secondary sends: requests, and answers to NOTIFY (RFC 1996). Pure."""

from __future__ import annotations

from dnsproxy.dns.wire import Rcode
from dnsproxy.zone.requests import format_notify_reply, format_request, notified_zone
from dnsproxy.zone.serials import is_newer


def format_frame(zone: bytes, *, serial: int | None, ident: int) -> bytes:
    """An IXFR request as it goes over TCP; AXFR without a serial."""
    request = format_request(zone, serial=serial, ident=ident)
    return len(request).to_bytes(2, "big") + request


def answer_notify(message: bytes, *, zone: bytes, known: int | None) -> tuple[bytes | None, bool]:
    """The answer to a NOTIFY, and whether there is something to fetch; None for any other message."""
    found = notified_zone(message)
    if found is None:
        return None, False
    name, serial = found
    if name != zone:
        return format_notify_reply(message, rcode=Rcode.NOTAUTH), False
    return format_notify_reply(message), known is None or serial is None or is_newer(serial, known)

"""Who may ask for the zones: the client's address, and the signature of its request.

The law: with keys, a request counts only if it is signed by one of them and was not seen before over TCP; without keys,
the address alone decides. A refusal is logged once a minute for each client and reason.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

import structlog
import trio

from dnsproxy.dns import wire
from dnsproxy.dns.wire import Query, Rcode
from dnsproxy.primary.settings import RpzSettings

_MOST_MACS: Final = 20_000
"""Signatures remembered; the oldest are forgotten first."""
_QUIET: Final = 60.0
"""Seconds between two log lines about one client and reason."""
_MOST_LOGGED: Final = 500
_SIGNATURE_LASTS: Final = 600.0
"""Seconds: twice the fudge of TSIG (RFC 8945 section 10)."""
_BAD_SIGNATURE: Final = 16


class RefusalLog:
    """Logs refusals, bounded in time and number."""

    def __init__(self) -> None:
        self.count = 0
        self._logged: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._log = structlog.get_logger("dnsproxy.rpz")

    def note(self, client: str, reason: str) -> None:
        """Count a refusal, and log it if it was not logged lately."""
        self.count += 1
        now = trio.current_time()
        if now - self._logged.get((client, reason), -_QUIET) < _QUIET:
            return
        self._logged.pop((client, reason), None)
        self._logged[client, reason] = now
        if len(self._logged) > _MOST_LOGGED:
            self._logged.popitem(last=False)
        self._log.warning("a request for a zone is refused", client=client, reason=reason)


class RequestCheck:
    """Checks requests; `now`: the time of day in seconds since the epoch."""

    def __init__(self, settings: RpzSettings, *, now: Callable[[], float] = time.time) -> None:
        self.refusals = RefusalLog()
        self._settings = settings
        self._keys = {key.name: key for key in settings.keys}
        self._now = now
        self._seen: OrderedDict[bytes, float] = OrderedDict()

    def admits(self, client: str) -> bool:
        """Whether a request from this address can be allowed at all."""
        return self._settings.allows(client)

    def check(self, query: Query, *, client: str, stream: bool) -> bytes | Sealer:
        """What seals the answers to a request; or the octets that refuse it."""
        if not self._settings.allows(client):
            return self._refuse(query, client, "its address is in no network of --rpz-allow")
        if query.message[10:12] in (b"\0\0", b"\0\1") and not _may_be_signed(query):
            return self._pass_unsigned(query, client)
        return self._check_signature(query, client=client, stream=stream)

    def _check_signature(self, query: Query, *, client: str, stream: bool) -> bytes | Sealer:
        # dnspython takes memory, which a primary without signed requests does not need.
        from dnsproxy.zone import signing  # noqa: PLC0415

        try:
            found = signing.check_request(query.message, self._keys, now=int(self._now()))
        except ValueError as error:
            self.refusals.note(client, str(error))
            return _error(query, Rcode.FORMERR)
        if isinstance(found, signing.Refusal):
            self.refusals.note(client, f"its signature: {found.error.name}")
            return self._answer_bad_signature(query, found)
        if found is None:
            return self._pass_unsigned(query, client)
        if stream and self._is_replayed(found.mac):
            self.refusals.note(client, "its signature was used before")
            return _error(query, Rcode.NOTAUTH)
        return Sealer(signing.Signer(found.key, request_mac=found.mac), self._now)

    def _pass_unsigned(self, query: Query, client: str) -> bytes | Sealer:
        if not self._settings.allows_unsigned(client):
            return self._refuse(query, client, "it is not signed (--rpz-key)")
        return Sealer(None, None)

    def _answer_bad_signature(self, query: Query, refusal: Any) -> bytes:
        from dnsproxy.zone import signing  # noqa: PLC0415

        reply = _error(query, Rcode.NOTAUTH)
        if refusal.signature is None:
            return signing.append_record(reply, refusal.record)
        signature, other = refusal.signature, signing.time_of_day(int(self._now()))
        signer = signing.Signer(signature.key, request_mac=signature.mac, error=refusal.error, other=other)
        # The client's own time, so that the client takes the signature for good (RFC 8945 section 5.2.3).
        return signer.sign(reply, now=signature.time)

    def _is_replayed(self, mac: bytes) -> bool:
        now = trio.current_time()
        while self._seen and (len(self._seen) > _MOST_MACS or next(iter(self._seen.values())) < now - _SIGNATURE_LASTS):
            self._seen.popitem(last=False)
        if mac in self._seen:
            return True
        self._seen[mac] = now
        return False

    def _refuse(self, query: Query, client: str, reason: str) -> bytes:
        self.refusals.note(client, reason)
        return _error(query, Rcode.REFUSED)


class Sealer:
    """Signs the messages of one answer; without a signer it leaves them as they are."""

    def __init__(self, signer: Any, now: Callable[[], float] | None) -> None:
        self._signer = signer
        self._now = now

    def seal(self, message: bytes, *, several: bool = False) -> bytes:
        """The message as it is sent; `several`: more messages belong to the answer."""
        if self._signer is None or self._now is None:
            return message
        signed: bytes = self._signer.sign(message, now=int(self._now()), several=several)
        return signed


def _may_be_signed(query: Query) -> bool:
    """Whether there is an additional record beside an OPT."""
    return int.from_bytes(query.message[10:12], "big") > (1 if query.edns else 0)


def _error(query: Query, rcode: int) -> bytes:
    flags = wire.QR | (query.message[2] << 8 & wire.RD) | rcode
    return query.message[:2] + flags.to_bytes(2, "big") + b"\0\1\0\0\0\0\0\0" + query.question

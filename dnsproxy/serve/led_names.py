"""The names that lead elsewhere: from the verdicts of the answering processes to the pages, the metrics and the log.

The law: a thin shell that looks once a second, and works only after a change. Where many names lead to one address, the
pages name it, because it may be that of a router (hostnames/public_addresses.py). A name is logged when it begins to
lead elsewhere, and again only after it has led here; many at once are one line, because they are probably one matter.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from ipaddress import ip_address
from typing import Final, Protocol

import structlog
import trio

from dnsproxy.answers.answer_records import Claimed
from dnsproxy.dns.names import BadName, format_wire, parse_hostname
from dnsproxy.hostnames.answering_claim import answering_claim
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.public_addresses import AddressTally
from dnsproxy.hostnames.verdict import LedElsewhere
from dnsproxy.replace.verdicts import Led
from sidecar.loop.slices import in_slices

_EVERY: Final = 1.0
_WARNINGS: Final = 20
"""Names that are logged one by one in a minute, and one line for all others."""
_MINUTE: Final = 60.0


class LedServer(Protocol):
    """The server that answers, in one process or in several."""

    def led(self) -> tuple[object, Sequence[Led]]:
        """The names that lead elsewhere, and a value that differs after each change of them."""

    def asked_names(self) -> int:
        """How many claimed names were asked lately, wherever they lead."""


class LedNames:
    """Keeps the outcomes of a keeper's registry; run() must be running."""

    def __init__(self, server: LedServer, keeper: TableKeeper) -> None:
        self._server = server
        self._keeper = keeper
        self._seen: object = None
        self._logged: set[str] = set()
        self._begun = -math.inf
        """When the minute began whose lines are counted."""
        self._lines = 0
        self._log = structlog.get_logger("dnsproxy.ownership")

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await trio.sleep(_EVERY)
            version, led = self._server.led()
            if version != self._seen:
                self._seen = version
                await in_slices(self._take(led))
            self._keeper.registry.outcomes.set_asked(self._server.asked_names())

    def _take(self, led: Iterable[Led]) -> Generator[None, None, None]:
        found: dict[str, LedElsewhere] = {}
        for one in led:
            row = self._row_of(one, found)
            if row is not None:
                found[row.hostname] = row
            yield
        tally = AddressTally()
        for row in found.values():
            tally.add(row, self._keeper.registry.targets.subject_of(row.claim))
            yield
        self._keeper.registry.outcomes.set_elsewhere(found.values(), tally)
        self._tell(found)

    def _row_of(self, one: Led, found: dict[str, LedElsewhere]) -> LedElsewhere | None:
        """None for a name that nobody claims any more."""
        try:
            hostname = parse_hostname(format_wire(one.name))
        except BadName:
            return None  # below a wildcard any octets can be asked for
        claim = answering_claim(self._keeper.registry, hostname)
        if claim is None:
            return None
        addresses = tuple(str(ip_address(address)) for address in one.leads)
        before = found[hostname].leads if hostname in found else ()
        claimed = self._keeper.registry.claimed(claim)
        leads = tuple(dict.fromkeys((*before, *addresses)))
        return LedElsewhere(hostname, claim, leads, answered=claimed is Claimed.REPORTED) if leads else None

    def _tell(self, found: dict[str, LedElsewhere]) -> None:
        new = [one for hostname, one in found.items() if hostname not in self._logged]
        self._logged = set(found)
        now = trio.current_time()
        if now >= self._begun + _MINUTE:
            self._begun, self._lines = now, 0
        room = max(0, _WARNINGS - self._lines)
        for one in new[:room]:
            told = {"hostname": one.hostname, "origin": str(one.claim.origin), "leads": list(one.leads)}
            self._log.warning("the record of a claimed name leads elsewhere", **told, answered=one.answered)
        if len(new) > room and self._lines <= _WARNINGS:
            # Whoever asks for random names below a wildcard must not fill the log.
            self._log.warning("more claimed names lead elsewhere; the status page lists all", count=len(new) - room)
            self._lines = _WARNINGS + 1
        else:
            self._lines += len(new)

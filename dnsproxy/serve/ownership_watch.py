"""The ownership watch: looks up the public records of the hostnames that a cluster claims, in the background.

The law: a thin shell over ownership.py and its schedule, which never delays a query. It asks the upstreams, because
this server would answer from its own table. An unanswered lookup changes nothing, and an unverified name is logged
once.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable
from functools import partial
from typing import Final, NoReturn

import structlog
import trio

from dnsproxy.dns import names, wire
from dnsproxy.dns.addresses import AddressReply, PublicRecord, is_address, join_replies, parse_address_reply
from dnsproxy.dns.wire import Query, Type
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.ownership import ADVICE, Finding, Mode, OwnershipSettings, Standing
from dnsproxy.hostnames.ownership_schedule import OwnershipSchedule
from dnsproxy.hostnames.registry import Registry
from sidecar.loop.slices import in_slices

Ask = Callable[[Query], Awaitable[bytes | None]]
"""Ask the upstreams: the complete reply to the query; None if there is none."""

_PASSED_OVER: Final = 500
"""Hostnames without need of a lookup that are skipped in one go, in a few milliseconds; then other tasks run."""
_BALANCERS: Final = 16
"""Hostnames of load balancers that are resolved in one lookup."""
_LABEL: Final = "switchback-{:012x}"
_LONGEST_WILDCARD: Final = names.MAXIMUM_NAME - 2 - len(_LABEL.format(0))
_WARNINGS: Final = 20
"""Unverified names that are logged one by one; more are probably one problem and not many."""


class OwnershipWatch:
    """Keeps a registry's findings; run() must be running."""

    def __init__(
        self,
        registry: Registry,
        *,
        settings: OwnershipSettings,
        ask: Ask,
        on_change: Callable[[], None],
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.looks: Counter[str] = Counter({"record": 0, "none": 0, "unanswered": 0})
        """How many lookups found a record, found none, or got no answer."""
        self._registry = registry
        self._settings = settings
        self._ask = ask
        self._on_change = on_change
        self._pace = settings.pace
        self._draw = draw
        self._schedule = OwnershipSchedule(settings.pace)
        self._noted = trio.Event()
        self._suspected: dict[str, float] = {}
        """Hostnames contradicted once, and the time from which a second contradiction counts."""
        self._logged: dict[str, frozenset[str]] = {}
        """The objects that were logged as unverified, by hostname."""
        self._log = structlog.get_logger("dnsproxy.ownership")

    def note(self, hostnames: Iterable[str]) -> None:
        """The claims to these hostnames have changed."""
        self._schedule.note(hostnames)
        self._noted.set()

    async def run(self) -> NoReturn:
        """Look up one hostname after the other until cancelled."""
        while True:
            self._noted = trio.Event()
            hostname = await in_slices(self._seek(trio.current_time()))
            if hostname is None:
                await trio.sleep(self._pace.rest)
                with trio.move_on_after(self._schedule.pause(trio.current_time())):
                    await self._noted.wait()
                continue
            try:
                await self._look(hostname)
            except Exception:  # noqa: BLE001  # one lookup may fail alone: it must not end the DNS of every pod
                self._log.exception("the lookup of a public record failed", hostname=hostname)
            await trio.sleep(self._pace.gap)

    def _seek(self, now: float) -> Generator[None, None, str | None]:
        """The next hostname that needs a lookup; None if the next few do not."""
        if self._schedule.round_is_due(now):
            self._schedule.begin_round(self._registry.store.names(), now=now, random=self._draw())
        for _ in range(_PASSED_OVER):
            hostname = self._schedule.take(now)
            if hostname is None or self._needs_lookup(hostname):
                return hostname
            self._settle(hostname, None)
            yield
        return None

    def _needs_lookup(self, hostname: str) -> bool:
        too_long = names.is_wildcard(hostname) and len(hostname) > _LONGEST_WILDCARD
        if too_long or self._settings.trusts_name(hostname) or self._registry.refusal(hostname) is not None:
            return False
        return any(self._points(claim) for claim in self._claims(hostname))

    def _claims(self, hostname: str) -> list[Claim]:
        """The claims of the cluster's objects; static names are never unverified."""
        return [claim for claim in self._registry.store.claims_for(hostname) if not claim.addresses]

    def _points(self, claim: Claim) -> tuple[str, ...]:
        return claim.status or self._registry.store.balancers(claim.ingress_class)

    async def _look(self, hostname: str) -> None:
        record = await self._resolve(_name_to_ask(hostname, self._draw()))
        if record is None:
            self.looks["unanswered"] += 1
            return
        self.looks["record" if record.addresses else "none"] += 1
        if not record.addresses or self._settings.trusts_address(record.addresses):
            self._settle(hostname, None)
            return
        finding = await self._find(hostname, record)
        doubted = [claim for claim in self._claims(hostname) if self._is_foreign(claim, finding)]
        self._settle(hostname, finding if doubted else None, doubted)

    def _is_foreign(self, claim: Claim, finding: Finding) -> bool:
        return self._registry.standing_of(claim, finding) is Standing.FOREIGN

    async def _find(self, hostname: str, record: PublicRecord) -> Finding:
        """Everything that the claims to a hostname are judged by."""
        claims = self._claims(hostname)
        store = self._registry.store
        balancers = {claim.ingress_class: store.balancers(claim.ingress_class) for claim in claims}
        points = dict.fromkeys(point for claim in claims for point in (*claim.status, *balancers[claim.ingress_class]))
        resolved = {}
        for point in [point for point in points if not is_address(point)][:_BALANCERS]:
            balancer = await self._resolve(point)
            if balancer is not None and balancer.addresses:
                resolved[point] = balancer.addresses
        strict = bool(self._settings.networks)
        return Finding(record.addresses, record.aliases, resolved, balancers, strict)

    def _settle(self, hostname: str, finding: Finding | None, doubted: Iterable[Claim] = ()) -> None:
        """Apply the result of a lookup; `finding` contradicts the claims `doubted`; None contradicts no claim."""
        now = trio.current_time()
        if finding is None:
            self._suspected.pop(hostname, None)
            self._log_settled(hostname)
        elif now < self._suspected.setdefault(hostname, now + self._pace.confirm):
            self._schedule.again(hostname, at=self._suspected[hostname])
            return
        else:
            self._schedule.again(hostname, at=now + self._pace.doubted)
            self._log_unverified(hostname, finding, doubted)
        if self._registry.set_finding(hostname, finding):
            self._on_change()

    def _log_unverified(self, hostname: str, finding: Finding, doubted: Iterable[Claim]) -> None:
        logged = self._logged.get(hostname, frozenset())
        self._logged[hostname] = frozenset(str(claim.origin) for claim in doubted)
        for claim in doubted:
            if str(claim.origin) not in logged:
                self._log.log(
                    logging.WARNING if len(self._logged) <= _WARNINGS else logging.DEBUG,
                    "public record points elsewhere",
                    hostname=hostname,
                    origin=str(claim.origin),
                    public=list(finding.public),
                    expected=list(self._points(claim)),
                    left_out=self._settings.mode is Mode.ENFORCE,
                    advice=ADVICE,
                )
        if len(self._logged) == _WARNINGS + 1 and not logged:
            self._log.warning("more names are unverified; the status page lists all", logged=_WARNINGS)

    def _log_settled(self, hostname: str) -> None:
        if self._logged.pop(hostname, None) is not None:
            self._log.info("no public record contradicts this name any more", hostname=hostname)

    async def _resolve(self, hostname: str) -> PublicRecord | None:
        """The public record of a hostname; None without an answer."""
        replies: dict[Type, AddressReply | None] = {Type.A: None, Type.AAAA: None}

        async def ask(rtype: Type) -> None:
            reply = await self._ask(wire.plain_query(names.to_wire(hostname), rtype))
            replies[rtype] = parse_address_reply(reply) if reply is not None else None

        with trio.move_on_after(self._pace.timeout):
            async with trio.open_nursery() as nursery:
                for rtype in replies:
                    nursery.start_soon(partial(ask, rtype))
        return join_replies(replies.values())


def _name_to_ask(hostname: str, random: float) -> str:
    """The hostname, or a random name that its wildcard covers."""
    return hostname if not names.is_wildcard(hostname) else _LABEL.format(int(random * 2**48)) + hostname[1:]

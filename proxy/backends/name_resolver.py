"""What a name stands for: the hosts file, then the nameservers of a resolv.conf, both read anew for each look-up.

The law: the only module that knows dnspython, which is why its faults end here, as causes. getaddrinfo would tell no
TTL, would hold a thread that nobody can cancel, and would ask the servers that this process started with.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from proxy.backends.health import Cause, Failure
from proxy.backends.hosts_file import addresses_in

if TYPE_CHECKING:
    from dns.asyncresolver import Resolver

LOOKUP_SECONDS: Final = 5.0
"""For a whole look-up, every name of the search list and every nameserver included."""
OTHER_FAMILY_SECONDS: Final = 0.5
"""How long addresses of one family wait for those of the other: some servers never answer for AAAA."""
SHORTEST, LONGEST = 1.0, 300.0
"""Seconds for which an answer counts, whatever its TTL: one of 0 is no reason to ask without a pause, one of a day no
reason to miss a move."""
HOSTS_SECONDS: Final = 5.0
"""How long what the hosts file says counts."""

_PROBE_LABEL: Final = "_switchback-probe"
_PROBE_NONCE_OCTETS: Final = 16
_PROBE_TEXT: Final = '"switchback dnsproxy"'


@dataclass(frozen=True, slots=True)
class Found:
    """IP literals, and for how many seconds they count."""

    addresses: tuple[str, ...]
    seconds: float


LookUp = Callable[[str], Awaitable[Found | Failure]]


@dataclass(frozen=True, slots=True)
class NameResolver:
    """Looks names up as the C library would: hosts file first, search list and ndots as the resolv.conf has them."""

    resolv_conf: Path = Path("/etc/resolv.conf")
    hosts: Path = Path("/etc/hosts")
    port: int = field(default=53, kw_only=True)
    """Of the nameservers, whose file has no place for it."""

    async def look_up(self, name: str) -> Found | Failure:
        """The addresses of a name, IPv6 first."""
        if listed := addresses_in(_read(self.hosts), name):
            return Found(tuple(listed), HOSTS_SECONDS)
        families: list[Found | Failure] = []
        async with trio.open_nursery() as nursery:

            async def ask(kind: str) -> None:
                families.append(await self._ask(name, kind))
                if isinstance(families[-1], Found) and families[-1].addresses:
                    nursery.cancel_scope.deadline = trio.current_time() + OTHER_FAMILY_SECONDS

            for kind in ("AAAA", "A"):
                nursery.start_soon(ask, kind)
        return _together(families)

    async def asks_dnsproxy(self, name: str) -> bool:
        """Whether queries for a name go to our own dnsproxy, which answers a probe below each name (dns/probe.py)."""
        probe = f"{secrets.token_hex(_PROBE_NONCE_OCTETS)}.{_PROBE_LABEL}.{name.removesuffix('.')}."
        answer = await self._resolve(probe, "TXT")
        return not isinstance(answer, Failure) and _PROBE_TEXT in answer[0]

    async def _ask(self, name: str, kind: str) -> Found | Failure:
        answer = await self._resolve(name, kind)
        if isinstance(answer, Failure):
            return answer
        rows, seconds = answer
        return Found(tuple(rows), min(max(seconds, SHORTEST), LONGEST))

    async def _resolve(self, name: str, kind: str) -> tuple[list[str], float] | Failure:
        """The records of a name as text and their TTL; no records where the name exists without them."""
        # Here and not above: it costs a tenth of a second, and who relays to addresses needs none of it.
        import dns.exception  # noqa: PLC0415
        import dns.resolver  # noqa: PLC0415

        try:
            answer = await self._open().resolve(
                name, kind, search=True, raise_on_no_answer=False, lifetime=LOOKUP_SECONDS
            )
        except dns.resolver.NXDOMAIN:
            return Failure(Cause.DNS_NXDOMAIN, "no such name")
        except dns.exception.Timeout:
            return Failure(Cause.DNS_TIMEOUT, f"no answer within {LOOKUP_SECONDS:g} s")
        except (dns.exception.DNSException, OSError, ValueError) as error:
            return Failure(Cause.DNS_ERROR, str(error) or type(error).__name__)
        # The shortest TTL on the way, that of a CNAME included.
        return [str(row) for row in answer], float(answer.chaining_result.minimum_ttl)

    def _open(self) -> Resolver:
        import dns.asyncresolver  # noqa: PLC0415

        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.read_resolv_conf(self.resolv_conf)
        resolver.port = self.port
        return resolver


def _together(families: list[Found | Failure]) -> Found | Failure:
    """One answer out of those for each family, of which one may be missing."""
    found = [one for one in families if isinstance(one, Found)]
    addresses = [address for one in found for address in one.addresses]
    if addresses:
        seconds = min(one.seconds for one in found if one.addresses)
        # A family that was not told is asked for again soon.
        complete = len(found) > 1
        ordered = sorted(addresses, key=lambda address: ":" not in address)
        return Found(tuple(ordered), seconds if complete else min(seconds, HOSTS_SECONDS))
    if found:
        failures = [one for one in families if isinstance(one, Failure) and one.cause is not Cause.DNS_NXDOMAIN]
        return failures[0] if failures else Failure(Cause.DNS_NXDOMAIN, "the name has no address")
    failures = [one for one in families if isinstance(one, Failure)]
    return next((one for one in failures if one.cause is Cause.DNS_NXDOMAIN), failures[0])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

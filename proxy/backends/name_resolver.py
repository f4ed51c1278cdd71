"""Resolves a name: the hosts file first, then the nameservers of a resolv.conf, both read again for each look-up.

The law: the only module that uses dnspython; its errors become causes here. getaddrinfo would return no TTL, block a
thread that cannot be cancelled, and keep the nameservers from the start of the process.
"""

from __future__ import annotations

import io
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from proxy.backends.health import Cause, Failure
from proxy.backends.hosts_file import addresses_in
from sidecar.files.follow import read_octets, read_regular_file

if TYPE_CHECKING:
    from dns.asyncresolver import Resolver

LARGEST: Final = 16 << 20
"""Octets of the two files; a hosts file may have lists of names that are blocked."""
LOOKUP_SECONDS: Final = 5.0
"""For a whole look-up, with all names of the search list and all nameservers."""
OTHER_FAMILY_SECONDS: Final = 0.5
"""Seconds for which addresses of one family wait for the other: some servers never answer AAAA queries."""
SHORTEST, LONGEST = 1.0, 300.0
"""Bounds in seconds for the use of an answer: a TTL of 0 must not cause constant queries, and a TTL of a day must not
hide a change."""
HOSTS_SECONDS: Final = 5.0
"""Seconds for which an entry of the hosts file is used."""

_OPTION: Final = re.compile(r"ndots:\d{1,2}|(?:timeout|attempts):[1-9]\d?|[a-z0-9-]+")
"""A negative time would leave no time for an answer."""
_PROBE_LABEL: Final = "_switchback-probe"
_PROBE_NONCE_OCTETS: Final = 16
_PROBE_TEXT: Final = '"switchback dnsproxy"'


@dataclass(frozen=True, slots=True)
class Found:
    """IP literals, and the seconds for which they may be used."""

    addresses: tuple[str, ...]
    seconds: float
    one_family: bool = False
    """Whether the nameservers failed for the other address family, so that its addresses are unknown."""


LookUp = Callable[[str], Awaitable[Found | Failure]]


@dataclass(frozen=True, slots=True)
class NameResolver:
    """Resolves names like the C library: hosts file first, then the search list and ndots of the resolv.conf."""

    resolv_conf: Path = Path("/etc/resolv.conf")
    hosts: Path = Path("/etc/hosts")
    port: int = field(default=53, kw_only=True)
    """The port of the nameservers, which resolv.conf cannot state."""

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
        return _merge(families)

    async def asks_dnsproxy(self, name: str) -> bool:
        """Whether dnsproxy answers queries for a name: it answers a probe below every name (dns/probe.py)."""
        probe = f"{secrets.token_hex(_PROBE_NONCE_OCTETS)}.{_PROBE_LABEL}.{name.removesuffix('.')}."
        answer = await self._resolve(probe, "TXT")
        # A second string may follow: where dnsproxy forwards all other names.
        return not isinstance(answer, Failure) and any(row.startswith(_PROBE_TEXT) for row in answer[0])

    async def _ask(self, name: str, kind: str) -> Found | Failure:
        answer = await self._resolve(name, kind)
        if isinstance(answer, Failure):
            return answer
        rows, seconds = answer
        return Found(tuple(rows), min(max(seconds, SHORTEST), LONGEST))

    async def _resolve(self, name: str, kind: str) -> tuple[list[str], float] | Failure:
        """The records of a name as text, and their TTL; no records if the name exists without them."""
        # Not at the top: the import takes 0.1 s, and a relay to addresses does not need it.
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
        except dns.resolver.NoResolverConfiguration:
            return Failure(Cause.DNS_ERROR, f"{self.resolv_conf} has no nameserver that can be used")
        except (dns.exception.DNSException, OSError, ValueError) as error:
            return Failure(Cause.DNS_ERROR, str(error) or type(error).__name__)
        # The shortest TTL of the chain, CNAMEs included.
        return [str(row) for row in answer], float(answer.chaining_result.minimum_ttl)

    def _open(self) -> Resolver:
        import dns.asyncresolver  # noqa: PLC0415

        resolver = dns.asyncresolver.Resolver(configure=False)
        # Not by its path: dnspython refuses a file with an octet that is not UTF-8, and a byte order mark hides a line.
        octets = read_octets(self.resolv_conf, largest=LARGEST)
        usable = "".join(_usable_lines(octets.decode("utf-8-sig", "replace")))
        resolver.read_resolv_conf(io.StringIO(usable))
        resolver.port = self.port
        return resolver


def _usable_lines(content: str) -> Iterator[str]:
    """The lines without what dnspython would refuse the whole file for; the C library skips it too (resolver(5))."""
    import dns.inet  # noqa: PLC0415

    for line in content.splitlines():
        key, *words = line.split() or [""]
        if key == "nameserver":
            words = [word for word in words[:1] if dns.inet.is_address(word)]
        elif key in ("search", "domain"):
            words = [word for word in words if _is_name(word)]
        elif key == "options":
            words = [word for word in words if _OPTION.fullmatch(word)]
        else:
            continue
        if words:
            yield f"{key} {' '.join(words)}\n"


def _is_name(word: str) -> bool:
    import dns.exception  # noqa: PLC0415
    import dns.name  # noqa: PLC0415

    try:
        dns.name.from_text(word)
    except (dns.exception.DNSException, ValueError):
        return False
    return True


def _merge(families: list[Found | Failure]) -> Found | Failure:
    """Merge the answers for both families; one of them may be missing."""
    found = [one for one in families if isinstance(one, Found)]
    addresses = [address for one in found for address in one.addresses]
    if addresses:
        seconds = min(one.seconds for one in found if one.addresses)
        # A missing family is queried again soon.
        complete = len(found) > 1
        denied = any(isinstance(one, Failure) and one.cause is Cause.DNS_NXDOMAIN for one in families)
        ordered = sorted(addresses, key=lambda address: ":" not in address)
        return Found(
            tuple(ordered),
            seconds if complete else min(seconds, HOSTS_SECONDS),
            one_family=not complete and not denied,
        )
    if found:
        failures = [one for one in families if isinstance(one, Failure) and one.cause is not Cause.DNS_NXDOMAIN]
        return failures[0] if failures else Failure(Cause.DNS_NXDOMAIN, "the name has no address")
    failures = [one for one in families if isinstance(one, Failure)]
    return next((one for one in failures if one.cause is Cause.DNS_NXDOMAIN), failures[0])


def _read(path: Path) -> str:
    try:
        return read_regular_file(path, largest=LARGEST)
    except (OSError, ValueError):
        return ""

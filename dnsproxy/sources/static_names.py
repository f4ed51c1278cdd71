"""Static names: `--host NAME=IP[,IP]` and hosts files (hosts(5)), wildcards included.

The law: pure; an invalid line is rejected with its number, and the rest of the file counts. The addresses of a name add
up, in a file as on the command line. An unchanged line costs a comparison, and the registry learns of a change of the
file as a whole, although the work is done in steps.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from dnsproxy.dns.addresses import parse_address, parse_addresses
from dnsproxy.dns.names import BadName, parse_hostname
from dnsproxy.hostnames.claims import Claim, Origin, Rejection, Terms, share_terms
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.wildcards import reach_in_dns
from dnsproxy.sources.hosts_lines import LONGEST, is_text
from sidecar.values.text import quoted

# Nearly every hosts(5) file has these names, which each host has for itself: they are ignored without a rejection.
_OWN_NAMES = frozenset(("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback", "broadcasthost"))

# Many lines share a few addresses, and parsing one takes as long as the rest of its line.
_parse_address = lru_cache(maxsize=1024)(parse_address)


def parse_host_flag(text: str) -> Claim:
    """`NAME=IP[,IP]...` as a claim. Raises ValueError with the reason."""
    name, equals, addresses = text.partition("=")
    if not equals:
        raise ValueError(f"{text!a} is not NAME=IP[,IP], for example app.example.org=192.0.2.10")
    return static_claim(parse_hostname(name), parse_addresses(addresses), Origin("flag", f"--host {text}"))


def join_flags(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """One claim for each hostname of the flags, with the addresses of all flags for it."""
    joined: dict[str, Claim] = {}
    for claim in claims:
        known = joined.get(claim.hostname)
        if known is None:
            joined[claim.hostname] = claim
        elif known != claim:
            addresses = tuple(dict.fromkeys((*known.terms.addresses, *claim.terms.addresses)))
            origin = Origin(known.origin.kind, f"{known.origin.name} {claim.origin.name}")
            joined[claim.hostname] = static_claim(claim.hostname, addresses, origin)
    return tuple(joined.values())


MOST_REJECTIONS: Final = 1_000
"""Of one file; of the others only the number is kept, because a file that is no hosts file may have millions."""


class HostsFile(NamedTuple):
    """The content of a hosts file."""

    claims: dict[str, Claim]
    """By hostname, in the order of the file."""
    rejections: list[Rejection]
    """The first MOST_REJECTIONS, and one that has the number of the others."""
    faults: int
    """The number of rejected lines and names."""


def parse_hosts_file(lines: Iterable[tuple[int, str]], *, path: str) -> Generator[None, None, HostsFile]:
    """The claims of a hosts file: `ADDRESS NAME...`, `#` begins a comment, the addresses of a name add up.

    `lines` as of hosts_lines.py. A generator that returns the claims: it yields after every name and every line,
    because there can be 100,000.
    """
    claims: dict[str, Claim] = {}
    rejections = _Rejections()
    for number, line in lines:
        if len(line) > LONGEST:
            reason = f"the line is longer than {LONGEST} characters"
            rejections.add(Rejection(Origin("hosts file", f"{path}:{number}"), reason))
        elif fields := line.partition("#")[0].split():
            origin = Origin("hosts file", f"{path}:{number}")
            for hostname, address in _parse_line(fields, origin, rejections):
                _add(claims, hostname, address, origin)
                yield
        yield
    return HostsFile(claims, rejections.of(path), rejections.count)


class _Rejections:
    def __init__(self) -> None:
        self._first: list[Rejection] = []
        self.count = 0

    def add(self, rejection: Rejection) -> None:
        self.count += 1
        if self.count <= MOST_REJECTIONS:
            self._first.append(rejection)

    def of(self, path: str) -> list[Rejection]:
        more = self.count - len(self._first)
        rest = [Rejection(Origin("hosts file", path), f"{more} more lines or names are invalid")] if more else []
        return self._first + rest


def _add(claims: dict[str, Claim], hostname: str, address: str, origin: Origin) -> None:
    known = claims.get(hostname)
    if known is None:
        claims[hostname] = static_claim(hostname, (address,), origin)
    elif address not in known.terms.addresses:
        claims[hostname] = static_claim(hostname, (*known.terms.addresses, address), known.origin)


def _parse_line(fields: list[str], origin: Origin, rejections: _Rejections) -> Iterator[tuple[str, str]]:
    wanted = [name for name in fields[1:] if not _is_own_name(name.lower())]
    if fields[1:] and not wanted:
        # Checked before the address: the usual lines have multicast addresses, as in `ff02::1 ip6-allnodes`.
        return
    try:
        address = _parse_address(fields[0])
    except ValueError as error:
        reason = str(error) if is_text(fields[0]) else f"{quoted(fields[0])} is not UTF-8"
        rejections.add(Rejection(origin, reason))
        return
    if not wanted:
        rejections.add(Rejection(origin, f"{address} has no name after it"))
    for name in wanted:
        try:
            yield _parse_name(name), address
        except BadName as error:
            rejections.add(Rejection(origin, str(error)))


def _parse_name(name: str) -> str:
    # Before parse_hostname, which would blame the spelling.
    if not name.isascii() and not is_text(name):
        raise BadName(f"{quoted(name)} is not UTF-8")
    return parse_hostname(name)


def _is_own_name(name: str) -> bool:
    return name in _OWN_NAMES or name.startswith("ip6-")


def static_claim(hostname: str, addresses: tuple[str, ...], origin: Origin) -> Claim:
    """A claim with fixed addresses."""
    return Claim(hostname, reach_in_dns(hostname), origin, share_terms(Terms(addresses)))


SOURCE: Final = "hosts file"


class HostsSource:
    """Feeds one registry with the claims of one hosts file."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._claims: dict[str, Claim] = {}

    def replace(self, found: HostsFile) -> Generator[None, None, None]:
        """Apply the current content of the file, one step per name."""
        store = self._registry.store
        old, self._claims = self._claims, dict(found.claims)
        # A dict: the garbage collector would walk through a list of so many.
        touched: dict[str, None] = {}
        for hostname, claim in found.claims.items():
            if old.pop(hostname, None) != claim:
                store.replace(SOURCE, hostname, [claim])
                touched[hostname] = None
            yield
        while old:
            hostname, _ = old.popitem()
            store.replace(SOURCE, hostname, [])
            touched[hostname] = None
            yield
        store.replace(SOURCE, "", [], found.rejections)
        # Only now: a name that moved from one line to another must not be missing from a table in between.
        self._registry.touch(touched)

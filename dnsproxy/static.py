"""Static names: `--host NAME=IP[,IP]` and hosts files (hosts(5)), wildcards included.

The law: a line that cannot be used is reported with its number, and the rest of the file counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from dnsproxy.claims import Claim, Origin, Reach, Rejection
from dnsproxy.names import BadName, is_wildcard, parse_hostname
from dnsproxy.targets import parse_address, parse_addresses

# Every hosts(5) file begins with these; they are each host's own business and no mistake of the writer's.
_OWN_NAMES = frozenset(("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback", "broadcasthost"))


def parse_host_flag(text: str) -> Claim:
    """`NAME=IP[,IP]...` as a claim. Raises ValueError that says what is wrong."""
    name, equals, addresses = text.partition("=")
    if not equals:
        raise ValueError(f"{text!a} is not NAME=IP[,IP], for example app.example.org=192.0.2.10")
    return static_claim(parse_hostname(name), parse_addresses(addresses), Origin("flag", f"--host {text}"))


def parse_hosts_file(content: str, *, path: str) -> tuple[list[Claim], list[Rejection]]:
    """The claims of a hosts file: `ADDRESS NAME...`, `#` begins a comment, lines of one name add up."""
    addresses: dict[str, dict[str, None]] = {}
    origins: dict[str, Origin] = {}
    rejections: list[Rejection] = []
    # Not splitlines(): it also ends a line at U+0085 and the like, and would take what follows out of a comment.
    for number, line in enumerate(content.split("\n"), 1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        origin = Origin("hosts file", f"{path}:{number}")
        for hostname, address in _parse_line(fields, origin, rejections):
            addresses.setdefault(hostname, {})[address] = None
            origins.setdefault(hostname, origin)
    claims = [static_claim(name, tuple(addresses[name]), origins[name]) for name in addresses]
    return claims, rejections


def _parse_line(fields: list[str], origin: Origin, rejections: list[Rejection]) -> Iterable[tuple[str, str]]:
    wanted = [name for name in fields[1:] if not _is_own_name(name.lower())]
    if fields[1:] and not wanted:
        # Before the address is looked at: the lines of every system have multicast ones, as in `ff02::1 ip6-allnodes`.
        return
    try:
        address = parse_address(fields[0])
    except ValueError as error:
        rejections.append(Rejection(origin, str(error)))
        return
    if not wanted:
        rejections.append(Rejection(origin, f"{address} has no name behind it"))
    for name in wanted:
        try:
            yield parse_hostname(name), address
        except BadName as error:
            rejections.append(Rejection(origin, str(error)))


def _is_own_name(name: str) -> bool:
    return name in _OWN_NAMES or name.startswith("ip6-")


def static_claim(hostname: str, addresses: tuple[str, ...], origin: Origin) -> Claim:
    """A claim with fixed addresses; a static wildcard covers one or more labels, as in the DNS (RFC 4592)."""
    reach = Reach.ANY_LABELS if is_wildcard(hostname) else Reach.NAME
    return Claim(hostname, reach, origin, addresses)

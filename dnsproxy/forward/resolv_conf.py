"""resolv.conf(5): the nameservers to forward to, the options for asking them, and the search list of the pod.

The law: as in the C library, words that are not understood are ignored. Unlike there, a file without a nameserver does
not mean the local host: the list is empty, so that the caller can report it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dnsproxy.dns.names import BadName, parse_zone

_LONGEST_TIMEOUT: Final = 30  # RES_MAXRETRANS of resolv.h
_MOST_ATTEMPTS: Final = 5  # RES_MAXRETRY


@dataclass(frozen=True, slots=True)
class ResolverOptions:
    """The `options` lines, with the defaults of the C library."""

    rotate: bool = False
    """Start with another nameserver for each query."""
    timeout: int = 5
    """Seconds to wait for one nameserver, 1 to 30. It changes none of our deadlines, because the client of a forwarder
    waits two seconds in total: the next upstream is asked after 0.6 s."""
    attempts: int = 2
    """How often to ask each nameserver, 1 to 5."""
    use_vc: bool = False
    """Ask over TCP."""


def parse_options(content: str) -> ResolverOptions:
    """The options of all `options` lines; the last of a repeated option counts, unknown ones are ignored.

    As in the C library, every word of such a line counts, also behind a `#`.
    """
    words = [word for keyword, *values in _lines(content) if keyword == "options" for word in values]
    plain = ResolverOptions()
    return ResolverOptions(
        rotate="rotate" in words,
        timeout=_last_number(words, "timeout:", most=_LONGEST_TIMEOUT) or plain.timeout,
        attempts=_last_number(words, "attempts:", most=_MOST_ATTEMPTS) or plain.attempts,
        use_vc="use-vc" in words,
    )


def parse_nameservers(content: str) -> list[str]:
    """The addresses of the `nameserver` lines in order, each once; a link-local one keeps its zone."""
    found: dict[str, None] = {}
    for keyword, *values in _lines(content):
        if keyword == "nameserver" and values:
            try:
                found[str(ipaddress.ip_address(values[0]))] = None
            except ValueError:
                continue
    return list(found)


def parse_search(content: str) -> list[str]:
    """The search list: the last `search` or `domain` line counts, as in resolv.conf(5)."""
    search: list[str] = []
    for keyword, *values in _lines(content):
        if keyword in ("search", "domain"):
            search = [value.lower().removesuffix(".") for value in values]
    return search


def search_domains(search: Iterable[str]) -> tuple[str, ...]:
    """The domains of a search list in normal form, each once; others, such as the root, match no hostname."""
    found: dict[str, None] = {}
    for domain in search:
        try:
            found[parse_zone(domain)] = None
        except BadName:
            continue
    return tuple(found)


def find_cluster_domain(search: list[str]) -> str | None:
    """The cluster domain in the search list of a pod: the name in most `svc.` entries, then the shortest.

    kubelet writes `NAMESPACE.svc.DOMAIN svc.DOMAIN DOMAIN` (Kubernetes, DNS for Services and Pods). The list of a host
    has no such entries: the result is None.
    """
    candidates = [name for name in search if name and not name.startswith("svc.") and ".svc." not in name]
    scored = [(-_votes(name, search), len(name), name) for name in candidates]
    scored = [row for row in scored if row[0]]
    return min(scored)[2] if scored else None


def _votes(domain: str, search: list[str]) -> int:
    return sum(entry == f"svc.{domain}" or entry.endswith(f".svc.{domain}") for entry in search)


def _last_number(words: list[str], option: str, *, most: int) -> int | None:
    """The last number of an option, capped at `most`; a value that is not a positive number is ignored."""
    found = None
    for word in words:
        digits = word.removeprefix(option)
        if word.startswith(option) and digits.isascii() and digits.isdigit() and digits.strip("0"):
            digits = digits.lstrip("0")
            found = min(int(digits), most) if len(digits) <= len(str(most)) else most
    return found


def _lines(content: str) -> list[list[str]]:
    # Not splitlines(): it also splits at U+0085 and the like, so that part of a comment would become a line.
    # A byte order mark would hide the first line.
    lines = content.removeprefix("\ufeff").split("\n")
    rows = (line.split() for line in lines if not line.lstrip().startswith(("#", ";")))
    return [row for row in rows if row]

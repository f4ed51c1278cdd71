"""resolv.conf(5): the nameservers that queries are forwarded to, how to ask them, and the search list of the pod.

The law: like the C library's reader, what is not understood is passed over; unlike it, no nameserver at all is not the
local host but nothing, so that the caller can say so.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final

_LONGEST_TIMEOUT: Final = 30  # RES_MAXRETRANS of resolv.h
_MOST_ATTEMPTS: Final = 5  # RES_MAXRETRY


@dataclass(frozen=True, slots=True)
class ResolverOptions:
    """What the `options` lines say of the way to ask; the C library's defaults."""

    rotate: bool = False
    """Begin with another nameserver each time."""
    timeout: int = 5
    """Seconds to wait for one nameserver, 1 to 30: what a host's resolver has to spare. It moves no deadline of ours,
    because a forwarder's client waits two seconds in all: the next upstream is asked after 0.6 s."""
    attempts: int = 2
    """How often to ask each nameserver, 1 to 5."""
    use_vc: bool = False
    """Ask over TCP."""


def parse_options(content: str) -> ResolverOptions:
    """The options of all `options` lines together; of one given twice the last counts, unknown ones do nothing.

    As in the C library, a word of such a line counts wherever it stands: behind a `#` too.
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


def find_cluster_domain(search: list[str]) -> str | None:
    """The cluster's domain in a pod's search list: the name that most `svc.` entries stand before, or the shorter.

    kubelet writes `NAMESPACE.svc.DOMAIN svc.DOMAIN DOMAIN` (Kubernetes, DNS for Services and Pods); a host's own list
    has no such entries, and None is the answer.
    """
    candidates = [name for name in search if name and not name.startswith("svc.") and ".svc." not in name]
    scored = [(-_votes(name, search), len(name), name) for name in candidates]
    scored = [row for row in scored if row[0]]
    return min(scored)[2] if scored else None


def _votes(domain: str, search: list[str]) -> int:
    return sum(entry == f"svc.{domain}" or entry.endswith(f".svc.{domain}") for entry in search)


def _last_number(words: list[str], option: str, *, most: int) -> int | None:
    """The number behind an option, `most` for all above; what is no number from 1 up is passed over."""
    found = None
    for word in words:
        digits = word.removeprefix(option)
        if word.startswith(option) and digits.isascii() and digits.isdigit() and digits.strip("0"):
            digits = digits.lstrip("0")
            found = min(int(digits), most) if len(digits) <= len(str(most)) else most
    return found


def _lines(content: str) -> list[list[str]]:
    # Not splitlines(): it also ends a line at U+0085 and the like, and would take what follows out of a comment.
    rows = (line.split() for line in content.split("\n") if not line.lstrip().startswith(("#", ";")))
    return [row for row in rows if row]

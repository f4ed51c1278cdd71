"""resolv.conf(5): the nameservers that queries are forwarded to, and the search list of the pod.

The law: like the C library's reader, what is not understood is passed over; unlike it, no nameserver at all is not the
local host but nothing, so that the caller can say so.
"""

from __future__ import annotations

import ipaddress


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


def _lines(content: str) -> list[list[str]]:
    # Not splitlines(): it also ends a line at U+0085 and the like, and would take what follows out of a comment.
    rows = (line.split() for line in content.split("\n") if not line.lstrip().startswith(("#", ";")))
    return [row for row in rows if row]

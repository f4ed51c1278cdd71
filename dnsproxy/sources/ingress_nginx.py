"""ingress-nginx: the hostnames that annotations add to the hosts of an Ingress's rules, on this controller alone.

The law: pure; in doubt a hostname is left to the upstreams. The controller drops an alias, and the other half of www,
where a server has the host by a rule; the answer is the same. Its class is a right (rights.py).

https://github.com/kubernetes/ingress-nginx/blob/dbb11b92/internal/ingress/controller/controller.go createServers
https://github.com/kubernetes/ingress-nginx/blob/dbb11b92/pkg/util/ingress/ingress.go BuildRedirects
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from dnsproxy.dns.names import parse_hostnames
from dnsproxy.sources.annotations import MOST_HOSTNAMES, AnnotationFields, split_list
from sidecar.values.text import quoted

CONTROLLERS: Final = frozenset({"k8s.io/ingress-nginx", "k8s.io/internal-ingress-nginx"})
"""The controllers of its IngressClasses: its default, and that of its guide for a second one."""

ALIAS: Final = "nginx.ingress.kubernetes.io/server-alias"
WWW: Final = "nginx.ingress.kubernetes.io/from-to-www-redirect"
CANARY: Final = "nginx.ingress.kubernetes.io/canary"

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
"""As strconv.ParseBool of Go has them."""
_ACCEPTED: Final = re.compile(r"[-/._~a-zA-Z0-9:^$\[\](){}*+?|&=\\]*")
"""ValidateServerName; with one other character, ingress-nginx leaves out the whole Ingress."""


class NginxFields(AnnotationFields, frozen=True, gc=False):
    """Our annotations, and those of ingress-nginx that add hostnames."""

    alias: str | None = msgspec.field(default=None, name=ALIAS)
    www: str | None = msgspec.field(default=None, name=WWW)
    canary: str | None = msgspec.field(default=None, name=CANARY)


def additional_hostnames(annotations: NginxFields | None, hosts: Iterable[str]) -> tuple[dict[str, None], list[str]]:
    """The hostnames that the annotations add, in normal form, and the faults of those that are not served or patterns.

    `hosts`: those of the rules with paths. A redirect needs no certificate: without one it is served by HTTP.
    """
    if annotations is None or (annotations.alias is None and annotations.www is None) or annotations.canary in _TRUE:
        return {}, []
    aliases, is_cut = split_list(annotations.alias or "")
    refused = next((alias for alias in aliases if not _ACCEPTED.fullmatch(alias)), None)
    if refused is not None:
        return {}, [f"{ALIAS}: for {quoted(refused)}, ingress-nginx refuses the whole list"]
    patterns = [alias for alias in aliases if _is_pattern(alias)]
    faults = [f"{quoted(alias)} is a pattern, and NAME or *.NAME alone can be answered" for alias in patterns]
    if is_cut:
        faults.append(f"it has more than {MOST_HOSTNAMES:,} hostnames: the others are left out")
    names, bad_names = parse_hostnames(alias for alias in aliases if not _is_pattern(alias))
    halves, bad_halves = parse_hostnames(map(_other_half, hosts) if annotations.www in _TRUE else ())
    found = [f"{ALIAS}: {fault}" for fault in faults + bad_names] + [f"{WWW}: {fault}" for fault in bad_halves]
    return names | halves, list(dict.fromkeys(found))


def _is_pattern(alias: str) -> bool:
    """Whether nginx compares it with more than a name and `*.NAME`. A final dot matches no host that it asks for."""
    return alias[0] in "~." or alias[-1] == "." or "*" in alias.removeprefix("*.")


def _other_half(host: str) -> str:
    return host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"

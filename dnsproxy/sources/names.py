"""The names of sources: the values of `--source` that are watched in a cluster, and the classes that each may have.

The law: pure; every mistake in a value is reported here.
"""

from __future__ import annotations

from typing import Final

from dnsproxy.sources.described import table
from dnsproxy.sources.described.custom import PREFIX, parse_custom
from dnsproxy.sources.istio.gateway_class import parse_class
from sidecar.values.text import quoted

INGRESS: Final = "ingress"
GATEWAY: Final = "gateway"
SERVICE: Final = "service"
ISTIO: Final = "istio"
EXTERNAL_DNS: Final = "external-dns"
DNS_ENDPOINT: Final = "dnsendpoint"

BUILT_IN: Final = (INGRESS, GATEWAY, SERVICE)
"""With options of their own."""
OTHERS: Final = (*table.SOURCES, ISTIO, EXTERNAL_DNS, DNS_ENDPOINT)
"""Followed by a source_follower, with classes by `--class-of`."""
_WITHOUT_CLASSES: Final = frozenset({SERVICE, DNS_ENDPOINT})


def parse_source_name(text: str) -> str:
    """One of BUILT_IN and OTHERS, or `crd:PLURAL.GROUP:PATH`. Raises ValueError."""
    if text.startswith(PREFIX):
        parse_custom(text)
    elif text not in (*BUILT_IN, *OTHERS):
        names = ", ".join((*BUILT_IN, *OTHERS))
        raise ValueError(f"{quoted(text)} is none of {names}, crd:PLURAL.GROUP:PATH and rpz:ZONE@HOST:PORT")
    return text


def parse_source_class(text: str) -> tuple[str, str]:
    """`SOURCE=CLASS`, for a source of OTHERS with classes or `crd:`. Raises ValueError."""
    source, equals, name = text.strip().partition("=")
    if not equals or not source or not name:
        raise ValueError(f"{quoted(text)} is not SOURCE=CLASS, for example traefik=internal")
    if source in BUILT_IN or source in _WITHOUT_CLASSES:
        flags = {INGRESS: "has the flag --ingress-class", GATEWAY: "has the flag --gateway-class"}
        raise ValueError(f"{quoted(text)}: {source} {flags.get(source, 'has no classes')}")
    return parse_source_name(source), parse_class(name) if source == ISTIO else name

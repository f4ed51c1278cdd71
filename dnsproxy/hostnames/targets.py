"""Targets: where the names of the cluster point (design: a relay's Service, or an ingress controller's)."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from dnsproxy.dns.names import shown

_SERVICE: Final = re.compile(r"service:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class BadTarget(ValueError):
    """A text that is no target; the message names it."""


def parse_addresses(text: str) -> tuple[str, ...]:
    """`ADDRESS[,ADDRESS]...` as canonical texts in the order given, each once.

    Raises ValueError that names the part which is no address, or one that no client could use.
    """
    parts = [part.strip() for part in text.split(",")]
    return tuple(dict.fromkeys(parse_address(part) for part in parts))


def parse_address(text: str) -> str:
    """One IPv4 or IPv6 address, without zone or port, in canonical form (RFC 5952)."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"{shown(text)} is not an IP address") from None
    if getattr(address, "scope_id", None):
        raise ValueError(f"{shown(text)} has a zone, which means nothing to another host")
    if address.is_unspecified or address.is_multicast:
        raise ValueError(f"{shown(text)} is not an address that a client can connect to")
    return str(address)


def is_address(text: str) -> bool:
    """Whether parse_address would take a text."""
    try:
        parse_address(text)
    except ValueError:
        return False
    return True


def parse_target(text: str) -> str:
    """`ADDRESS[,ADDRESS]...` in canonical form, `service:NAMESPACE/NAME` or `status`. Raises BadTarget."""
    text = text.strip()
    if text == "status" or _SERVICE.fullmatch(text):
        return text
    if text.startswith("service:"):
        raise BadTarget(f"{shown(text)} is not service:NAMESPACE/NAME")
    try:
        return ",".join(parse_addresses(text))
    except ValueError as error:
        raise BadTarget(f"{error}; it may also be service:NAMESPACE/NAME, or status") from None

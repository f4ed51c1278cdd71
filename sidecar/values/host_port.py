"""HOST:PORT: a host, by name or by address, with a port; as text and as a value.

The law: an address is in normal form, a name as the caller's rule for names returns it; nothing here looks a name up.
Where only an address will do, it is an Endpoint. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sidecar.values.endpoints import is_address, parse_address, parse_port
from sidecar.values.text import quoted


@dataclass(frozen=True, slots=True)
class HostPort:
    """A host and a port; as text `HOST:PORT`, an IPv6 address in brackets (RFC 3986 section 3.2.2)."""

    host: str
    """A name, or an IP literal without brackets."""
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_host_port(text: str, *, parse_name: Callable[[str], str], example: str = "") -> HostPort:
    """The host and port of `HOST:PORT`, the port 1 to 65535. Raises ValueError, with the example if there is one.

    `parse_name` returns the normal form of a host that is not an IP literal, or raises ValueError.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        raise ValueError(f"{quoted(text)} is not HOST:PORT{f', such as {example}' if example else ''}")
    return HostPort(_parse_host(host, parse_name), parse_port(port))


def _parse_host(text: str, parse_name: Callable[[str], str]) -> str:
    if text.startswith("[") and text.endswith("]"):
        return parse_address(text[1:-1])
    if ":" in text:
        raise ValueError(f"{quoted(text)}: an IPv6 address goes in brackets")
    return parse_address(text) if is_address(text) else parse_name(text)

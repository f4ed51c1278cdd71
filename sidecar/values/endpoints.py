"""Endpoints: an IP address with a port, and its text form.

The law: an endpoint contains an address literal, never a name, so a program binds or dials exactly what its flag says.
Pure.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from sidecar.values.text import quoted

MAXIMUM_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address and a port; as text `ADDR:PORT`, an IPv6 address in brackets (RFC 3986 section 3.2.2)."""

    host: str
    """An IP literal in its normal form, IPv6 without brackets."""
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_endpoint(text: str, *, default_port: int | None = None) -> Endpoint:
    """The endpoint of `ADDR:PORT`, or of `ADDR` alone if there is a default port.

    Port 0 lets the operating system choose, which makes sense for listening only: an endpoint with a default port is
    for dialling, and port 0 is refused there. Raises ValueError with a message for the user.
    """
    host, port = _split(text.strip(), default_port)
    lowest = 0 if default_port is None else 1
    return Endpoint(parse_address(host), parse_port(port, lowest=lowest))


def parse_address(text: str) -> str:
    """The normal form of an IP literal, with its IPv6 scope (`%eth0`). Raises ValueError."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError(f"{quoted(text)} is not an IP address") from None


def is_address(text: str) -> bool:
    """Whether parse_address accepts the text."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def parse_port(text: str, *, lowest: int = 1) -> int:
    """A port in ASCII digits, `lowest` to 65535. Raises ValueError."""
    if not (text.isascii() and text.isdigit() and len(text) <= len("65535") and lowest <= int(text) <= MAXIMUM_PORT):
        raise ValueError(f"{quoted(text)} is not a port ({lowest} to {MAXIMUM_PORT})")
    return int(text)


def _split(text: str, default_port: int | None) -> tuple[str, str]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if bracket and not rest and default_port is not None:
            return host, str(default_port)
        if bracket and rest.startswith(":"):
            return host, rest[1:]
        raise ValueError(f"{quoted(text)} is not [ADDR]:PORT")
    host, colon, port = text.rpartition(":")
    if ":" in host or not colon:
        # Two colons and no brackets: an IPv6 address without a port, because its last group could not be told from one.
        if default_port is not None:
            return text, str(default_port)
        raise ValueError(_what_is_missing(text))
    if not host:
        every = " or ".join(quoted(f"{address}{text}") for address in ("0.0.0.0", "[::]"))
        raise ValueError(f"{quoted(text)} has no address; for every address write {every}")
    return host, port


def _what_is_missing(text: str) -> str:
    if ":" in text:
        return f"{quoted(text)} is not ADDR:PORT; an IPv6 address goes in brackets, [2001:db8::1]:PORT"
    return f"{quoted(text)} is not ADDR:PORT"

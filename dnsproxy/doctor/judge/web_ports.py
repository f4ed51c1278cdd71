"""Web ports: which ports of a Service speak HTTP or TLS to the clients of its hosts.

The law: a port is known by its number, its name and its application protocol; a port of the program itself (webhook,
metrics, health) is never one. Tested in tests/dnsproxy/doctor/judge/test_web_ports.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dnsproxy.doctor.facts.model import Port

WebPort = tuple[int, bool]
"""A port, and whether it starts with a TLS handshake."""

DEFAULT: Final[tuple[WebPort, ...]] = ((80, False), (443, True))
"""What a client dials that knows only a hostname."""
_TLS_PORTS: Final = frozenset([443, 8443])
_HTTP_PORTS: Final = frozenset([80, 8080, 8000])
_OWN_WORDS: Final = ("webhook", "metrics", "health", "admin", "prometheus", "status", "dashboard", "profil")
"""In the names of ports that no host is served at: ingress-nginx calls that of its admission `https-webhook`."""


def is_tls(port: Port) -> bool | None:
    """Whether a port starts with a TLS handshake; None if it is no web port, so that it cannot be probed."""
    words = f"{port.name} {port.app_protocol}".lower()
    if any(word in words for word in _OWN_WORDS):
        return None
    if port.port in _TLS_PORTS or any(word in words for word in ("https", "tls", "secure")):
        return True
    return False if port.port in _HTTP_PORTS or "http" in words or "web" in words else None


def web_ports(ports: Iterable[Port]) -> tuple[WebPort, ...]:
    """The web ports among these, in their order."""
    return tuple((port.port, tls) for port in ports if (tls := is_tls(port)) is not None)

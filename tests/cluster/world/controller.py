"""What the world's controllers have in common: names, the URL for each protocol, and where the access log is.

The law: a frozen value for each; a controller's module holds only what differs. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MANIFESTS: Final = Path(__file__).parent / "manifests"
HTTP, HTTPS, HTTP2, GRPC, WEB_SOCKET = "HTTP/1.1", "HTTPS", "HTTP/2", "gRPC", "WebSocket"
PROTOCOLS: Final = (HTTP, HTTPS, HTTP2, GRPC, WEB_SOCKET)
FIRST_OF_LINE: Final = r"^(?P<client>\S+) - "
"""A line of an access log in the common format begins with the client."""


@dataclass(frozen=True)
class Controller:
    """A program that visitors reach by a load balancer."""

    name: str
    """Of its class, its load balancer and the zone of its hosts."""
    namespace: str
    service: str
    """Of type LoadBalancer."""
    workloads: Sequence[str]
    """Those that an upgrade rolls out, in this order."""
    log: Sequence[str]
    """The words of `kubectl logs` for its access log."""
    client: str = FIRST_OF_LINE
    """Finds the client in a line of it, as the group `client`."""
    protocols: Sequence[str] = PROTOCOLS
    """Those that it passes on."""
    gateway: str = ""
    """The name of its Gateway, if it has no class."""

    @property
    def pages(self) -> str:
        return f"pages.{self.name}.example.org"

    @property
    def subject(self) -> str:
        """Its row of `dnsproxy status`, as decisions() names it."""
        return f"gateway/default/{self.gateway}" if self.gateway else self.name

    def page(self, who: str) -> str:
        """What a client with this address gets from the backend."""
        return f"hello from {self.pages} to {who}"

    def asks(self, protocol: str) -> tuple[str, str]:
        """The speaker's command and the URL for one protocol."""
        return {
            HTTP: ("http1", f"http://{self.pages}/"),
            HTTPS: ("http1", f"https://{self.pages}/"),
            HTTP2: ("http2", f"https://{self.pages}/"),
            GRPC: ("grpc", f"https://grpc.{self.name}.example.org/"),
            WEB_SOCKET: ("ws", f"https://{self.pages}/ws"),
        }[protocol]

    def client_in(self, log: str, path: str) -> str:
        """The client of the last request for a path; empty if the log has none."""
        lines = [line for line in log.splitlines() if f"{path} " in line or f'{path}"' in line]
        found = re.search(self.client, lines[-1]) if lines else None
        return found["client"] if found else ""

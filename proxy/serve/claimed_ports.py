"""The ports of routes from Services in a supervisor: it claims them, and its workers listen there.

The law: a port is claimed from the opening of its route to its closing, and nothing is accepted here. Tested in
tests/peers/test_routes_apiserver.py.
"""

from __future__ import annotations

import socket
from types import TracebackType

from proxy.backends.backend import Backend
from proxy.relay.relay import LISTENING
from proxy.routes import Route
from sidecar.sockets.listeners import claim_tcp
from sidecar.values.endpoints import Endpoint


class ClaimedPorts:
    """The claims of a supervisor; a context manager that gives them up.

    Each worker follows the Services by itself, and opens and closes its own listening sockets; a claim is bound and
    does not listen, so the kernel gives it no connection. It is not needed to share a port, as the claims of --route
    are, where port 0 becomes a number. But without it, a port would be free for other programs while the only worker
    that listens there is replaced, and whether a port can be opened at all would be known to the workers alone: each
    would log the same fault. A worker that sees a Service before the supervisor opens the port without the claim, and
    one that sees its end later keeps the port for that long: both share it (SO_REUSEPORT).
    """

    def __init__(self) -> None:
        self._claims: dict[Endpoint, socket.socket] = {}

    def __enter__(self) -> ClaimedPorts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for claim in self._claims.values():
            claim.close()
        self._claims.clear()

    def open_port(self, route: Route, _backend: Backend) -> None:
        """Claim the port of a route. Raises StartError."""
        self._claims[route.listen] = claim_tcp(route.listen, flag=LISTENING, is_first=False)

    def change_port(self, route: Route, backend: Backend) -> None:
        """Nothing changes for the claim."""

    def close_port(self, route: Route) -> None:
        """Give up a claim."""
        self._claims.pop(route.listen).close()

    def set_aside(self, descriptors: int) -> None:
        """A supervisor has no clients whose number it would have to limit."""

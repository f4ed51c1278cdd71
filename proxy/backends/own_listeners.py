"""Where this relay listens, by port: a backend's address there would make each connection cause another one.

The law: pure. A look-up costs the same for one listener and for a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sidecar.values.endpoints import Endpoint


class OwnListeners:
    """The listening endpoints of this relay; it does not change."""

    def __init__(self, endpoints: Iterable[Endpoint] = ()) -> None:
        self._by_port: dict[int, list[Endpoint]] = {}
        for one in endpoints:
            self._by_port.setdefault(one.port, []).append(one)

    def at(self, port: int) -> Sequence[Endpoint]:
        """The listeners at a port."""
        return self._by_port.get(port, ())

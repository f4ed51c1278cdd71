"""The graph of the known objects of Istio: which VirtualServices name which Gateway.

The law: the index holds an entry exactly as long as the object that caused it, so that after any history it equals the
index of the existing objects alone.
"""

from __future__ import annotations

from dnsproxy.sources.istio.facts import Facts, VirtualServiceFacts
from dnsproxy.sources.istio.kinds import ISTIO_GATEWAY


class ObjectGraph:
    """Facts by kind and key."""

    def __init__(self) -> None:
        self._facts: dict[str, dict[str, Facts]] = {}
        self._bound: dict[str, dict[str, None]] = {}

    def get(self, kind: str, key: str) -> Facts | None:
        """The facts of an object; None if it does not exist."""
        return self._facts.get(kind, {}).get(key)

    def gateway(self, key: str) -> Facts | None:
        """The facts of a Gateway, which may be unreadable; None if it does not exist."""
        return self.get(ISTIO_GATEWAY, key)

    def put(self, kind: str, key: str, facts: Facts | None) -> bool:
        """Add or replace an object, or remove it (None). Returns whether anything changed."""
        old = self.get(kind, key)
        if old == facts:
            return False
        self._unlink(key, old)
        if facts is None:
            del self._facts[kind][key]
        else:
            self._facts.setdefault(kind, {})[key] = facts
            for gateway in _gateways_of(facts):
                self._bound.setdefault(gateway, {})[key] = None
        return True

    def bound_to(self, gateway: str) -> list[str]:
        """The VirtualServices that name a Gateway, by key."""
        return list(self._bound.get(gateway, ()))

    def is_empty(self) -> bool:
        """Whether no trace of any object is left."""
        return not (self._bound or any(self._facts.values()))

    def _unlink(self, key: str, old: Facts | None) -> None:
        for gateway in _gateways_of(old):
            del self._bound[gateway][key]
            if not self._bound[gateway]:
                del self._bound[gateway]


def _gateways_of(facts: Facts | None) -> tuple[str, ...]:
    return facts.gateways if isinstance(facts, VirtualServiceFacts) else ()

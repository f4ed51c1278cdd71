"""Which decisions get ports of the relay: each namespace with controllers has a share of them.

The law: who writes a Gateway there, or a Service at an address of its controllers, could take all of the relay's
ports. So controllers' own ports come first, and those of neighbors get what is left; routes that exist come before new
ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from dnsproxy.operate.decide.decisions import Decision
from dnsproxy.operate.decide.facts import Route
from sidecar.kubernetes.relay_routes import MOST_ROUTES

MOST_PORTS: Final = MOST_ROUTES // 4
"""Listening ports for the controllers of one namespace."""


def within_shares(
    relayed: Mapping[str, Decision], current: Mapping[str, Route]
) -> tuple[dict[str, Decision], dict[str, str]]:
    """The decisions with the ports that there is room for, and what others lack; both by name of the Service.

    A decision is missing if not all ports of its controller have room.
    """
    used: Counter[str] = Counter()
    found: dict[str, Decision] = {}
    faults: dict[str, str] = {}
    for name in sorted(relayed, key=lambda name: (name not in current, name)):
        decision, namespace = relayed[name], _namespace(relayed[name])
        count = used[namespace] + sum(not one.backend for one in decision.ports)
        if count > MOST_PORTS:
            faults[name] = _most(namespace)
        else:
            used[namespace], found[name] = count, decision
    for name, decision in found.items():
        namespace = _namespace(decision)
        lent = [one for one in decision.ports if one.backend]
        room = MOST_PORTS - used[namespace]
        used[namespace] += len(lent[:room])
        if left := lent[room:]:
            found[name] = replace(decision, ports=tuple(one for one in decision.ports if one not in left))
            more = f", nor for {len(left) - 1} others" if len(left) > 1 else ""
            faults[name] = f"{_most(namespace)}: none is left for port {left[0].port} of {left[0].backend}{more}"
    return found, faults


def _namespace(decision: Decision) -> str:
    return decision.backend.key.partition("/")[0] if decision.backend is not None else ""


def _most(namespace: str) -> str:
    return f"the relay listens at most at {MOST_PORTS} ports for controllers in namespace {namespace}"

"""A connection to a load balancer's address that nothing intercepts: to a port that the Service does not have.

The law: kube-proxy matches address and port, so that another port of the address leaves the cluster. An answer, a
refusal too, shows a way out and back; silence shows nothing, because a load balancer or a firewall may drop what it
does not know. In mode ipvs the address is local, and Cilium may drop the port itself: there, nothing is shown. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dnsproxy.doctor.facts.model import Service
from dnsproxy.doctor.facts.probes import Outcome, Probe
from dnsproxy.doctor.judge.short_circuit import KUBE_PROXY, Answer
from sidecar.values.endpoints import Endpoint

_HIGHEST: Final = 64999
_SILENT: Final = frozenset([Outcome.UNREACHABLE, Outcome.NO_ROUTE])
_BLIND_MODES: Final = frozenset(["ipvs"])


@dataclass(frozen=True, slots=True)
class WayOut:
    """Whether there is a way from here to a load balancer's address and back, past the short circuit."""

    answer: Answer
    why: str


def unlisted_port(service: Service) -> int:
    """A port that the Service does not have."""
    taken = {port.port for port in service.ports}
    return next(port for port in range(_HIGHEST, 0, -1) if port not in taken)


def read_probe(probe: Probe, *, plane: str, mode: str) -> WayOut:
    """What a connection to an unlisted port shows."""
    where, end = str(Endpoint(probe.address, probe.port)), probe.outcome.value
    if probe.outcome in _SILENT:
        why = f"no answer from {where}, a port that the Service does not have ({end}): that shows nothing"
        return WayOut(Answer.UNKNOWN, why)
    if plane != KUBE_PROXY or mode in _BLIND_MODES:
        by = f"{plane} in mode {mode}" if mode else plane
        return WayOut(Answer.UNKNOWN, f"{where}, a port that the Service does not have: {end}; {by} may have said that")
    return WayOut(Answer.YES, f"{where}, a port that the Service does not have: {end}, so packets get there and back")

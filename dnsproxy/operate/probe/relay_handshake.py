"""One handshake through a relay: each of its ports has to answer, as a pod's client would see it.

The law: an answer is any HTTP response other than 400, or a TLS ServerHello, for a name that no application has or for
one of the subject's names, which are tried only where the controller does not answer by itself: an application that
hangs, closes or answers 400 says nothing about the header. The first time each pod of the relay and the relay Service
have to answer, so that names are steered only to where the relay listens; later one pod is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dnsproxy.doctor.collect.dial_targets import DialTarget
from dnsproxy.doctor.collect.dialling import dial
from dnsproxy.doctor.facts.probes import Outcome, Probe
from dnsproxy.doctor.judge.header_mode import is_understood
from dnsproxy.operate.decide.handshaking import Answered, RelayHandshake, RelayPort
from dnsproxy.operate.decide.probing import UNSERVED
from dnsproxy.operate.probe.endpoint_probe import MANNER
from sidecar.values.endpoints import Endpoint

MOST_PODS: Final = 8
"""Pods of the relay that are tried."""
_NOT_TAKEN: Final = frozenset([Outcome.REFUSED, Outcome.UNREACHABLE, Outcome.NO_ROUTE])


async def shake_hands(wanted: RelayHandshake, pods: Sequence[str], *, every_pod: bool) -> Answered:
    """Try the relay's pods, by their addresses; `every_pod`: all of them, and the relay Service's own addresses."""
    failed: Answered | None = None
    answered: Answered | None = None
    for pod in pods[:MOST_PODS]:
        found = await _try_address(wanted, pod, [port.listen for port in wanted.ports])
        if found.succeeded:
            answered = found
            if not every_pod:
                return found
        elif failed is None or found.taken:
            failed = found
    if failed is not None:
        return failed
    if answered is None:
        return Answered(succeeded=False, taken=False, detail="the relay has no ready pod")
    return await _try_service(wanted) or answered


async def _try_service(wanted: RelayHandshake) -> Answered | None:
    """What fails at the relay Service: a node needs a moment until it forwards a new Service's connections."""
    for address in wanted.addresses:
        found = await _try_address(wanted, address, [port.port for port in wanted.ports])
        if not found.succeeded:
            return found
    return None


async def _try_address(wanted: RelayHandshake, address: str, numbers: Sequence[int]) -> Answered:
    """Each port of the relay at an address, where `numbers` are dialled for them."""
    answers = []
    for port, number in zip(wanted.ports, numbers, strict=True):
        probe = await _try_port(wanted, Endpoint(address, number), port)
        if not is_understood(probe):
            taken = probe.outcome not in _NOT_TAKEN
            return Answered(succeeded=False, taken=taken, detail=f"port {port.port} at {address}: {_told(probe)}")
        answers.append(f"port {port.port} {_told(probe)}")
    return Answered(succeeded=True, taken=True, detail=", ".join(answers))


async def _try_port(wanted: RelayHandshake, endpoint: Endpoint, port: RelayPort) -> Probe:
    """The first answer that counts, or the first failure."""
    failed: Probe | None = None
    for hostname in (UNSERVED, *wanted.hostnames):
        probe = await dial(DialTarget(endpoint, hostname, port.tls), MANNER)
        if is_understood(probe) or probe.outcome in _NOT_TAKEN:
            return probe
        failed = failed or probe
    assert failed is not None  # noqa: S101  # there is always a name
    return failed


def _told(probe: Probe) -> str:
    return f"{probe.outcome.value}{f' ({probe.detail})' if probe.detail else ''}"

"""One probe of an endpoint: bare first, then with the header, until its header mode is known; or of a load balancer.

The law: as few connections as the answer takes, one after the other. Over TLS the handshake is all, so that no
application notices; a request over HTTP names us. The header declares a connection of the proxy itself. Where an
application behind the first name hangs or answers 400, a name that no application has is tried.
"""

from __future__ import annotations

from typing import Final

from dnsproxy.doctor.collect.dial_targets import DialTarget
from dnsproxy.doctor.collect.dialling import Manner, dial
from dnsproxy.doctor.facts.probes import Header, Outcome, Probe
from dnsproxy.doctor.judge.header_mode import HeaderMode, header_mode_of, is_understood, versions_of
from dnsproxy.operate.decide.facts import Probed
from dnsproxy.operate.decide.probing import UNSERVED, BalancerProbe, EndpointProbe

MANNER: Final = Manner(agent="switchback-operate", requests_over_tls=False)
_UNCLEAR: Final = frozenset([HeaderMode.UNKNOWN, HeaderMode.SILENT])
_NOWHERE: Final = frozenset([Outcome.REFUSED, Outcome.UNREACHABLE, Outcome.NO_ROUTE])


async def probe_endpoint(wanted: EndpointProbe) -> Probed:
    """What an endpoint does with a connection without the header, and with it."""
    found = await _probe(wanted, wanted.hostname)
    if found.mode not in _UNCLEAR or wanted.tls:
        return found
    again = await _probe(wanted, UNSERVED)
    return found if again.mode in _UNCLEAR else again


async def _probe(wanted: EndpointProbe, hostname: str) -> Probed:
    made: list[Probe] = []
    for header in Header:
        made.append(await dial(DialTarget(wanted.place[2], hostname, wanted.tls, header), MANNER))
        if _is_enough(made):
            break
    return Probed(header_mode_of(made), versions_of(made), ", ".join(map(_told, made)))


async def reach_balancer(wanted: BalancerProbe) -> bool:
    """Whether a bare connection to any port of a load balancer is answered."""
    for endpoint, tls in wanted.ports:
        if is_understood(await dial(DialTarget(endpoint, wanted.hostname, tls), MANNER)):
            return True
    return False


def _is_enough(made: list[Probe]) -> bool:
    last = made[-1]
    if last.header is Header.PLAIN:
        return last.outcome in _NOWHERE
    # Version 2 is tried only where neither a bare connection nor version 1 is understood.
    return any(map(is_understood, made))


def _told(probe: Probe) -> str:
    detail = f" ({probe.detail})" if probe.detail else ""
    return f"{probe.header.value} {probe.outcome.value}{detail}"

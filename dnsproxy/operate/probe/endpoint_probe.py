"""One probe of an endpoint or of a load balancer: bare first, then with the header, until its header mode is known.

The law: as few connections as the answer takes, one after the other. The controller is asked before its tenants: no
application has the first name. If that shows nothing, two names of the subjects follow. The first name that shows the
header mode decides, so that no application that is down, hangs or answers 400 hides it. Over TLS there is a handshake
and no request; a request over HTTP names us. The header declares a connection of the proxy itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dnsproxy.doctor.collect.dial_targets import DialTarget
from dnsproxy.doctor.collect.dialling import Manner, dial
from dnsproxy.doctor.facts.probes import Header, Outcome, Probe
from dnsproxy.doctor.judge.header_mode import CLEAR, header_mode_of, is_understood, versions_of
from dnsproxy.operate.decide.facts import Probed
from dnsproxy.operate.decide.probing import UNSERVED, BalancerProbe, EndpointProbe
from sidecar.values.endpoints import Endpoint

MANNER: Final = Manner(agent="switchback-operate", requests_over_tls=False)

_DROPPED: Final = frozenset([Outcome.UNREACHABLE, Outcome.NO_ROUTE])
_NOWHERE: Final = _DROPPED | {Outcome.REFUSED}
_HEADERS: Final = (Header.PLAIN, Header.V1, Header.V2)


async def probe_endpoint(wanted: EndpointProbe) -> Probed:
    """What an endpoint does with a connection without the header, and with it."""
    made: list[Probe] = []
    while (following := next_connection(wanted.hostnames, made)) is not None:
        hostname, header = following
        made.append(await dial(DialTarget(wanted.place[2], hostname, wanted.tls, header), MANNER))
    return shown_by(made)


async def reach_balancer(wanted: BalancerProbe) -> bool:
    """Whether a bare connection to any port of a load balancer is answered."""
    for endpoint, tls, hostname in balancer_connections(wanted):
        if is_understood(await dial(DialTarget(endpoint, hostname, tls), MANNER)):
            return True
    return False


def next_connection(hostnames: Sequence[str], made: Sequence[Probe]) -> tuple[str, Header] | None:
    """The name and the header of the next connection; None once the mode is shown or nothing is left to try.

    `hostnames`: as EndpointProbe has them; `made`: the connections so far.
    """
    if made and made[-1].header is Header.PLAIN and made[-1].outcome in _NOWHERE:
        return None
    for hostname in (UNSERVED, *hostnames):
        of_name = [one for one in made if one.hostname == hostname]
        if header_mode_of(of_name) in CLEAR:
            return None
        # Controllers that close unknown names are many, those that take version 2 alone are few.
        headers = _HEADERS[:2] if hostname == UNSERVED else _HEADERS
        if len(of_name) < len(headers):
            return hostname, headers[len(of_name)]
    return None


def shown_by(made: Sequence[Probe]) -> Probed:
    """What the connections of a probe show: those for the first name that is clear, else those for the last one."""
    shown: list[Probe] = []
    for hostname in dict.fromkeys(one.hostname for one in made):
        shown = [one for one in made if one.hostname == hostname]
        if header_mode_of(shown) in CLEAR:
            break
    reached = any(one.outcome not in _DROPPED for one in shown)
    return Probed(header_mode_of(shown), versions_of(shown), ", ".join(map(_told, shown)), reached)


def balancer_connections(wanted: BalancerProbe) -> Iterator[tuple[Endpoint, bool, str]]:
    """Endpoint, whether it begins with TLS, and name of each bare connection to a load balancer, until one is answered.

    An HTTP port answers for an application that is down, so names of applications are tried at a port with TLS.
    """
    for endpoint, tls in wanted.ports:
        yield endpoint, tls, UNSERVED
    for endpoint, tls in sorted(wanted.ports, key=lambda port: not port[1])[:1]:
        for hostname in wanted.hostnames:
            yield endpoint, tls, hostname


def _told(probe: Probe) -> str:
    detail = f" ({probe.detail})" if probe.detail else ""
    return f"{probe.header.value} {probe.outcome.value}{detail}"

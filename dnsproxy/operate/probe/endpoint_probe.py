"""One probe of an endpoint or of a load balancer: bare first, then with the header, until its header mode is known.

The law: as few connections as the answer takes, one after the other (decide/probe_connections.py). Over TLS there is a
handshake and no request; a request over HTTP names us. The header declares a connection of the proxy itself.
"""

from __future__ import annotations

from typing import Final

from dnsproxy.doctor.collect.dial_targets import DialTarget
from dnsproxy.doctor.collect.dialling import Manner, dial
from dnsproxy.doctor.facts.probes import Probe
from dnsproxy.doctor.judge.header_mode import is_understood
from dnsproxy.operate.decide.facts import Probed
from dnsproxy.operate.decide.probe_connections import balancer_connections, next_connection, shown_by
from dnsproxy.operate.decide.probing import BalancerProbe, EndpointProbe

MANNER: Final = Manner(agent="switchback-operate", requests_over_tls=False)


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

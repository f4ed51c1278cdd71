"""Whom and how to ask, as a resolv.conf has it.

The law: a file that names nobody is no settings at all, and nobody is asked who would ask us.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dnsproxy.forward.address import DNS_PORT
from dnsproxy.forward.resolv_conf import parse_nameservers, parse_options
from dnsproxy.forward.settings import ForwardSettings
from sidecar.endpoints import Endpoint

_MOST_ATTEMPTS = 2  # more would be a storm where every upstream is ill


def parse_forwarding(content: str, *, plain: ForwardSettings) -> ForwardSettings:
    """`plain` with the nameservers and options of a resolv.conf. Raises ValueError where it names no nameserver.

    All nameservers count, where the C library stops after three. `attempts` above 2 are 2; `timeout` has no effect
    (see ResolverOptions).
    """
    addresses = parse_nameservers(content)
    if not addresses:
        raise ValueError("names no nameserver")
    options = parse_options(content)
    return replace(
        plain,
        upstreams=tuple(Endpoint(address, DNS_PORT) for address in addresses),
        rotate=options.rotate,
        attempts=min(options.attempts, _MOST_ATTEMPTS),
        use_tcp=options.use_vc,
    )


def refuse_loop(upstreams: Iterable[Endpoint], *, listening: Iterable[Endpoint]) -> None:
    """Raises ValueError for an upstream that is where we listen ourselves.

    It sees the plain case at once; a loop by way of another address is found when a query of ours comes back.
    """
    ours = {(endpoint.host, endpoint.port) for endpoint in listening}
    for upstream in upstreams:
        if (upstream.host, upstream.port) in ours:
            raise ValueError(f"{upstream} is where we listen ourselves; queries would go round for ever")

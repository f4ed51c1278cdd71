"""The forwarding settings of a worker as a message, and back.

The law: what a worker forwards with is what the parent has, but for the limit of waiting queries: that of --outstanding
is divided among the workers, so that it bounds the whole server. Pure.
"""

from __future__ import annotations

from dnsproxy.forward.settings import ForwardSettings, ZoneUpstreams, parse_upstream
from dnsproxy.workers.messages import Forwarding, Zone


def pack_forwarding(settings: ForwardSettings, *, forwards: str, workers: int) -> Forwarding:
    """The message for one of `workers` workers; `forwards` is the text that answers probes."""
    return Forwarding(
        upstreams=tuple(map(str, settings.upstreams)),
        outstanding=-(-settings.outstanding // workers),
        per_client=settings.per_client,
        rotate=settings.rotate,
        attempts=settings.attempts,
        use_tcp=settings.use_tcp,
        source_ports=settings.source_ports,
        detect_loops=settings.detect_loops,
        zones=tuple(Zone(one.zone, tuple(map(str, one.upstreams)), one.excepted, one.rotate) for one in settings.zones),
        forwards=forwards,
    )


def unpack_forwarding(message: Forwarding) -> ForwardSettings:
    """The settings of the message."""
    return ForwardSettings(
        upstreams=tuple(map(parse_upstream, message.upstreams)),
        outstanding=message.outstanding,
        per_client=message.per_client,
        rotate=message.rotate,
        attempts=message.attempts,
        use_tcp=message.use_tcp,
        source_ports=message.source_ports,
        detect_loops=message.detect_loops,
        zones=tuple(
            ZoneUpstreams(one.zone, tuple(map(parse_upstream, one.upstreams)), one.excepted, one.rotate)
            for one in message.zones
        ),
    )

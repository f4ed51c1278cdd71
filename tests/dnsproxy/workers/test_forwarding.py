"""Forwarding settings survive the way to a worker, but for the divided limit."""

from __future__ import annotations

import msgspec
import pytest

from dnsproxy.forward.settings import ForwardSettings, TcpEndpoint, TlsEndpoint, ZoneUpstreams
from dnsproxy.workers.forwarding import pack_forwarding, unpack_forwarding
from dnsproxy.workers.messages import FOR_WORKER, Forwarding
from sidecar.values.endpoints import Endpoint

ENDPOINTS = (
    Endpoint("192.0.2.53", 53),
    Endpoint("2001:db8::53", 5353),
    Endpoint("fe80::1%eth0", 53),
    TcpEndpoint("192.0.2.53", 53),
    TcpEndpoint("2001:db8::53", 53),
    TlsEndpoint("192.0.2.53", 853, "dns.example.org"),
    TlsEndpoint("2001:db8::53", 8853, "2001:db8::53"),
)
ZONE = ZoneUpstreams(b"\7example\3org\0", ENDPOINTS[:2], (b"\1a\7example\3org\0",), rotate=True)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(ForwardSettings(ENDPOINTS), id="every kind of upstream"),
        pytest.param(ForwardSettings(()), id="no upstream"),
        pytest.param(ForwardSettings(ENDPOINTS[:1], zones=(ZONE,)), id="zones"),
        pytest.param(
            ForwardSettings(
                (), 7, 3, rotate=True, attempts=1, use_tcp=True, source_ports=9, detect_loops=False, zones=()
            ),
            id="no default",
        ),
    ],
)
def test_settings_arrive_as_they_were(settings: ForwardSettings) -> None:
    message = pack_forwarding(settings, forwards="text", workers=1)
    arrived = FOR_WORKER.decode(msgspec.msgpack.encode(message))
    assert arrived == message
    assert isinstance(arrived, Forwarding)
    assert unpack_forwarding(arrived) == settings
    assert arrived.forwards == "text"


@pytest.mark.parametrize(("outstanding", "workers", "each"), [(10_000, 4, 2_500), (10, 3, 4), (1, 8, 1)])
def test_the_waiting_queries_are_divided_and_each_worker_may_have_some(
    outstanding: int, workers: int, each: int
) -> None:
    message = pack_forwarding(ForwardSettings((), outstanding, 5), forwards="", workers=workers)
    assert (message.outstanding, message.per_client) == (each, 5)

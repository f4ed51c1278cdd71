"""The admin port of a program; each program's tests use its own port, and test_server.py has the server."""

from __future__ import annotations

import functools
import socket

import pytest
import trio
from prometheus_client import CollectorRegistry

from sidecar.admin.asking import ask
from sidecar.admin.page.history import History
from sidecar.admin.port import make_registry, open_admin_port
from sidecar.admin.server import Readiness
from sidecar.values.build import own_build
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError

LOCAL = Endpoint("127.0.0.1", 0)


def ready() -> Readiness:
    return Readiness(True, "ready, all of it")


async def test_a_port_answers_while_it_is_served_and_is_closed_after() -> None:
    with open_admin_port(LOCAL) as port:
        endpoint = port.endpoint
        assert endpoint is not None
        assert str(port) == str(endpoint)
        async with trio.open_nursery() as nursery:
            await nursery.start(functools.partial(port.serve, prefix="proxy", readiness=ready, page=str))
            assert await ask(endpoint, "/readyz", program="a test") == b"ready, all of it\n"
            metrics = (await ask(endpoint, "/metrics", program="a test")).decode()
            assert "python_info" in metrics
            labels = own_build().labels()
            (sample,) = [line for line in metrics.splitlines() if line.startswith("proxy_build_info{")]
            assert all(f'{name}="{value}"' in sample for name, value in labels.items())
            assert sample.endswith("} 1.0")
            nursery.cancel_scope.cancel()
    with pytest.raises(StartError, match="no server answers there"):
        await ask(endpoint, "/readyz", program="a test")


async def test_it_is_asked_by_the_hostname_and_the_names_of_the_flag() -> None:
    with open_admin_port(LOCAL, hosts=("admin.example.org",)) as port:
        endpoint = port.endpoint
        assert endpoint is not None
        async with trio.open_nursery() as nursery:
            await nursery.start(functools.partial(port.serve, prefix="proxy", readiness=ready, page=str))
            for name, status in ((socket.gethostname(), 200), ("admin.example.org", 200), ("other.example.org", 421)):
                async with await trio.open_tcp_stream(endpoint.host, endpoint.port) as stream:
                    await stream.send_all(f"GET / HTTP/1.1\r\nHost: {name}:{endpoint.port}\r\n\r\n".encode())
                    assert (await stream.receive_some(4096)).startswith(f"HTTP/1.1 {status} ".encode()), name
            nursery.cancel_scope.cancel()


async def test_without_an_endpoint_nothing_is_served() -> None:
    with open_admin_port(None) as port:
        assert (port.endpoint, str(port)) == (None, "off")
        async with trio.open_nursery() as nursery:
            await nursery.start(functools.partial(port.serve, prefix="proxy", readiness=ready, page=str))
        assert not nursery.child_tasks


async def test_counters_are_read_from_the_start() -> None:
    history, read = History(()), trio.Event()

    def read_counters() -> dict[str, float]:
        read.set()
        return {}

    with open_admin_port(LOCAL) as port:
        async with trio.open_nursery() as nursery:
            serve = functools.partial(
                port.serve, prefix="proxy", readiness=ready, page=str, samples=(history, read_counters)
            )
            await nursery.start(serve)
            await read.wait()
            nursery.cancel_scope.cancel()
    assert history.since(0) == []


def test_each_registry_is_one_of_its_own() -> None:
    first, second = make_registry(), make_registry()
    assert first is not second
    assert isinstance(first, CollectorRegistry)

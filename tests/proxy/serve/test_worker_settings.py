"""Settings of a worker over a socket: whole, in pieces and truncated."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.header.protocol import ProxyProtocol
from proxy.routes import Route, ServicePort
from proxy.serve.worker_settings import WorkerSettings, format_worker_settings, receive_worker_settings
from proxy.settings import Settings
from sidecar.values.endpoints import Endpoint
from sidecar.values.host_port import HostPort

SETTINGS = Settings(
    routes=(
        Route(Endpoint("::", 8080), HostPort("ingress.example.org", 80)),
        Route(Endpoint("127.0.0.1", 2222), ServicePort("apps", "git", "ssh"), ProxyProtocol.NONE),
    ),
    advertise={8080: 80},
    max_connections=7,
    resolv_conf=Path("/etc/other"),
)
WORKER = WorkerSettings(2, SETTINGS, 30.0, "json", "debug")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_settings_arrive_unchanged(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].sendall(format_worker_settings(WORKER))
    assert receive_worker_settings(pair[1]) == WORKER


def test_octets_after_the_settings_stay_unread(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].sendall(format_worker_settings(WORKER) + b"x")
    assert receive_worker_settings(pair[1]) == WORKER
    assert pair[1].recv(10) == b"x"


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 100, -1])
def test_an_incomplete_message_raises_eof_error(pair: tuple[socket.socket, socket.socket], size: int) -> None:
    pair[0].sendall(format_worker_settings(WORKER)[:size])
    pair[0].close()
    with pytest.raises(EOFError):
        receive_worker_settings(pair[1])

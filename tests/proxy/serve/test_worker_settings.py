"""Orders over a socket, whole, in pieces and cut."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.header.protocol import ProxyProtocol
from proxy.routes import Route, ServicePort
from proxy.serve.worker_settings import Orders, format_orders, receive_orders
from proxy.settings import Settings
from sidecar.endpoints import Endpoint
from sidecar.host_port import HostPort

SETTINGS = Settings(
    routes=(
        Route(Endpoint("::", 8080), HostPort("ingress.example.org", 80)),
        Route(Endpoint("127.0.0.1", 2222), ServicePort("apps", "git", "ssh"), ProxyProtocol.NONE),
    ),
    advertise={8080: 80},
    max_connections=7,
    resolv_conf=Path("/etc/other"),
)
ORDERS = Orders(2, SETTINGS, 30.0, "json", "debug")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_orders_arrive_as_they_were(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].sendall(format_orders(ORDERS))
    assert receive_orders(pair[1]) == ORDERS


def test_what_comes_after_the_orders_is_left_alone(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].sendall(format_orders(ORDERS) + b"x")
    assert receive_orders(pair[1]) == ORDERS
    assert pair[1].recv(10) == b"x"


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 100, -1])
def test_a_supervisor_that_goes_in_the_middle_is_told(pair: tuple[socket.socket, socket.socket], size: int) -> None:
    pair[0].sendall(format_orders(ORDERS)[:size])
    pair[0].close()
    with pytest.raises(EOFError):
        receive_orders(pair[1])

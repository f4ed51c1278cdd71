"""Endpoints as socket addresses: the scope of a link-local address is kept."""

from __future__ import annotations

import errno
import ipaddress
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.sockets.listeners import bound_endpoint, listen_tcp, listen_udp
from sidecar.sockets.socket_address import endpoint_of, socket_address
from sidecar.values.endpoints import Endpoint

_, LOOPBACK = socket.if_nameindex()[0]


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        pytest.param(Endpoint("192.0.2.1", 53), ("192.0.2.1", 53), id="IPv4"),
        pytest.param(Endpoint("2001:db8::1", 53), ("2001:db8::1", 53), id="IPv6"),
        pytest.param(Endpoint("fe80::1", 53), ("fe80::1", 53), id="link-local without scope"),
        pytest.param(Endpoint("fe80::1%7", 53), ("fe80::1", 53, 0, 7), id="scope by number"),
        pytest.param(
            Endpoint(f"fe80::1%{LOOPBACK}", 53), ("fe80::1", 53, 0, socket.if_nametoindex(LOOPBACK)), id="by name"
        ),
    ],
)
def test_an_endpoint_becomes_what_sockets_take(endpoint: Endpoint, address: tuple[object, ...]) -> None:
    assert socket_address(endpoint) == address


@pytest.mark.parametrize(
    "scope", ["no-such-device", "", "-1", "\u0667", "\u00b2", "x" * 300, "9" * 99, "a\0", "\ud800"], ids=ascii
)
def test_a_scope_that_is_no_interface_is_an_os_error(scope: str) -> None:
    with pytest.raises(OSError, match="No such device") as caught:
        socket_address(Endpoint(f"fe80::1%{scope}", 53))
    assert caught.value.errno == errno.ENODEV


@given(st.ip_addresses(), st.integers(0, 65535))
def test_an_address_without_scope_comes_back_as_it_was(host: object, port: int) -> None:
    endpoint = Endpoint(str(host), port)
    assert endpoint_of(socket_address(endpoint)) == endpoint
    if ":" in endpoint.host:
        assert endpoint_of((endpoint.host, port, 0, 0)) == endpoint


def test_a_scope_comes_back_by_name() -> None:
    endpoint = Endpoint(f"fe80::1%{LOOPBACK}", 53)
    assert endpoint_of(socket_address(endpoint)) == endpoint


@pytest.fixture
def link_local() -> str:
    """A link-local address of this computer, with its scope."""
    try:
        rows = [line.split() for line in Path("/proc/net/if_inet6").read_text().splitlines()]
    except FileNotFoundError:
        rows = []
    for digits, *_, flags, device in rows:
        address = ipaddress.IPv6Address(int(digits, 16))
        # An address that is tentative or a duplicate (linux/if_addr.h) can not be bound.
        if address.is_link_local and not int(flags, 16) & 0x48:
            return f"{address}%{device}"
    pytest.skip("no interface here has a link-local address")


def test_tcp_and_udp_listen_at_a_link_local_address(link_local: str) -> None:
    with listen_tcp(Endpoint(link_local, 0), flag="--listen") as stream:
        endpoint = bound_endpoint(stream)
        assert endpoint.host == link_local
        with listen_udp(endpoint, flag="--listen") as datagrams, socket.socket(socket.AF_INET6) as client:
            assert bound_endpoint(datagrams) == endpoint
            client.connect(socket_address(endpoint))

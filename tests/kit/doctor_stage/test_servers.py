"""Each server of the stage behaves as its row says, met at an address that only the rules lead to it."""

from __future__ import annotations

import socket
import ssl
from typing import Final

import pytest

from tests.kit.doctor_stage.network import apply, set_ipv6
from tests.kit.doctor_stage.servers import Fate, Server
from tests.kit.doctor_stage.stage import PEERS, Stage, stage
from tests.kit.doctor_stage.states import HOST
from tests.kit.networks import root

pytestmark = pytest.mark.peer(*PEERS)

__all__ = ["root", "stage"]

ADDRESS: Final = "203.0.113.77"
HEADERS: Final = {"plain": b"", "v1": b"PROXY UNKNOWN\r\n", "v2": b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"}
REQUEST: Final = f"GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode()
ADDRESS_6: Final = "2001:db8:203::77"
SECONDS: Final = 10.0
SOON: Final = 0.5
"""Seconds after which a server counts as silent: one that answers does so in milliseconds."""
NO_ANSWER: Final = "no answer"

CLOSED, SERVED, BAD = NO_ANSWER, "308", "400"


def ask(server_port: int, header: bytes, *, timeout: float = SECONDS, address: str = ADDRESS) -> str:
    """The HTTP status; the common name of a handshake's outcome on port 443."""
    try:
        with socket.create_connection((address, server_port), timeout=timeout) as one:
            one.sendall(header)
            if server_port == 443:
                return _names(one)
            one.sendall(REQUEST)
            return one.recv(100).decode().partition(" ")[2][:3] or NO_ANSWER
    except (TimeoutError, ConnectionResetError, BrokenPipeError, ssl.SSLError):
        return NO_ANSWER


def _names(one: socket.socket) -> str:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(one, server_hostname=HOST) as tls:
        shown = tls.getpeercert(binary_form=True) or b""
        return "ingress.local" if b"ingress.local" in shown else "example.org" if b"example.org" in shown else "?"


ROWS: Final = {
    Server.REQUIRES: (CLOSED, SERVED, SERVED),
    Server.REJECTS: (SERVED, BAD, BAD),
    Server.OTHER: ("404", BAD, BAD),
    Server.UNAVAILABLE: ("503", BAD, BAD),
    Server.HAPROXY: (CLOSED, SERVED, SERVED),
    Server.HAPROXY_FOR_PODS: (CLOSED, SERVED, SERVED),
    Server.HAPROXY_FOR_OTHERS: (SERVED, BAD, BAD),
    Server.BAD_REQUEST: (BAD, BAD, BAD),
    Server.EXPIRED: (SERVED, BAD, BAD),
    Server.MISNAMED: (SERVED, BAD, BAD),
    Server.ACCEPTS: (SERVED, SERVED, SERVED),
    Server.SILENT: (NO_ANSWER, NO_ANSWER, NO_ANSWER),
    Server.RESETS: (NO_ANSWER, NO_ANSWER, NO_ANSWER),
    # Behind a load balancer, a header of the client's own comes after that of the load balancer.
    Server.BALANCER: (SERVED, BAD, BAD),
    Server.BALANCER_V2: (SERVED, BAD, BAD),
    Server.BALANCER_OF_REJECTS: (BAD, BAD, BAD),
    Server.BALANCER_WITHOUT_HEADER: (CLOSED, SERVED, SERVED),
    Server.CDN: (SERVED, BAD, BAD),
}
NAMES: Final = {
    Server.REQUIRES: NO_ANSWER,
    Server.REJECTS: "example.org",
    Server.OTHER: "ingress.local",
    Server.UNAVAILABLE: "example.org",
    Server.HAPROXY: NO_ANSWER,
    Server.HAPROXY_FOR_PODS: NO_ANSWER,
    Server.HAPROXY_FOR_OTHERS: "example.org",
    Server.BAD_REQUEST: NO_ANSWER,
    Server.EXPIRED: "example.org",
    Server.MISNAMED: "ingress.local",
    Server.ACCEPTS: "example.org",
    Server.SILENT: NO_ANSWER,
    Server.RESETS: NO_ANSWER,
    Server.BALANCER: "example.org",
    Server.BALANCER_V2: "example.org",
    Server.BALANCER_OF_REJECTS: NO_ANSWER,
    Server.BALANCER_WITHOUT_HEADER: NO_ANSWER,
    Server.CDN: "example.org",
}
"""The certificate that a client without a header gets on port 443."""


@pytest.mark.parametrize("server", Server, ids=lambda server: server.name)
def test_a_server_behaves_as_its_row_says(stage: Stage, server: Server) -> None:
    timeout = SOON if server is Server.SILENT else SECONDS
    with stage.network.entered():
        apply({ADDRESS: server})
        assert tuple(ask(80, header, timeout=timeout) for header in HEADERS.values()) == ROWS[server]
        assert ask(443, b"", timeout=timeout) == NAMES[server]


def test_other_ports_of_an_address_with_a_server_refuse(stage: Stage) -> None:
    with stage.network.entered():
        apply({ADDRESS: Server.REJECTS})
        with pytest.raises(ConnectionRefusedError):
            ask(5000, b"")


def test_one_port_of_an_address_has_a_server_of_its_own(stage: Stage) -> None:
    with stage.network.entered():
        apply({f"{ADDRESS}:5000": Server.UNAVAILABLE, f"{ADDRESS}:80": Server.REJECTS})
        assert (ask(5000, b""), ask(80, b"")) == ("503", SERVED)
        with pytest.raises(ConnectionRefusedError):
            ask(443, b"")


def test_another_port_of_tls_leads_to_the_port_of_tls(stage: Stage) -> None:
    with stage.network.entered():
        apply({f"{ADDRESS}:8443": Server.REJECTS})
        with socket.create_connection((ADDRESS, 8443), timeout=SECONDS) as one:
            assert _names(one) == "example.org"


@pytest.mark.parametrize(
    ("fate", "error"), [(Fate.REFUSED, ConnectionRefusedError), (Fate.UNREACHABLE, OSError), (Fate.DROPPED, None)]
)
def test_an_address_without_a_server(stage: Stage, fate: Fate, error: type[OSError] | None) -> None:
    with stage.network.entered():
        apply({ADDRESS: fate})
        if error is None:
            assert ask(80, b"", timeout=SOON) == NO_ANSWER
            return
        with pytest.raises(error):
            ask(80, b"")


def test_a_pod_reaches_ipv6_only_if_it_has_a_route(stage: Stage) -> None:
    with stage.network.entered():
        apply({ADDRESS_6: Server.REJECTS})
        with pytest.raises(OSError, match="unreachable"):
            ask(80, b"", address=ADDRESS_6)
        set_ipv6(stage.network, on=True)
        try:
            assert ask(80, b"", address=ADDRESS_6) == SERVED
        finally:
            set_ipv6(stage.network, on=False)

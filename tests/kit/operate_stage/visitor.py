"""A visitor: a pod that requests one host over TLS again and again, and notes what it got.

The law: each request is a new connection to what the pods' DNS says, which is kept for the second of its TTL. Nothing
is tried twice, so that every loss shows, except a connection that the node did not translate. The kernel causes that
loss: it can miss a packet while kube-proxy replaces a rule with a map, after a change of endpoints.
`python -m tests.kit.operate_stage.visitor DNS HOST` prints a line for each request until SIGTERM: the seconds since the
epoch, the address, and the status or the error.
"""

from __future__ import annotations

import errno
import signal
import socket
import ssl
import sys
import time
from contextlib import closing
from typing import Final

import dns.exception
import dns.message
import dns.query
import dns.rdatatype

KEPT: Final = 1.0
PAUSE: Final = 0.02
CONNECTS: Final = 4.0
"""Seconds for a connection, which the kernel makes: a way that was closed for longer shows."""
ANSWERS: Final = 15.0
"""Seconds for an answer, which is asked for once; a busy machine may not run a program for some of them."""


def main() -> None:
    server, host = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    known, until = "", 0.0
    while True:
        at = time.time()
        try:
            if at >= until:
                known, until = _resolve(server, host), at + KEPT
            said = _request_translated(known, host, context)
        except (OSError, dns.exception.DNSException) as error:
            said = f"{type(error).__name__}: {error}"
        sys.stdout.write(f"{at:.3f} {known} {said}\n")
        sys.stdout.flush()
        time.sleep(PAUSE)


def _resolve(server: str, host: str) -> str:
    answer = dns.query.udp(dns.message.make_query(host, "A"), server, timeout=ANSWERS)
    found = [one.address for part in answer.answer if part.rdtype == dns.rdatatype.A for one in part]
    if not found:
        raise OSError("no address")
    return str(found[0])


def _request_translated(address: str, host: str, context: ssl.SSLContext) -> str:
    """The status. A connection that the node did not translate is repeated once.

    The gap in the rules lasts milliseconds: an address without a Service, or with rules that come later, fails again.
    """
    try:
        return _request(address, host, context)
    except OSError as error:
        if error.errno != errno.EHOSTUNREACH:
            raise
    return f"{_request(address, host, context)}, after the node had no rule for a moment"


def _secured(raw: socket.socket, host: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    raw.settimeout(ANSWERS)
    return context.wrap_socket(raw, server_hostname=host)


def _request(address: str, host: str, context: ssl.SSLContext) -> str:
    request = f"GET / HTTP/1.1\r\nHost: {host}\r\nUser-Agent: visitor\r\nConnection: close\r\n\r\n"
    with (
        closing(socket.create_connection((address, 443), timeout=CONNECTS)) as raw,
        _secured(raw, host, context) as secured,
    ):
        secured.sendall(request.encode())
        line = secured.recv(4096).partition(b"\r\n")[0]
    return line.decode("ascii", "replace").partition(" ")[2] or "closed"


if __name__ == "__main__":
    main()

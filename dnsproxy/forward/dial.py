"""Dialling an upstream over TCP or TLS (RFC 7858).

The law: TLS means a verified certificate for the expected name; a connection that fails at any point leaves no
descriptor, and its error becomes one sentence. The caller sets the deadline. Tested in test_pipeline.py.
"""

from __future__ import annotations

import ssl

import trio

from dnsproxy.forward.settings import TlsEndpoint
from sidecar.values.endpoints import Endpoint

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


def default_context() -> ssl.SSLContext:
    """TLS 1.2 or newer; certificate and name are verified against the system's authorities (or SSL_CERT_FILE)."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


async def dial(endpoint: Endpoint, context: ssl.SSLContext | None) -> Stream:
    """An open connection. Raises OSError and trio.BrokenResourceError."""
    stream = await trio.open_tcp_stream(endpoint.host, endpoint.port)
    if context is None or not isinstance(endpoint, TlsEndpoint):
        return stream
    # Many servers skip the closing handshake, which DNS over TLS does not need: each message has a length.
    secured = trio.SSLStream(stream, context, server_hostname=endpoint.name, https_compatible=True)
    try:
        await secured.do_handshake()
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return secured


def dial_failure(error: BaseException) -> str:
    """Why dialling failed."""
    cause = error.__cause__ or error
    if isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]  # there is one address, so trio tried once
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {cause.verify_message}"
    return str(cause)

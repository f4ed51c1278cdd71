"""The TLS exchange: a handshake as clients of HTTP/1.1 make it, then one request.

The law: a finished handshake is an answer, whatever follows. Certificates do not decide about it, for an ingress
controller on trial often has none for the host; what is wrong with them is recorded beside.
"""

from __future__ import annotations

import ssl
from typing import Final

import trio

from dnsproxy.doctor.collect.certificate_check import check_certificate
from dnsproxy.doctor.collect.http_exchange import exchange
from dnsproxy.doctor.collect.reaction import Reaction, broken
from dnsproxy.doctor.facts.probes import Outcome, ServiceIdentity

# Errors of OpenSSL for a peer that does not speak TLS, or that did not recognise our handshake.
_NO_TLS: Final = (
    "WRONG_VERSION_NUMBER",
    "UNEXPECTED_MESSAGE",
    "DECODE_ERROR",
    "RECORD",
    "HTTP_REQUEST",
    "PACKET",
    "PROTOCOL_VERSION",
)
# The alert of TLS 1.3, which comes after the handshake (RFC 8446, section 6.2).
_NO_CLIENT_CERTIFICATE: Final = "CERTIFICATE_REQUIRED"


async def exchange_over_tls(
    stream: trio.abc.Stream, hostname: str, *, seconds: float, requests: bool = True
) -> Reaction:
    """The reaction to a handshake for a host, with the status of `GET /` after it; each part has `seconds`.

    Without `requests` the handshake is all, so that no application behind the server notices.
    """
    tls = _wrapped(stream, hostname)
    try:
        with trio.fail_after(seconds):
            await tls.do_handshake()
    except trio.TooSlowError:
        return Reaction(Outcome.SILENT, f"no handshake within {seconds:g} s")
    except trio.BrokenResourceError as error:
        return _judge_alert(broken(error.__cause__ or error))
    # Before the request: OpenSSL forgets them if the connection breaks.
    version, identity = tls.version(), _identity(tls, hostname)
    if not requests:
        return Reaction(Outcome.ANSWERED, version or "", identity=identity)
    said = _judge_alert(await exchange(tls, hostname, seconds=seconds))
    return Reaction(Outcome.ANSWERED, f"{version}, {_after_handshake(said)}", said.status, identity)


def _wrapped(stream: trio.abc.Stream, hostname: str) -> trio.SSLStream[trio.abc.Stream]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    try:
        return trio.SSLStream(stream, context, server_hostname=hostname)
    except (ValueError, TypeError, ssl.SSLError):
        # A name that no SNI can hold; a client could only leave it out too.
        return trio.SSLStream(stream, context)


def _identity(tls: trio.SSLStream[trio.abc.Stream], hostname: str) -> ServiceIdentity | None:
    certificate = tls.getpeercert(binary_form=True)
    return check_certificate(certificate, hostname) if certificate else None


def _after_handshake(said: Reaction) -> str:
    if said.outcome is Outcome.ALERT and _NO_CLIENT_CERTIFICATE in said.detail:
        return "then demands a client certificate"
    if said.outcome in (Outcome.ANSWERED, Outcome.BAD_REQUEST):
        return said.detail
    return f"then {said.outcome.value}{f': {said.detail}' if said.detail else ''}"


def _judge_alert(reaction: Reaction) -> Reaction:
    """The reaction, told apart by the error of OpenSSL if it is one."""
    if reaction.outcome is not Outcome.ALERT:
        return reaction
    if "EOF" in reaction.detail:
        return Reaction(Outcome.CLOSED)
    if any(part in reaction.detail for part in _NO_TLS):
        return Reaction(Outcome.GARBAGE, reaction.detail)
    return reaction

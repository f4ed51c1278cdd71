"""One fetch of a zone from one primary: IXFR over UDP, then over TCP, or AXFR (RFC 1995, RFC 5936).

The law: every wait has a deadline, and whatever the primary sends, a fetch ends with a whole transfer or with a
FetchFailed that says why. With a key no octet counts whose signature is not good.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import trio

from dnsproxy.dns import stream_frames, wire
from dnsproxy.secondary.progress import Progress
from dnsproxy.secondary.source import RpzSource
from dnsproxy.zone.reading import TABLE_TYPES, Transfer, TransferReader, TransferRefused
from dnsproxy.zone.requests import format_request
from dnsproxy.zone.tsig_keys import TsigKey
from sidecar.loop.slices import in_slices
from sidecar.sockets.socket_address import family_of, socket_address
from sidecar.values.endpoints import Endpoint, is_address

_DATAGRAM_SECONDS: Final = 1.0
_DATAGRAM_TRIES: Final = 2
_RESOLVE_SECONDS: Final = 5.0
_DIAL_SECONDS: Final = 5.0
_QUIET_SECONDS: Final = 20.0
"""For the next octets of a transfer: the primary may be rendering 500,000 names."""
_TOTAL_SECONDS: Final = 300.0
_CHUNK: Final = 256 << 10
_LARGEST_DATAGRAM: Final = 65_535


class FetchFailed(Exception):
    """A primary that gave no usable answer; the message is the reason, as part of a sentence."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to fetch."""

    name: bytes
    """The wire name of the zone."""
    serial: int | None = None
    """What is known already; None: fetch it whole."""
    types: frozenset[int] = TABLE_TYPES
    key: TsigKey | None = None


@dataclass(frozen=True, slots=True)
class Current:
    """The primary has nothing newer."""

    serial: int
    """Of the primary: it may be older than what is known."""


async def fetch(source: RpzSource, wanted: Wanted) -> Transfer | Current:
    """What the primary has beyond what is known.

    Raises FetchFailed, and TransferRefused for a difference: the whole zone may do.
    """
    failures: list[str] = []
    for endpoint in await resolve(source):
        try:
            return await _fetch_from(endpoint, wanted)
        except TransferRefused as error:
            if wanted.serial is not None:
                raise
            failures.append(str(error))
        except FetchFailed as error:
            failures.append(str(error))
        except (OSError, trio.BrokenResourceError) as error:
            failures.append(f"it cannot be reached: {_cause_of(error)}")
        except trio.TooSlowError:
            failures.append("it did not answer in time")
    raise FetchFailed("; ".join(dict.fromkeys(failures)) or "its name has no address")


async def resolve(source: RpzSource) -> list[Endpoint]:
    """The addresses of a primary. Raises FetchFailed."""
    if is_address(source.host):
        return [Endpoint(source.host, source.port)]
    try:
        with trio.fail_after(_RESOLVE_SECONDS):
            found = await trio.socket.getaddrinfo(source.host, source.port, type=socket.SOCK_STREAM)
    except (OSError, trio.TooSlowError, UnicodeError) as error:
        raise FetchFailed(f"its name does not resolve: {_cause_of(error)}") from None
    return list(dict.fromkeys(Endpoint(str(one[4][0]), source.port) for one in found))


async def _fetch_from(endpoint: Endpoint, wanted: Wanted) -> Transfer | Current:
    if wanted.serial is not None:
        found = await _ask_by_datagram(endpoint, wanted)
        if found is not None:
            return found
    with trio.fail_after(_TOTAL_SECONDS):
        return await _transfer(endpoint, wanted)


class _Conversation:
    """One request and the reading of its answer."""

    def __init__(self, wanted: Wanted, *, datagram: bool) -> None:
        ident = int.from_bytes(os.urandom(2), "big")
        self.request = format_request(wanted.name, serial=wanted.serial, ident=ident, datagram=datagram)
        self.reader = TransferReader(wanted.name, known=wanted.serial, types=wanted.types, datagram=datagram)
        self._question = self.request[wire.HEADER : wire.question_end(self.request)]
        self._verifier: Any = None
        if wanted.key is not None:
            # dnspython takes memory, which only signed transfers need.
            from dnsproxy.zone.signing import Signer, Verifier  # noqa: PLC0415

            signer = Signer(wanted.key)
            self.request = signer.sign(self.request, now=int(time.time()))
            self._verifier = Verifier(wanted.key, request_mac=signer.mac)

    def belongs(self, message: bytes) -> bool:
        """Whether a message answers the request."""
        if message[:2] != self.request[:2]:
            return False
        end = wire.question_end(message)
        # The messages after the first may have no question (RFC 5936 section 2.2.1).
        return message[4:6] == b"\0\0" if not end else message[wire.HEADER : end].lower() == self._question

    async def read(self, message: bytes, *, several: bool) -> None:
        """Read one message. Raises TransferRefused and FetchFailed."""
        if self._verifier is not None:
            message = self._verify(message, several=several)
        await in_slices(self.reader.read(message))

    def _verify(self, message: bytes, *, several: bool) -> bytes:
        try:
            verified: bytes = self._verifier.check(message, now=int(time.time()), several=several)
        except ValueError as error:
            rcode = wire.rcode_of(message) if len(message) >= wire.HEADER else 0
            told = f" (it answers rcode {rcode})" if rcode else ""
            raise FetchFailed(f"its answer does not count: {error}{told}") from None
        return verified

    def result(self) -> Transfer | Current:
        """Raises TransferRefused and FetchFailed."""
        if self._verifier is not None:
            try:
                self._verifier.finish()
            except ValueError as error:
                raise FetchFailed(f"its answer does not count: {error}") from None
        if self.reader.is_current and self.reader.serial is not None:
            return Current(self.reader.serial)
        return self.reader.transfer()


async def _ask_by_datagram(endpoint: Endpoint, wanted: Wanted) -> Transfer | Current | None:
    """The answer over UDP; None if there is none, or if it needs TCP. Raises TransferRefused and FetchFailed."""
    for _ in range(_DATAGRAM_TRIES):
        conversation = _Conversation(wanted, datagram=True)
        with trio.socket.socket(family_of(endpoint), socket.SOCK_DGRAM) as opened, suppress(OSError):
            await opened.connect(socket_address(endpoint))
            await opened.send(conversation.request)
            with trio.move_on_after(_DATAGRAM_SECONDS):
                while True:
                    message = await opened.recv(_LARGEST_DATAGRAM)
                    if conversation.belongs(message):
                        await conversation.read(message, several=False)
                        return None if conversation.reader.needs_stream else conversation.result()
    return None


async def _transfer(endpoint: Endpoint, wanted: Wanted) -> Transfer | Current:
    conversation = _Conversation(wanted, datagram=False)
    with trio.fail_after(_DIAL_SECONDS):
        stream = await trio.open_tcp_stream(endpoint.host, endpoint.port)
    async with stream:
        with trio.fail_after(_DIAL_SECONDS):
            await stream.send_all(stream_frames.format_message(conversation.request))
        received, progress = bytearray(), Progress(trio.current_time())
        while not conversation.reader.is_done:
            while not stream_frames.is_whole(received):
                with trio.fail_after(_QUIET_SECONDS):
                    chunk = await stream.receive_some(_CHUNK)
                if not chunk:
                    raise FetchFailed("it closed the connection amid the transfer")
                if not progress.note(len(chunk), trio.current_time()):
                    raise FetchFailed("it sends too slowly")
                received += chunk
            message = stream_frames.take_message(received)
            if not conversation.belongs(message):
                raise FetchFailed("it answers another question")
            await conversation.read(message, several=True)
    return conversation.result()


def _cause_of(error: BaseException) -> str:
    cause = error.__cause__ or error
    if isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause) or type(cause).__name__

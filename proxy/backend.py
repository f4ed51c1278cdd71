"""Backends: where a route's connections can go right now, and whether they get there.

The law: a look-up happens in a task of its own and never in the way of a connection; the byte path only reads the
addresses that were found last. Names go through the resolver of the system (getaddrinfo), never through ourselves.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final, NamedTuple

import structlog
import trio

from proxy.readiness import Cause, Failure, Health, Transition, cause_of_lookup
from proxy.routes import Destination, reaches
from sidecar.endpoints import Endpoint
from sidecar.errors import StartError

LOOKUP_SECONDS: Final = 5.0
FRESH_SECONDS: Final = 5.0
"""How long an answer is used before it is asked for again: getaddrinfo does not tell the TTL."""
RETRY_SECONDS: Final = 1.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Address(NamedTuple):
    """One address of a backend, in the form that connect takes."""

    family: socket.AddressFamily
    target: tuple[str, int] | tuple[str, int, int, int]


class Backend:
    """One destination of one or more routes: its present addresses, and its health as connections find it."""

    def __init__(self, destination: Destination, *, listeners: Sequence[Endpoint]) -> None:
        self.destination = destination
        self.addresses: tuple[Address, ...] = ()
        """Best first; empty while the name is not resolved."""
        self.failure: Failure | None = None
        """Why there are no addresses; None together with no addresses means that the first look-up is under way."""
        self.health = Health()
        self._listeners = tuple(listeners)
        self._waiting: set[Callable[[], None]] = set()
        self._wake = trio.Event()
        self._stale = False
        literal = _literal(destination)
        if literal is not None:
            self.addresses, self.failure = self._without_ourselves([literal])

    def when_resolved(self, callback: Callable[[], None]) -> None:
        """Have the callback called once when the look-up that is under way has ended, well or not."""
        self._waiting.add(callback)

    def forget(self, callback: Callable[[], None]) -> None:
        """Take a callback back."""
        self._waiting.discard(callback)

    def demote(self, address: Address) -> None:
        """Put an address that did not answer behind the others, and ask for fresh ones."""
        if address in self.addresses and len(self.addresses) > 1:
            self.addresses = (*(other for other in self.addresses if other != address), address)
        self._wake.set()

    def observe(self, failure: Failure | None) -> None:
        """Take in how an attempt to reach the backend ended; says so in the log where it changes something."""
        transition = self.health.observe(failure, now=monotonic())
        if transition is Transition.FAILED and failure is not None:
            log.warning(
                "backend unreachable", backend=str(self.destination), cause=str(failure.cause), error=failure.detail
            )
        elif transition is Transition.RECOVERED:
            log.info("backend reachable again", backend=str(self.destination))

    async def keep_resolved(self) -> None:
        """Look the name up again and again until cancelled; returns at once for an address."""
        if _literal(self.destination) is not None:
            return
        while True:
            self._take(await self._look_up())
            self._wake = trio.Event()
            await trio.sleep(RETRY_SECONDS)
            with trio.move_on_after(FRESH_SECONDS - RETRY_SECONDS if self.addresses else 0):
                await self._wake.wait()

    async def _look_up(self) -> list[Address] | Failure:
        with trio.move_on_after(LOOKUP_SECONDS):
            try:
                found = await trio.socket.getaddrinfo(
                    self.destination.host, self.destination.port, type=socket.SOCK_STREAM
                )
            except socket.gaierror as error:
                return Failure(cause_of_lookup(error.errno), error.strerror or str(error))
            except UnicodeError as error:
                # A name that the resolver's own encoding refuses, a label that is too long among others.
                return Failure(Cause.DNS_ERROR, str(error))
            return [_address(family, target) for family, _, _, _, target in found]
        return Failure(cause_of_lookup(None), f"no answer within {LOOKUP_SECONDS:g} s")

    def _take(self, found: list[Address] | Failure) -> None:
        if isinstance(found, Failure) and self.addresses and found.cause is not Cause.DNS_NXDOMAIN:
            # A resolver that is away says nothing about the backend; its last addresses may well still work.
            self._say_stale(found)
        elif isinstance(found, Failure):
            self.addresses, self.failure = (), found
        else:
            self._stale = False
            self.addresses, self.failure = self._without_ourselves(found)
        if not self.addresses:
            self.observe(self.failure)
        waiting, self._waiting = self._waiting, set()
        for callback in waiting:
            callback()

    def _say_stale(self, failure: Failure) -> None:
        if not self._stale:
            log.warning(
                "backend not resolved, its last addresses stay",
                backend=str(self.destination),
                cause=str(failure.cause),
                error=failure.detail,
            )
        self._stale = True

    def _without_ourselves(self, found: Sequence[Address]) -> tuple[tuple[Address, ...], Failure | None]:
        others = tuple(dict.fromkeys(address for address in found if not self._is_ours(address)))
        if others:
            return others, None
        return (), Failure(Cause.OWN_LISTENER, "the backend is a listener of this relay")

    def _is_ours(self, address: Address) -> bool:
        target = Endpoint(address.target[0], address.target[1])
        return any(
            reaches(listener, target) or (_covers(listener, target) and _is_local(address))
            for listener in self._listeners
        )


def _literal(destination: Destination) -> Address | None:
    try:
        address = ipaddress.ip_address(destination.host)
    except ValueError:
        return None
    if address.version == 4:  # noqa: PLR2004  # as in IPv4
        return Address(socket.AF_INET, (destination.host, destination.port))
    # A scope (fe80::1%eth0) has to become the number of an interface; with an address this asks no server.
    try:
        found = socket.getaddrinfo(destination.host, destination.port, flags=socket.AI_NUMERICHOST)
    except socket.gaierror as error:
        raise StartError(f"{destination}: {error.strerror}") from error
    return _address(socket.AF_INET6, found[0][4])


def _address(family: socket.AddressFamily, target: tuple[Any, ...]) -> Address:
    return Address(family, target)


def _covers(listener: Endpoint, target: Endpoint) -> bool:
    return listener.port == target.port and listener.host in {"::", "0.0.0.0"}


def _is_local(address: Address) -> bool:
    """Whether an address is one of this computer's: only such an address can be bound."""
    with socket.socket(address.family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address.target[0], 0, *address.target[2:]))
        except OSError:
            return False
    return True

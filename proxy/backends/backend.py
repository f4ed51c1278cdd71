"""Backends: where a route's connections can go right now, and whether they get there.

The law: nothing here waits or asks. Tasks of their own (discovery.py) put in what a name or a Service stands for,
and the byte path only reads what was put in last. An address that is a listener of ours never gets out.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Final, NamedTuple

import structlog
import trio

from proxy.backends.balancing import Pool
from proxy.backends.health import Cause, Failure, Health, Transition
from proxy.routes import ServicePort, reaches
from sidecar.endpoints import Endpoint
from sidecar.errors import StartError
from sidecar.host_port import HostPort
from sidecar.socket_address import SocketAddress, socket_address

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_SAYS_NOTHING: Final = frozenset({Cause.DNS_TIMEOUT, Cause.DNS_ERROR})
"""What a resolver that is away says nothing about: the backend, whose last addresses may well still work."""

UNRESOLVED: Final = Failure(Cause.DNS_TIMEOUT, "the name is not resolved yet")
OWN_LISTENER: Final = Failure(Cause.OWN_LISTENER, "the backend is a listener of this relay")


class Address(NamedTuple):
    """One address of a backend, in the form that connect takes."""

    family: socket.AddressFamily
    sockaddr: SocketAddress

    @property
    def host(self) -> str:
        """The IP literal, without a scope."""
        return self.sockaddr[0]


class Backend:
    """One destination of one or more routes: its present addresses, and its health as connections find it."""

    def __init__(self, destination: HostPort | ServicePort, *, listeners: Sequence[Endpoint]) -> None:
        self.destination = destination
        self.failure: Failure | None = None
        """Why there are no addresses; None together with no addresses means that the first answer is awaited."""
        self.pending: Callable[[], Failure] = lambda: UNRESOLVED
        """What to say of that time."""
        self.health = Health()
        self.outdated = trio.Event()
        """Set when an address did not answer, and a fresh look-up is worth its while; set anew by who does it."""
        self._pool: Pool[Address] = Pool()
        self._listeners = tuple(listeners)
        self._waiting: set[Callable[[], None]] = set()
        self._stale = False
        self._ours: frozenset[Address] = frozenset()
        if is_literal(destination):
            self._replace([_literal(destination)])

    @property
    def addresses(self) -> tuple[Address, ...]:
        """All that are known; empty while the name is not resolved."""
        return self._pool.addresses

    def order(self) -> tuple[Address, ...]:
        """What the next connection should try, best first."""
        return self._pool.order(now=monotonic())

    def when_known(self, callback: Callable[[], None]) -> None:
        """Have the callback called once when the next answer is in, good or bad."""
        self._waiting.add(callback)

    def forget(self, callback: Callable[[], None]) -> None:
        """Take a callback back."""
        self._waiting.discard(callback)

    def demote(self, address: Address) -> None:
        """Have an address that did not answer tried last, and ask for fresh ones."""
        self._pool.note_failure(address, now=monotonic())
        self.outdated.set()

    def note_connected(self, address: Address) -> None:
        """A connection got there."""
        self._pool.note_success(address)
        self.observe(None)

    def observe(self, failure: Failure | None) -> None:
        """Take in how an attempt to reach the backend ended; says so in the log where it changes something."""
        transition = self.health.observe(failure, now=monotonic())
        if transition is None:
            return
        if transition is Transition.FAILED and failure is not None:
            self._say("backend unreachable", failure)
        else:
            log.info("backend reachable again", backend=str(self.destination))

    def take(self, found: Iterable[Address] | Failure) -> None:
        """Put in what the backend stands for now, or why nobody knows."""
        if isinstance(found, Failure) and self.addresses and found.cause in _SAYS_NOTHING:
            if not self._stale:
                self._say("backend not resolved, its last addresses stay", found)
            self._stale = True
        elif isinstance(found, Failure):
            self._pool.replace(())
            self.failure = found
        else:
            self._stale = False
            self._replace(found)
        if not self.addresses:
            self.observe(self.failure)
        waiting, self._waiting = self._waiting, set()
        for callback in waiting:
            callback()

    def _say(self, event: str, failure: Failure) -> None:
        log.warning(event, backend=str(self.destination), cause=str(failure.cause), error=failure.detail)

    def _replace(self, found: Iterable[Address]) -> None:
        found = tuple(found)
        ours = frozenset(filter(self._is_ours, found))
        self._pool.replace(address for address in found if address not in ours)
        self.failure = None if self.addresses else OWN_LISTENER
        if ours - self._ours and self.addresses:
            log.warning("an address of the backend is ours and left out", backend=str(self.destination))
        self._ours = ours

    def _is_ours(self, address: Address) -> bool:
        target = Endpoint(address.sockaddr[0], address.sockaddr[1])
        return any(
            reaches(listener, target) or (_covers(listener, target) and _is_local(address))
            for listener in self._listeners
        )


def address_of(host: str, port: int) -> Address:
    """An IP literal as an address. Raises OSError for a scope that is no interface here."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    target = socket_address(Endpoint(host, port))
    # getaddrinfo's form, so that equal addresses compare equal whoever found them.
    return Address(family, target if family == socket.AF_INET or len(target) > 2 else (*target, 0, 0))  # noqa: PLR2004


def is_literal(destination: HostPort | ServicePort) -> bool:
    """Whether a backend is an address already, so that nobody has to be asked."""
    if isinstance(destination, ServicePort):
        return False
    try:
        ipaddress.ip_address(destination.host)
    except ValueError:
        return False
    return True


def _literal(destination: HostPort | ServicePort) -> Address:
    assert isinstance(destination, HostPort)  # noqa: S101  # is_literal says so
    try:
        return address_of(destination.host, destination.port)
    except OSError as error:
        raise StartError(f"{destination}: {error.strerror}") from error


def _covers(listener: Endpoint, target: Endpoint) -> bool:
    return listener.port == target.port and listener.host in {"::", "0.0.0.0"}


def _is_local(address: Address) -> bool:
    """Whether an address is one of this computer's: only such an address can be bound."""
    with socket.socket(address.family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address.sockaddr[0], 0, *address.sockaddr[2:]))
        except OSError:
            return False
    return True

"""A backend: its current addresses, and its health.

The law: nothing here waits. Tasks (discovery.py) set the addresses of a name or a Service, and the byte path reads the
last ones. Addresses that are listeners of this relay are excluded.
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
from proxy.backends.last_addresses import Decision, LastAddresses
from proxy.backends.own_listeners import OwnListeners
from proxy.routes import ServicePort, reaches
from sidecar.sockets.socket_address import SocketAddress, socket_address
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.host_port import HostPort

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_KEPT: Final = {
    Decision.KEEP_UNRESOLVED: "backend not resolved, still using its last addresses",
    Decision.KEEP_UNCONFIRMED: "the backend's name has vanished, using its last addresses until that is confirmed",
}

UNRESOLVED: Final = Failure(Cause.DNS_TIMEOUT, "the name is not resolved yet")
OWN_LISTENER: Final = Failure(Cause.OWN_LISTENER, "the backend is a listener of this relay")


class Address(NamedTuple):
    """One address of a backend, in the form for connect."""

    family: socket.AddressFamily
    sockaddr: SocketAddress

    @property
    def host(self) -> str:
        """The IP literal, without a scope."""
        return self.sockaddr[0]


class Backend:
    """One destination of one or more routes: its current addresses and its health."""

    def __init__(self, destination: HostPort | ServicePort, *, listeners: Iterable[Endpoint]) -> None:
        self.destination = destination
        self.failure: Failure | None = None
        """Why there are no addresses; None without addresses means that the first answer is pending."""
        self.pending: Callable[[], Failure] = lambda: UNRESOLVED
        """Returns the failure to report while the first answer is pending."""
        self.health = Health()
        self.outdated = trio.Event()
        """Set when an address did not answer, to cause a new look-up, which replaces the event."""
        self._pool: Pool[Address] = Pool()
        self._listeners = OwnListeners(listeners)
        self._waiting: set[Callable[[], None]] = set()
        self._last = LastAddresses()
        self._kept: Decision | None = None
        """Why the last addresses are still used, if the last look-up failed."""
        self._own: frozenset[Address] = frozenset()
        self._found: tuple[Sequence[Address], Sequence[Address]] | None = None
        """The last addresses with those that are listeners of this relay, and those that are held back."""
        if is_literal(destination):
            self._replace([_literal(destination)])

    @property
    def addresses(self) -> tuple[Address, ...]:
        """All addresses; empty until the name is resolved."""
        return self._pool.addresses

    def order(self) -> tuple[Address, ...]:
        """The addresses that the next connection should try, best first."""
        return self._pool.order(now=monotonic())

    def when_known(self, callback: Callable[[], None]) -> None:
        """Call the callback once, at the next answer or failure."""
        self._waiting.add(callback)

    @property
    def is_awaited(self) -> bool:
        """Whether a client waits for the first addresses."""
        return bool(self._waiting)

    def forget(self, callback: Callable[[], None]) -> None:
        """Withdraw a callback."""
        self._waiting.discard(callback)

    def demote(self, address: Address) -> None:
        """Try an address last from now on, because it did not answer, and cause a new look-up."""
        self._pool.note_failure(address, now=monotonic())
        self.outdated.set()

    def note_connected(self, address: Address) -> None:
        """Record a successful connection."""
        self._pool.note_success(address)
        self.observe(None)

    def observe(self, failure: Failure | None) -> None:
        """Record the result of an attempt, None for success; a change is logged."""
        transition = self.health.observe(failure, now=monotonic())
        if transition is None:
            return
        if transition is Transition.FAILED and failure is not None:
            self._warn("backend unreachable", failure)
        else:
            log.info("backend reachable again", backend=str(self.destination))

    def take(self, found: Iterable[Address] | Failure, *, held: Iterable[Address] = ()) -> None:
        """Set the current addresses of the backend, or why they are unknown; `held` ones are tried after all others."""
        if isinstance(found, Failure):
            self._take_failure(found)
        else:
            self._kept = None
            self._last.found()
            self._replace(found, held)
        self._note_unreachable()
        waiting, self._waiting = self._waiting, set()
        for callback in waiting:
            callback()

    def set_listeners(self, listeners: OwnListeners) -> None:
        """The listeners of this relay have changed."""
        self._listeners = listeners
        if self._found is not None:
            self._replace(*self._found)
            self._note_unreachable()

    def _take_failure(self, failure: Failure) -> None:
        decision = self._last.judge(failure.cause, now=monotonic())
        if self.addresses and decision in _KEPT:
            if decision is not self._kept:
                self._warn(_KEPT[decision], failure)
            self._kept = decision
        else:
            self._kept = self._found = None
            self._pool.replace(())
            self.failure = failure

    def _note_unreachable(self) -> None:
        if not self.addresses:
            self.observe(self.failure)

    def _warn(self, event: str, failure: Failure) -> None:
        log.warning(event, backend=str(self.destination), cause=str(failure.cause), error=failure.detail)

    def _replace(self, found: Iterable[Address], held: Iterable[Address] = ()) -> None:
        found, held = tuple(found), tuple(held)
        self._found = found, held
        own = frozenset(filter(self._is_own, (*found, *held)))
        self._pool.replace(
            (address for address in found if address not in own),
            last=(address for address in held if address not in own),
        )
        self.failure = None if self.addresses else OWN_LISTENER
        if own - self._own and self.addresses:
            log.warning("excluded an address of the backend, a listener of this relay", backend=str(self.destination))
        self._own = own

    def _is_own(self, address: Address) -> bool:
        target = Endpoint(address.sockaddr[0], address.sockaddr[1])
        return any(
            reaches(listener, target) or (_covers(listener, target) and _is_local(address))
            for listener in self._listeners.at(target.port)
        )


def address_of(host: str, port: int) -> Address:
    """The address of an IP literal and a port. Raises OSError if a scope is no interface of this computer."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sockaddr = socket_address(Endpoint(host, port))
    # The form of getaddrinfo, so that equal addresses compare equal.
    return Address(family, sockaddr if family == socket.AF_INET or len(sockaddr) > 2 else (*sockaddr, 0, 0))  # noqa: PLR2004


def is_literal(destination: HostPort | ServicePort) -> bool:
    """Whether a backend is an IP literal, which needs no look-up."""
    if isinstance(destination, ServicePort):
        return False
    try:
        ipaddress.ip_address(destination.host)
    except ValueError:
        return False
    return True


def _literal(destination: HostPort | ServicePort) -> Address:
    assert isinstance(destination, HostPort)  # noqa: S101  # is_literal has checked it
    try:
        return address_of(destination.host, destination.port)
    except OSError as error:
        raise StartError(f"{destination}: {error.strerror}") from error


def _covers(listener: Endpoint, target: Endpoint) -> bool:
    return listener.port == target.port and listener.host in {"::", "0.0.0.0"}


def _is_local(address: Address) -> bool:
    """Whether an address belongs to this computer: only a local address can be bound."""
    with socket.socket(address.family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address.sockaddr[0], 0, *address.sockaddr[2:]))
        except OSError:
            return False
    return True

"""The header mode of a port: whether it requires, accepts or rejects the PROXY header, from three probes.

The law: a port that answers the bare request, but not the one with a header, rejects the header; the other way round,
it requires the header. A port that answers neither is silent. nginx with `proxy_protocol` closes a bare connection;
nginx without it answers 400 to a header.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final

from dnsproxy.doctor.facts.probes import Header, Outcome, Probe
from sidecar.values.endpoints import Endpoint

_SPOKEN: Final = frozenset([Outcome.ANSWERED, Outcome.ALERT])
"""The server understood the bytes: a TLS alert is an answer to a handshake that it read."""
_CONNECTED: Final = frozenset(
    [*_SPOKEN, Outcome.BAD_REQUEST, Outcome.GARBAGE, Outcome.CLOSED, Outcome.RESET, Outcome.SILENT]
)
_MUTE: Final = frozenset([Outcome.CLOSED, Outcome.RESET, Outcome.SILENT])
_NOWHERE: Final = frozenset([Outcome.UNREACHABLE, Outcome.NO_ROUTE])

PortKey = tuple[str, int, bool, str]
"""Address, port, whether it starts with a TLS handshake, and the hostname that was asked for."""


class HeaderMode(Enum):
    """Whether a port requires, accepts or rejects the PROXY header."""

    REQUIRES = "requires the PROXY header"
    ACCEPTS = "accepts connections with and without the PROXY header"
    REJECTS = "rejects the PROXY header"
    DEAD = "accepts no connection"
    SILENT = "accepts connections and answers none"
    UNKNOWN = "does not show whether it requires the PROXY header"


CLEAR: Final = frozenset([HeaderMode.REQUIRES, HeaderMode.ACCEPTS, HeaderMode.REJECTS])
"""The modes that show which header a port takes."""


def header_mode_of(probes: Iterable[Probe]) -> HeaderMode:
    """The mode of one port, from one probe for each header."""
    outcomes = {probe.header: probe.outcome for probe in probes}
    if not outcomes:
        return HeaderMode.UNKNOWN
    if not any(outcome in _CONNECTED for outcome in outcomes.values()):
        # A missing answer may be caused by a network policy, or by dialling outside a pod; a refusal comes from a host.
        return HeaderMode.DEAD if Outcome.REFUSED in outcomes.values() else HeaderMode.UNKNOWN
    plain = outcomes.get(Header.PLAIN) in _SPOKEN
    headed = [outcomes.get(header) in _SPOKEN for header in (Header.V1, Header.V2)]
    # ANSWERED or ALERT with and without a header: the server can parse both, so it accepts both.
    if plain and any(headed):
        return HeaderMode.ACCEPTS
    if plain:
        return HeaderMode.REJECTS if {Header.V1, Header.V2} & outcomes.keys() else HeaderMode.UNKNOWN
    if any(headed):
        return HeaderMode.REQUIRES if Header.PLAIN in outcomes else HeaderMode.UNKNOWN
    mute = outcomes.keys() == set(Header) and set(outcomes.values()) <= _MUTE
    return HeaderMode.SILENT if mute else HeaderMode.UNKNOWN


def versions_of(probes: Iterable[Probe]) -> tuple[str, ...]:
    """The versions of the header that the ports understood, each once."""
    found = {probe.header.value for probe in probes if probe.header is not Header.PLAIN and probe.outcome in _SPOKEN}
    return tuple(sorted(found))


def overall(modes: Sequence[HeaderMode]) -> HeaderMode:
    """The mode of a controller: the mode of the port that makes pods fail; a dead or silent port does not count."""
    for wanted in (HeaderMode.REQUIRES, HeaderMode.REJECTS, HeaderMode.ACCEPTS):
        if wanted in modes:
            return wanted
    if modes and set(modes) <= {HeaderMode.DEAD, HeaderMode.SILENT}:
        return HeaderMode.SILENT if HeaderMode.SILENT in modes else HeaderMode.DEAD
    return HeaderMode.UNKNOWN


def is_understood(probe: Probe) -> bool:
    """Whether a client that connects like this probe is served."""
    return probe.outcome in _SPOKEN


def usable_probes(probes: Sequence[Probe]) -> tuple[Probe, ...]:
    """The probes; empty if none reached an address, because then this machine is blocked."""
    return tuple(probes) if any(probe.outcome not in _NOWHERE for probe in probes) else ()


def describe(probes: Sequence[Probe]) -> tuple[str, ...]:
    """One line for each port: `443 (TLS): plain closed, v1 answered (...), v2 answered (...)`; equal ones once."""
    lines = (
        f"{Endpoint(address, port)} ({'TLS' if tls else 'HTTP'}): "
        + ", ".join(f"{one.header.value} {_said(one)}" for one in of_port)
        for (address, port, tls, _), of_port in by_port(probes).items()
    )
    return tuple(dict.fromkeys(lines))


def by_port(probes: Iterable[Probe]) -> dict[PortKey, list[Probe]]:
    """The probes of each port for each hostname."""
    ports: dict[PortKey, list[Probe]] = {}
    for probe in probes:
        ports.setdefault((probe.address, probe.port, probe.tls, probe.hostname), []).append(probe)
    return ports


def _said(probe: Probe) -> str:
    return f"{probe.outcome.value}{f' ({probe.detail})' if probe.detail else ''}"

"""HeaderMode: whether a port wants the PROXY header, from what three probes came to.

The law: a port that answers the bare request and not the one with a header takes none, and the other way round; what
answers neither says nothing about the header. nginx with `proxy_protocol` closes a bare connection; one without it
answers 400 to a header. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final

from dnsproxy.doctor.facts.model import Service
from dnsproxy.doctor.facts.probes import Header, Outcome, Probe

_SPOKEN: Final = frozenset([Outcome.ANSWERED, Outcome.ALERT])
"""The server understood what came: a TLS alert is an answer to a handshake that it read."""
_CONNECTED: Final = frozenset(
    [*_SPOKEN, Outcome.BAD_REQUEST, Outcome.GARBAGE, Outcome.CLOSED, Outcome.RESET, Outcome.SILENT]
)


class HeaderMode(Enum):
    """What a port wants to hear first."""

    REQUIRES = "requires the PROXY header"
    ACCEPTS = "takes connections with and without the PROXY header"
    REJECTS = "takes no PROXY header"
    DEAD = "takes no connection"
    UNKNOWN = "does not tell whether it wants the PROXY header"


def header_mode_of(probes: Iterable[Probe]) -> HeaderMode:
    """What the probes of one port, one for each header, come to."""
    outcomes = {probe.header: probe.outcome for probe in probes}
    if not outcomes:
        return HeaderMode.UNKNOWN
    if not any(outcome in _CONNECTED for outcome in outcomes.values()):
        # Silence may be a network policy's, or this is no pod; a refusal is somebody's.
        return HeaderMode.DEAD if Outcome.REFUSED in outcomes.values() else HeaderMode.UNKNOWN
    plain = outcomes.get(Header.PLAIN) in _SPOKEN
    headed = [outcomes.get(header) in _SPOKEN for header in (Header.V1, Header.V2)]
    # An alert to a bare handshake and to one behind a header alike: TLS cannot read one of them as well as the other.
    if plain and any(headed):
        return HeaderMode.ACCEPTS
    if plain:
        return HeaderMode.REJECTS if {Header.V1, Header.V2} & outcomes.keys() else HeaderMode.UNKNOWN
    return HeaderMode.REQUIRES if any(headed) and Header.PLAIN in outcomes else HeaderMode.UNKNOWN


def versions_of(probes: Iterable[Probe]) -> tuple[str, ...]:
    """The versions of the header that were understood."""
    return tuple(
        probe.header.value for probe in probes if probe.header is not Header.PLAIN and probe.outcome in _SPOKEN
    )


def overall(modes: Sequence[HeaderMode]) -> HeaderMode:
    """Of several ports of one controller: the one that makes pods fail counts; a port that is dead says nothing."""
    for wanted in (HeaderMode.REQUIRES, HeaderMode.REJECTS, HeaderMode.ACCEPTS):
        if wanted in modes:
            return wanted
    return HeaderMode.DEAD if modes and all(one is HeaderMode.DEAD for one in modes) else HeaderMode.UNKNOWN


def declared(service: Service) -> HeaderMode:
    """What the controller's own settings say; for where nothing could be dialled."""
    flag = service.settings.get("use-proxy-protocol", "").lower()
    if flag in ("true", "false"):
        return HeaderMode.REQUIRES if flag == "true" else HeaderMode.REJECTS
    if service.settings.get("proxy-protocol"):
        return HeaderMode.ACCEPTS
    return HeaderMode.UNKNOWN


def is_understood(probe: Probe) -> bool:
    """Whether a client that dials so is served."""
    return probe.outcome in _SPOKEN


def that_reached(probes: Sequence[Probe]) -> tuple[Probe, ...]:
    """The probes; none where not one of them reached anything, for then it is here that something is in the way."""
    return tuple(probes) if any(probe.outcome is not Outcome.UNREACHABLE for probe in probes) else ()


def describe(probes: Sequence[Probe]) -> tuple[str, ...]:
    """One line for each port: `443 (TLS): plain closed, v1 answered (...), v2 answered (...)`."""
    ports: dict[tuple[str, int, bool], list[Probe]] = {}
    for probe in probes:
        ports.setdefault((probe.endpoint, probe.port, probe.tls), []).append(probe)
    return tuple(
        f"{endpoint} ({'TLS' if tls else 'HTTP'}): " + ", ".join(f"{one.header.value} {_said(one)}" for one in of_port)
        for (endpoint, _, tls), of_port in ports.items()
    )


def _said(probe: Probe) -> str:
    return f"{probe.outcome.value}{f' ({probe.detail})' if probe.detail else ''}"

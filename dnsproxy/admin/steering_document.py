"""The steering document: what is decided for each class and Gateway, with the evidence, as JSON.

The law: pure. The field names are keys of the JSON, which scripts rely on. A received document is a SteeringDocument or
a ValueError.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dnsproxy.hostnames.public_addresses import UnknownAddress

PATH: Final = "/steering"
LARGEST: Final = 8 << 20
"""Octets of a document."""


class SubjectRow(msgspec.Struct, frozen=True, kw_only=True):
    """One class or Gateway."""

    subject: str
    """`ingressclass/NAME` or `gateway/NAMESPACE/NAME`."""
    decision: str
    """`nothing`, `leave alone`, `relay` or `keep`."""
    steered: bool
    """Whether its names are answered with the relay Service now."""
    undecided: bool = False
    """Whether something is missing to decide, which the evidence names last."""
    hostnames: int
    backend: str = ""
    """The Service of its controller, `NAMESPACE/NAME`; empty if it is not known."""
    relay: str = ""
    """The relay Service, `NAMESPACE/NAME`; empty if there is none."""
    evidence: tuple[str, ...] = ()
    """Sentences without full stops."""
    fault: str = ""
    """What is in the way of the decision."""


class RouteRow(msgspec.Struct, frozen=True, kw_only=True):
    """One route Service."""

    service: str
    """`NAMESPACE/NAME`."""
    relay_to: str
    managed: bool
    """Whether `dnsproxy operate` writes it; all others belong to people."""
    faults: tuple[str, ...] = ()


class SteeringDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What one replica of `dnsproxy operate` knows."""

    leads: bool
    """Whether this replica probes and writes; only its evidence has probes."""
    leader: str = ""
    """The identity of the replica that does."""
    subjects: tuple[SubjectRow, ...] = ()
    routes: tuple[RouteRow, ...] = ()
    missing: tuple[str, ...] = ()
    """What was not read yet, could not be read, or is not certain; nothing of that counts as absent meanwhile."""
    unknown_addresses: tuple[UnknownAddress, ...] = ()
    """The addresses that no status names and many claimed names lead to, as dnsproxy's pods say."""


_DECODER: Final = msgspec.json.Decoder(SteeringDocument)


def parse_steering(octets: bytes) -> SteeringDocument:
    """The document. Raises ValueError for any other one."""
    try:
        return _DECODER.decode(octets)
    except RecursionError as error:
        raise ValueError(str(error)) from None


def format_steering(document: SteeringDocument) -> bytes:
    """The document as JSON."""
    return msgspec.json.encode(document) + b"\n"

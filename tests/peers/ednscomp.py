"""The verdict on a reply to an EDNS compliance probe (RFC 8906 section 8), with the terms of ISC's tester. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.kit.dig import DigEdns, DigReply


@dataclass(frozen=True)
class Expected:
    """The expected reply of a compliant server."""

    status: str = "NOERROR"
    answers: int = 1
    """Number of records in the answer section."""
    soa: bool = False
    """Whether the authority section has exactly an SOA: NODATA (RFC 2308 section 2.2)."""
    edns: bool = True
    do: bool = False
    aa: bool = True
    tc: bool = False
    most: int = 0xFFFF
    """Octets."""
    options: tuple[str, ...] = ()
    """Options in the reply, in dig's notation; a reply must not repeat options of the query."""


def find_faults(reply: DigReply, expected: Expected) -> list[str]:
    """The faults, one word each; empty for a correct reply."""
    return [*_header_faults(reply, expected), *_section_faults(reply, expected), *_edns_faults(reply.edns, expected)]


def _header_faults(reply: DigReply, expected: Expected) -> Iterator[str]:
    if reply.status != expected.status:
        yield "status"
    if "qr" not in reply.flags:
        yield "noqr"
    if ("aa" in reply.flags) != expected.aa:
        yield "aa"
    if ("tc" in reply.flags) != expected.tc:
        yield "tc"
    if "ad" in reply.flags:
        yield "ad"
    if reply.mbz:
        yield "z"
    if reply.size is not None and reply.size > expected.most:
        yield "toobig"


def _section_faults(reply: DigReply, expected: Expected) -> Iterator[str]:
    _, answers, authorities, additional = reply.counts
    if answers != expected.answers or len(reply.section("ANSWER")) != answers:
        yield "answer"
    soas = [line for line in reply.section("AUTHORITY") if line.split()[3] == "SOA"]
    if expected.soa and len(soas) != 1:
        yield "nosoa"
    if authorities != expected.soa:
        yield "authority"
    if additional != (reply.edns is not None):
        yield "additional"


def _edns_faults(edns: DigEdns | None, expected: Expected) -> Iterator[str]:
    if edns is None:
        if expected.edns:
            yield "noopt"
        return
    if not expected.edns:
        yield "opt"
    if edns.version:
        yield "version"
    if edns.mbz:
        yield "mbz"
    if ("do" in edns.flags) != expected.do:
        yield "do" if "do" in edns.flags else "nodo"
    if edns.options != expected.options:
        yield "echoed"

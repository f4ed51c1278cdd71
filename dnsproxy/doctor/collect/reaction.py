"""Reactions: what a server does with a connection, as far as a Probe records it.

The law: any bytes and any error are a reaction. Only a status line of three digits is an HTTP response, and responses
with informational statuses (RFC 9110, section 15.2) are skipped. Tested in test_reaction.py and test_dialling.py.
"""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass
from typing import Final

from dnsproxy.doctor.facts.probes import Outcome, ServiceIdentity

_STATUS_LINE: Final = re.compile(rb"HTTP/\d(?:\.\d)? +(\d{3})(?: [^\n]*)?\r?(?:\n|\Z)")
# 101 is final: no other response follows it.
_INFORMATIONAL: Final = re.compile(rb"HTTP/\d(?:\.\d)? +1(?!01)\d\d(?: [^\n]*)?\r?\n")
_BLANK_LINE: Final = re.compile(rb"\n\r?\n")
# `[SSL] tlsv1 alert no application protocol (_ssl.c:1006)`
_SURROUNDINGS: Final = re.compile(r"\A\[[^]]*\] | \(_ssl\.c:\d+\)\Z")
_PREFIX: Final = b"HTTP/"
_BAD_REQUEST: Final = 400


@dataclass(frozen=True, slots=True)
class Reaction:
    """What a server did; the fields are those of a Probe."""

    outcome: Outcome
    detail: str = ""
    status: int = 0
    identity: ServiceIdentity | None = None


def is_decided(received: bytes) -> bool:
    """Whether more bytes cannot change the reaction."""
    final = _final(received)
    return final is not None and b"\n" in final


def judge_response(received: bytes, end: Reaction) -> Reaction:
    """The reaction by the first bytes of a response, and by how they ended if they are none."""
    if not received:
        return end
    final = _final(received)
    if not final:
        # The server speaks HTTP, and has no status for us yet.
        return Reaction(Outcome.ANSWERED, _first_line(received).partition(" ")[2])
    line = _first_line(final)
    match = _STATUS_LINE.match(final)
    if match is not None:
        status = int(match[1])
        outcome = Outcome.BAD_REQUEST if status == _BAD_REQUEST else Outcome.ANSWERED
        return Reaction(outcome, line.partition(" ")[2].strip(), status)
    begun = b"\n" not in final and (final.startswith(_PREFIX) or _PREFIX.startswith(final))
    if begun and end.outcome is Outcome.SILENT:
        return Reaction(Outcome.SILENT, f"{end.detail} but {line!r}")
    return Reaction(Outcome.GARBAGE, line)


def _final(received: bytes) -> bytes | None:
    """The bytes from the final response on; None while the headers of an informational response are incomplete."""
    while (match := _INFORMATIONAL.match(received)) is not None:
        blank = _BLANK_LINE.search(received, match.end() - 1)
        if blank is None:
            return None
        received = received[blank.end() :]
    return received


def _first_line(octets: bytes) -> str:
    return octets.partition(b"\n")[0].rstrip(b"\r").decode("latin-1")


def broken(error: BaseException | None) -> Reaction:
    """The reaction for a broken connection: an alert of TLS, or a reset."""
    while error is not None:
        if isinstance(error, ssl.SSLEOFError):
            return Reaction(Outcome.CLOSED)
        if isinstance(error, ssl.SSLError):
            return Reaction(Outcome.ALERT, _reason(error))
        if isinstance(error, OSError) and error.errno is not None:
            return Reaction(Outcome.RESET, os.strerror(error.errno))
        error = error.__cause__ or error.__context__
    return Reaction(Outcome.RESET)


def _reason(error: ssl.SSLError) -> str:
    """OpenSSL's name of a fault, also of one that Python has no name for."""
    return error.reason or _SURROUNDINGS.sub("", str(error)).upper().replace(" ", "_")

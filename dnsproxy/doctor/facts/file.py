"""The file of facts: written by `--save`, read by `--from`.

The law: a value that is saved and read again is the same value; any bytes give facts or one BadFacts.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dnsproxy.doctor.facts.model import VERSION, Facts
from sidecar.values.text import message_of

LARGEST: Final = 64 << 20
"""Largest file that is read, in bytes."""


class BadFacts(ValueError):
    """A file without valid facts; the message is one line."""


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Facts)


class _Versioned(msgspec.Struct):
    version: int


def format_facts(facts: Facts) -> bytes:
    """The file: JSON, indented so that a user can read it before sending it."""
    return msgspec.json.format(_ENCODER.encode(facts), indent=2) + b"\n"


def parse_facts(octets: bytes) -> Facts:
    """The facts in a file. Raises BadFacts."""
    if len(octets) > LARGEST:
        raise BadFacts(f"it is larger than {LARGEST >> 20} MiB")
    try:
        version = msgspec.json.decode(octets, type=_Versioned).version
        if version != VERSION:
            raise BadFacts(f"its format is version {version}, and this program reads version {VERSION}")
        return _DECODER.decode(octets)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadFacts(f"it holds no facts of `dnsproxy doctor --save`: {message_of(error)}") from None

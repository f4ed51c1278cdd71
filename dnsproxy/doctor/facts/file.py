"""The file of facts: what `--save` writes and `--from` reads.

The law: what is saved and read again is the same value; whatever octets come, they are facts or one BadFacts. Pure.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dnsproxy.doctor.facts.model import VERSION, Facts

LARGEST: Final = 64 << 20
"""Octets of a file that is read."""


class BadFacts(ValueError):
    """A file that holds no facts; the message is one line."""


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Facts)


class _Versioned(msgspec.Struct):
    version: int


def format_facts(facts: Facts) -> bytes:
    """The file: JSON with two blanks of indentation, so that whoever sends it reads it first."""
    return msgspec.json.format(_ENCODER.encode(facts), indent=2) + b"\n"


def parse_facts(octets: bytes) -> Facts:
    """What a file holds. Raises BadFacts."""
    if len(octets) > LARGEST:
        raise BadFacts(f"it is larger than {LARGEST >> 20} MiB")
    try:
        version = msgspec.json.decode(octets, type=_Versioned).version
        if version != VERSION:
            raise BadFacts(f"its form is version {version}, and this program reads version {VERSION}")
        return _DECODER.decode(octets)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadFacts(f"it holds no facts of `dnsproxy doctor --save`: {error}") from None

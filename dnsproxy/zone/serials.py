"""Serial numbers of a zone (RFC 1982, RFC 1035 section 3.3.13).

The law: pure; serials are compared in their circle of 2^32, never as integers. 0 is left out, because some programs
take it for no serial.
"""

from __future__ import annotations

from typing import Final

MODULUS: Final = 1 << 32
_HALF: Final = 1 << 31


def is_newer(serial: int, than: int) -> bool:
    """Whether a serial comes after another one (RFC 1982 section 3.2)."""
    return 0 < (serial - than) % MODULUS < _HALF


def following(serial: int, step: int = 1) -> int:
    """The serial `step` after another one (RFC 1982 section 3.1)."""
    return (serial + step) % MODULUS or 1


def newest(one: int, other: int) -> int:
    """The later one of two serials."""
    return one if is_newer(one, other) else other

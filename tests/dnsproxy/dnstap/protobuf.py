"""A reader of protobuf messages, written from the specification and not from our writer."""

from __future__ import annotations


def fields_of(octets: bytes) -> dict[int, int | bytes]:
    """The fields of a message by number; each may be there once. Fails for anything else."""
    found: dict[int, int | bytes] = {}
    while octets:
        key, octets = varint_of(octets)
        value: int | bytes
        match key & 7:
            case 0:
                value, octets = varint_of(octets)
            case 2:
                size, octets = varint_of(octets)
                assert len(octets) >= size
                value, octets = octets[:size], octets[size:]
            case 5:
                value, octets = int.from_bytes(octets[:4], "little"), octets[4:]
            case other:
                raise AssertionError(f"wire type {other}")
        assert key >> 3 not in found
        found[key >> 3] = value
    return found


def varint_of(octets: bytes) -> tuple[int, bytes]:
    number = 0
    for index, octet in enumerate(octets):
        number |= (octet & 0x7F) << 7 * index
        if not octet & 0x80:
            return number, octets[index + 1 :]
    raise AssertionError("cut off")

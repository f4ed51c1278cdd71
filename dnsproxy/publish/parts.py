"""Parts: a document cut into pieces that each fit into a ConfigMap, and put together again.

The law: what is put together is one document, whole, or a ValueError: pieces of two of them never mix, whatever the
order in which they arrive. Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

LARGEST_PART: Final = 900_000
"""Octets. Keys and values of a ConfigMap have 1 MiB together: https://kubernetes.io/docs/concepts/configuration/configmap/
(the value itself counts, not its base64)."""
MOST_PARTS: Final = 16

_KEY: Final = re.compile(r"names-([0-9a-f]{16})-([0-9]{1,2})-of-([0-9]{1,2})\.json\.gz")


@dataclass(frozen=True, slots=True)
class Part:
    """One piece, and the key or the file name that it has."""

    key: str
    octets: bytes


def split_document(octets: bytes) -> list[Part]:
    """The pieces, one at least. Raises ValueError for a document that is too large."""
    count = max(1, -(-len(octets) // LARGEST_PART))
    if count > MOST_PARTS:
        raise ValueError(f"it has {len(octets)} octets, more than {MOST_PARTS} ConfigMaps can hold")
    digest = _digest(octets)
    pieces = (octets[at * LARGEST_PART : (at + 1) * LARGEST_PART] for at in range(count))
    return [Part(f"names-{digest}-{number}-of-{count}.json.gz", piece) for number, piece in enumerate(pieces, 1)]


def join_parts(parts: Iterable[Part]) -> bytes:
    """The document that the pieces make, others among them left alone. Raises ValueError where none is whole."""
    found: dict[tuple[str, int], dict[int, bytes]] = {}
    for part in parts:
        if match := _KEY.fullmatch(part.key):
            found.setdefault((match[1], int(match[3])), {})[int(match[2])] = part.octets
    whole = [_join(pieces) for (digest, count), pieces in found.items() if _is_whole(digest, count, pieces)]
    if not found:
        raise ValueError("there is no part of a publication")
    if len(whole) != 1:
        raise ValueError("the parts of a publication are not all of one" if not whole else "there are two publications")
    return whole[0]


def is_part(key: str) -> bool:
    """Whether a key or a file name is that of a piece."""
    return _KEY.fullmatch(key) is not None


def count_parts(key: str) -> int:
    """Of how many pieces a key is one; 0 for another key."""
    match = _KEY.fullmatch(key)
    return int(match[3]) if match else 0


def _is_whole(digest: str, count: int, pieces: Mapping[int, bytes]) -> bool:
    return set(pieces) == set(range(1, count + 1)) and _digest(_join(pieces)) == digest


def _join(pieces: Mapping[int, bytes]) -> bytes:
    return b"".join(pieces[number] for number in sorted(pieces))


def _digest(octets: bytes) -> str:
    return hashlib.sha256(octets).hexdigest()[:16]

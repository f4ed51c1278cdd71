"""Splits a document into parts that each fit into a ConfigMap, and joins them again.

The law: the joined parts are one whole document, or joining raises ValueError. Parts of two documents never mix, in
whatever order they arrive. Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

LARGEST_PART: Final = 900_000
"""Octets. The keys and values of a ConfigMap share 1 MiB (https://kubernetes.io/docs/concepts/configuration/configmap/);
the decoded value counts, not its base64."""
MOST_PARTS: Final = 16

_KEY: Final = re.compile(r"names-([0-9a-f]{16})-([0-9]{1,2})-of-([0-9]{1,2})\.json\.gz")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a document, under its key or file name."""

    key: str
    octets: bytes


def split_document(octets: bytes) -> list[Part]:
    """The parts, at least one. Raises ValueError for a document that is too large."""
    count = max(1, -(-len(octets) // LARGEST_PART))
    if count > MOST_PARTS:
        raise ValueError(f"it has {len(octets)} octets, more than {MOST_PARTS} ConfigMaps can hold")
    digest = _digest(octets)
    pieces = (octets[at * LARGEST_PART : (at + 1) * LARGEST_PART] for at in range(count))
    return [Part(f"names-{digest}-{number}-of-{count}.json.gz", piece) for number, piece in enumerate(pieces, 1)]


def join_parts(parts: Iterable[Part]) -> bytes:
    """The one document that is whole; incomplete parts of others are ignored. Raises ValueError if none is whole."""
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
    """Whether a key or a file name is that of a part."""
    return _KEY.fullmatch(key) is not None


def count_parts(key: str) -> int:
    """How many parts the document has, by the key of one of them; 0 for another key."""
    match = _KEY.fullmatch(key)
    return int(match[3]) if match else 0


def _is_whole(digest: str, count: int, pieces: Mapping[int, bytes]) -> bool:
    return set(pieces) == set(range(1, count + 1)) and _digest(_join(pieces)) == digest


def _join(pieces: Mapping[int, bytes]) -> bytes:
    return b"".join(pieces[number] for number in sorted(pieces))


def _digest(octets: bytes) -> str:
    return hashlib.sha256(octets).hexdigest()[:16]

"""The rewrites document: the names of a table that a Service answers, as small JSON for the installer.

The law: pure. A received document is a RewritesDocument or a ValueError, and each name and Service in it is in normal
form, because they become lines of a Corefile. Replicas with the same table send the same octets.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from dnsproxy.admin.rewritable_names import MOST, MOST_EXEMPT
from dnsproxy.corefile.rewrite_lines import Rewrite, check_rewrite
from dnsproxy.dns.names import Reach

PATH: Final = "/rewrites"
LARGEST: Final = 2 << 20
"""Octets of a document."""


class Name(msgspec.Struct, frozen=True, array_like=True):
    """One row of the table."""

    hostname: str
    """In normal form, `*.` in front of a wildcard."""
    reach: Reach
    service: str = ""
    """`NAMESPACE/NAME`; empty for an exempt name."""


class RewritesDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What a server answers with Services. The field names are keys of the JSON."""

    names: tuple[Name, ...]
    """Names whose Service has a ready endpoint, those of the oldest objects first, at most MOST."""
    exempt: tuple[Name, ...] = ()
    """Names that no Service answers, although a wildcard among `names` covers them; at most MOST_EXEMPT."""
    plain: int = 0
    """How many names are answered with plain addresses."""
    left_out: int = 0
    """How many names of Services are not in it, because there are too many."""
    waiting_for: tuple[str, ...] = ()
    """Sources that have not reported all their objects; until then names may be missing."""


_DECODER: Final = msgspec.json.Decoder(RewritesDocument)


def format_rewrites_document(document: RewritesDocument) -> tuple[bytes, str]:
    """The octets of a document, and their entity tag without quotes."""
    octets = msgspec.json.encode(document) + b"\n"
    return octets, hashlib.sha256(octets).hexdigest()[:32]


def parse_rewrites_document(octets: bytes) -> RewritesDocument:
    """The document. Raises ValueError for any other one."""
    try:
        document = _DECODER.decode(octets)
    except RecursionError as error:
        raise ValueError(str(error)) from None
    if len(document.names) > MOST or len(document.exempt) > MOST_EXEMPT:
        raise ValueError(f"it has more than {MOST:,} names or {MOST_EXEMPT:,} exempt names")
    for name in (*document.names, *document.exempt):
        check_rewrite(Rewrite(name.hostname, name.reach, name.service))
    if not all(name.service for name in document.names) or any(name.service for name in document.exempt):
        raise ValueError("a name has no Service, or an exempt name has one")
    return document

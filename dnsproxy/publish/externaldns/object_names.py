"""Names of objects for hostnames.

The law: a name depends on its hostname alone, fits the limits of its kind, and is unique: it contains the hostname
unchanged, or a shortened form and a hash of the hostname. Pure.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from sidecar.kubernetes.names import LONGEST_SUBDOMAIN, SUBDOMAIN

LONGEST_LABEL: Final = 63
"""RFC 1035 label, the name of a Service."""

_PREFIX: Final = "switchback"
_HASH: Final = 16
_SUBDOMAIN: Final = re.compile(SUBDOMAIN)


def subdomain_name(hostname: str) -> str:
    """The name of an object for a hostname in normal form: at most 253 characters, dots among them.

    `switchback-HOSTNAME` if that is a valid name; else `switchback.`, a shortened hostname and a hash. The character
    after the prefix keeps the two forms apart for all hostnames.
    """
    plain = f"{_PREFIX}-{hostname}"
    if len(plain) <= LONGEST_SUBDOMAIN and _SUBDOMAIN.fullmatch(hostname):
        return plain
    room = LONGEST_SUBDOMAIN - len(_PREFIX) - _HASH - 2
    readable = ".".join(filter(None, (label.strip("-") for label in _cleaned(hostname)[:room].split("."))))
    return f"{_PREFIX}.{_with_hash(readable, hostname)}"


def label_name(hostname: str) -> str:
    """The name of a Service for a hostname in normal form: at most 63 characters, always with a hash."""
    room = LONGEST_LABEL - len(_PREFIX) - _HASH - 2
    readable = _cleaned(hostname).replace(".", "-")[:room].strip("-")
    return f"{_PREFIX}-{_with_hash(readable, hostname)}"


def _cleaned(hostname: str) -> str:
    return hostname.replace("*", "any").replace("_", "-")


def _with_hash(readable: str, hostname: str) -> str:
    """The shortened hostname may be empty."""
    digest = hashlib.sha256(hostname.encode()).hexdigest()[:_HASH]
    return f"{readable}-{digest}" if readable else digest

"""Marks: what an object's annotations and labels say to us (`switchback.dev/...`).

The law: an annotation goes before a label of the same name. An object with a mark that we can't read is left out, for
its owner wanted something other than what we would do; a hostname that can't be served harms no other.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dnsproxy.dns.names import BadName, parse_hostname
from dnsproxy.hostnames.targets import BadTarget, parse_target
from sidecar.kubernetes.objects import ObjectMeta
from sidecar.text import quoted

IGNORE: Final = "switchback.dev/ignore"
"""`true`: the object claims nothing."""
TARGET: Final = "switchback.dev/target"
"""Where its names point, whatever --target and --target-for say."""
HOSTNAME: Final = "switchback.dev/hostname"
"""Hostnames that it is to be answered for beside its own, with commas between them."""


class MarkFields(msgspec.Struct, frozen=True, gc=False):
    """What annotations, or labels, say to us, as they came."""

    ignore: str | None = msgspec.field(default=None, name=IGNORE)
    target: str | None = msgspec.field(default=None, name=TARGET)
    hostname: str | None = msgspec.field(default=None, name=HOSTNAME)


class MarkedMetadata(ObjectMeta, frozen=True, gc=False, rename="camel"):
    """Who an object is, and our marks on it."""

    annotations: MarkFields | None = None
    labels: MarkFields | None = None


class Marks(msgspec.Struct, frozen=True, gc=False):
    """The marks on one object, read."""

    ignored: bool = False
    target: str | None = None
    """In the form of Claim.target."""
    hostnames: tuple[str, ...] = ()
    """In normal form, each once."""
    faults: tuple[str, ...] = ()
    """Why the object is left out."""
    bad_hostnames: tuple[str, ...] = ()
    """Why a hostname of its marks is left out; the others count."""

    @property
    def bar(self) -> str | None:
        """Why the object claims nothing, to be put behind its name; None where it may."""
        if self.ignored:
            return f"is ignored ({IGNORE})"
        return "has a mark that can't be read" if self.faults else None


NO_MARKS: Final = Marks()
_NO_FIELDS: Final = MarkFields()


def read_marks(metadata: MarkedMetadata) -> Marks:
    """The marks in an object's metadata."""
    first, second = metadata.annotations or _NO_FIELDS, metadata.labels or _NO_FIELDS
    ignore = first.ignore if first.ignore is not None else second.ignore
    target = first.target if first.target is not None else second.target
    hostname = first.hostname if first.hostname is not None else second.hostname
    if ignore is None and target is None and hostname is None:
        return NO_MARKS
    faults = []
    if ignore not in (None, "true", "false"):
        faults.append(f"{IGNORE}: {quoted(ignore or '')} is neither true nor false")
    try:
        target = parse_target(target) if target is not None else None
    except BadTarget as error:
        target = None
        faults.append(f"{TARGET}: {error}")
    hostnames, bad_hostnames = _parse_hostnames(hostname)
    return Marks(ignore == "true", target, hostnames, tuple(faults), bad_hostnames)


def _parse_hostnames(text: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The hostnames of a list, and what is wrong with the others; nothing between two commas is nothing."""
    hostnames: dict[str, None] = {}
    faults: dict[str, None] = {}
    for part in (text or "").split(","):
        if part.strip():
            try:
                hostnames[parse_hostname(part)] = None
            except BadName as error:
                faults[f"{HOSTNAME}: {error}"] = None
    return tuple(hostnames), tuple(faults)

r"""Domain names: from the texts of users and clusters to the octets that DNS compares.

The law: names are compared by their lower-case wire form, never by their text, because a label may contain a dot
(RFC 2181 section 11) and `a\.b` must not match `a.b`. Text is only for input and output.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from enum import Enum
from typing import Final

import idna

from sidecar.values.endpoints import is_address
from sidecar.values.text import quoted

MAXIMUM_LABEL = 63
"""Octets in one label (RFC 1035 section 2.3.4)."""

MAXIMUM_NAME = 255
"""Octets in a whole name in wire form, its final zero included (RFC 1035 section 2.3.4)."""

# Kubernetes allows only letters, digits and dashes in hosts; hosts files and SRV-like names also have underscores.
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)\Z")
# Nearly all names match this: in normal form, and without a final digit, which an IP literal could have.
_NORMAL = re.compile(r"(?:\*\.)?(?:(?!-)[a-z0-9_-]{1,63}(?<!-)\.)*(?!-)[a-z0-9_-]{0,62}[a-z_]\Z")
_NORMAL_LIMIT = MAXIMUM_NAME - 2  # the length octet of the first label, and the final zero
_ACE: Final = "xn--"
"""The prefix of an A-label (RFC 5890 section 2.3.2.1)."""

MOST_IN_OTHER_SCRIPTS: Final = 10_000
"""Characters in the names of one object that have A-labels: checking takes 2 to 5 microseconds for each."""


class BadName(ValueError):
    """A text is not a hostname; the message has the text and the fault."""


def parse_hostname(text: str) -> str:
    """The normal form of a hostname: lower case, A-labels, no final dot; a wildcard keeps its `*.`.

    A label in another script must be its own normal form in UTS 46 (non-transitional), apart from upper case.

    Raises BadName for a text that can never be answered: an empty name, an IP literal, a bare `*`, a wildcard that is
    not the whole first label, a label or name over the limits, another spelling of a name, any other character.
    """
    name = text.strip().removesuffix(".")
    # Not of other scripts: the lower case of the Kelvin sign is an ASCII `k`.
    name = name.lower() if name.isascii() else name
    if len(name) <= _NORMAL_LIMIT and _NORMAL.match(name) and _ACE not in name:
        return name
    base = name.removeprefix("*.")
    if not base or base == "*":
        raise BadName(f"{quoted(text)} is not a hostname")
    if _is_address(base):
        raise BadName(f"{quoted(text)} is an IP address, not a hostname")
    labels = [_parse_label(label, text) for label in base.split(".")]
    if sum(map(len, labels)) + len(labels) + 1 > MAXIMUM_NAME:
        raise BadName(f"{quoted(text)} is longer than {MAXIMUM_NAME} octets")
    return ("*." if name != base else "") + ".".join(labels)


class ObjectNames:
    """Parses the hostnames of one object: only so many characters of those that take long to check.

    Otherwise a thousand names in another script, or A-labels of them, took half a second for each change of the object.
    """

    def __init__(self) -> None:
        self._left = MOST_IN_OTHER_SCRIPTS

    def parse(self, text: str) -> str:
        """As parse_hostname. Raises BadName, also for names beyond the limit."""
        if not text.isascii() or _ACE in text.lower():
            self._left -= len(text)
            if self._left < 0:
                limit = f"{MOST_IN_OTHER_SCRIPTS:,} characters of names in other scripts"
                raise BadName(f"{quoted(text)} is left out: one object may have {limit}")
        return parse_hostname(text)


def parse_hostnames(texts: Iterable[str]) -> tuple[dict[str, None], list[str]]:
    """The hostnames of one object (ObjectNames), each once and in their order, and the fault of each invalid text."""
    hostnames: dict[str, None] = {}
    faults = []
    names = ObjectNames()
    for text in texts:
        try:
            hostnames[names.parse(text)] = None
        except BadName as error:
            faults.append(str(error))
    return hostnames, faults


def parse_zone(text: str) -> str:
    """The apex of a zone in normal form. Raises BadName, also for a wildcard, because no zone has that name."""
    zone = parse_hostname(text)
    if is_wildcard(zone):
        raise BadName(f"{quoted(text)} is a wildcard; name the zone, {zone.removeprefix('*.')}")
    return zone


def _parse_label(label: str, text: str) -> str:
    if not label.isascii():
        return _to_a_label(label, text)
    label = label.lower()
    if not _LABEL.match(label):
        fault = "is empty" if not label else f"{quoted(label)} is not a host label"
        raise BadName(f"{quoted(text)}: a label {fault}")
    if label.startswith(_ACE):
        _check_a_label(label, text)
    return label


def _to_a_label(label: str, text: str) -> str:
    """The A-label of a U-label, upper case included.

    Nothing else is mapped: a compatibility character, such as a full-width letter, would become another owner's name.
    """
    # Character by character, as in UTS 46: str.lower() makes a final sigma of the last letter.
    lowered = "".join(map(_lower, label))
    try:
        # An A-label is never shorter than its U-label, and checking takes time.
        a_label = idna.encode(lowered).decode("ascii") if len(label) <= MAXIMUM_LABEL else ""
        round_trips = bool(a_label) and idna.decode(a_label) == lowered
    except (idna.IDNAError, UnicodeError):
        round_trips = False
    if not round_trips or not all(_has_one_case(letter) or _lower(letter).upper() == letter for letter in label):
        raise BadName(f"{quoted(text)} is not the normal spelling of a name (UTS 46)")
    return a_label


def _lower(letter: str) -> str:
    # The letters of Cherokee fold to upper case, which is the one that domain names have.
    return letter if letter.casefold() == letter else letter.lower()


def _has_one_case(letter: str) -> bool:
    return _lower(letter) == letter


def _check_a_label(label: str, text: str) -> None:
    """Raises BadName for an A-label that no U-label has, which browsers and logs show as another name.

    Emoji pass: UTS 46 allows them, and such names are in use, although IDNA 2008 does not.
    """
    try:
        shown = label.removeprefix(_ACE).encode("ascii").decode("punycode")
        shown.encode("utf-8")  # no surrogates
        a_label = _ACE + shown.encode("punycode").decode("ascii")
    except (UnicodeError, ValueError, OverflowError):
        a_label = ""
    if a_label != label or shown.isascii() or not _is_normal(shown):
        raise BadName(f"{quoted(text)}: {quoted(label)} is not the A-label of a name (UTS 46)")


def _is_normal(label: str) -> bool:
    return unicodedata.is_normalized("NFKC", label) and all(map(_has_one_case, label))


def is_wildcard(hostname: str) -> bool:
    """Whether a hostname in normal form is a wildcard."""
    return hostname.startswith("*.")


def is_within(name: str, zone: str) -> bool:
    """Whether a name is a zone's apex or below it, by whole labels; both in normal form, without `*.`."""
    return name == zone or name.endswith("." + zone)


def is_within_any(name: str, zones: Iterable[str]) -> bool:
    """Whether a name is within at least one of the zones."""
    return any(is_within(name, zone) for zone in zones)


def to_wire(hostname: str) -> bytes:
    """The wire form of a hostname in normal form, without `*.`; the empty text is the root."""
    labels = [label.encode("ascii") for label in hostname.removeprefix("*.").split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def hostname_of(wire: bytes) -> str:
    """The hostname in normal form of a wire name that to_wire made."""
    labels, position = [], 0
    while wire[position]:
        end = position + 1 + wire[position]
        labels.append(wire[position + 1 : end])
        position = end
    return b".".join(labels).decode("ascii")


def format_wire(wire: bytes) -> str:
    """A whole uncompressed wire name as text, as in RFC 1035 section 5.1: safe in logs and terminals."""
    labels = []
    position = 0
    while position < len(wire) and wire[position]:
        end = position + 1 + wire[position]
        labels.append("".join(map(_shown_octet, wire[position + 1 : end])))
        position = end
    return ".".join(labels) + "."


def ancestors(wire: bytes) -> list[bytes]:
    """The names above a wire name, nearest first, the root last."""
    found = []
    position = 0
    while wire[position]:
        position += 1 + wire[position]
        found.append(wire[position:])
    return found


def is_within_wire(name: bytes, zone: bytes) -> bool:
    """Whether a wire name is a zone's apex or below it; both in lower case."""
    return name == zone or zone in ancestors(name)


def _is_address(text: str) -> bool:
    # An IPv4 literal ends in a digit, an IPv6 literal has a colon: nearly every hostname needs no parsing.
    if ":" not in text and not text.strip("[]")[-1:].isdigit():
        return False
    return is_address(text.strip("[]"))


def _shown_octet(octet: int) -> str:
    if octet in b'.\\"();@$':
        return "\\" + chr(octet)
    return chr(octet) if 0x21 <= octet <= 0x7E else f"\\{octet:03d}"  # noqa: PLR2004  # the printable range of ASCII


class Reach(Enum):
    """How many labels a wildcard covers; an exact name has reach NAME."""

    NAME = "exact"
    ONE_LABEL = "one label"
    """An Ingress wildcard: `*.example.org` matches a.example.org only (networking.k8s.io/v1 IngressRule.host)."""
    ANY_LABELS = "one or more labels"
    """A Gateway or HTTPRoute wildcard (gateway.networking.k8s.io/v1 Hostname)."""

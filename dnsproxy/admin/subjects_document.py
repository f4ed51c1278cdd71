"""The subjects document: which ingress classes and Gateways have hostnames at a server, as JSON.

The law: pure. A received document is a SubjectsDocument or a ValueError: within the limits, each subject once, and each
subject, hostname and load balancer in normal form. Replicas with the same names send the same octets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from dnsproxy.dns.addresses import parse_address
from dnsproxy.dns.names import parse_hostname
from dnsproxy.hostnames.claimed_subjects import MOST, MOST_EXAMPLES, MOST_POINTS, ClaimedSubject
from sidecar.kubernetes.route_services import is_subject

PATH: Final = "/subjects"
LARGEST: Final = 8 << 20
"""Octets of a document; one with MOST subjects whose names are all as long as they can be has six million."""

_MOST_NUMBER: Final = 1 << 53

Number = Annotated[int, msgspec.Meta(ge=0, le=_MOST_NUMBER)]


class SubjectsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The subjects whose hostnames the target `auto` decides about. The field names are keys of the JSON."""

    subjects: tuple[ClaimedSubject, ...]
    """Sorted, at most MOST."""
    left_out: Number = 0
    """Subjects that are not in it, because there are MOST already."""
    waiting_for: tuple[str, ...] = ()
    """Sources that have not reported all their objects; until then subjects and hostnames may be missing."""

    @property
    def complete(self) -> bool:
        """Whether a subject that is not in it has no hostname."""
        return not self.left_out and not self.waiting_for


_DECODER: Final = msgspec.json.Decoder(SubjectsDocument)


def format_subjects(
    subjects: Sequence[ClaimedSubject], *, left_out: int = 0, waiting_for: Sequence[str] = ()
) -> tuple[bytes, str]:
    """The document for sorted subjects, and its entity tag without quotes."""
    document = SubjectsDocument(subjects=tuple(subjects), left_out=left_out, waiting_for=tuple(waiting_for))
    octets = msgspec.json.encode(document) + b"\n"
    return octets, hashlib.sha256(octets).hexdigest()[:32]


def parse_subjects(octets: bytes) -> SubjectsDocument:
    """The document. Raises ValueError for any other one."""
    try:
        document = _DECODER.decode(octets)
    except RecursionError as error:
        raise ValueError(str(error)) from None
    if len(document.subjects) > MOST:
        raise ValueError(f"it has more than {MOST:,} subjects")
    if len({one.subject for one in document.subjects}) < len(document.subjects):
        raise ValueError("it has a subject twice")
    for one in document.subjects:
        _check(one)
    return document


def _check(one: ClaimedSubject) -> None:
    """Raise ValueError for a value that a server never sends."""
    if not is_subject(one.subject):
        raise ValueError(f"{one.subject!a} is not ingressclass/NAME or gateway/NAMESPACE/NAME")
    if not 1 <= one.hostnames <= _MOST_NUMBER or not 1 <= len(one.examples) <= MOST_EXAMPLES:
        raise ValueError(f"{one.subject} has {one.hostnames} hostnames and {len(one.examples)} examples")
    if len(one.status) > MOST_POINTS:
        raise ValueError(f"{one.subject} has more than {MOST_POINTS} load balancers")
    for hostname in one.examples:
        if parse_hostname(hostname) != hostname:
            raise ValueError(f"{hostname!a} is not a hostname in normal form")
    for point in one.status:
        if not _is_point(point):
            raise ValueError(f"{point!a} is neither an address nor a hostname in normal form")


def _is_point(text: str) -> bool:
    for parse in (parse_address, parse_hostname):
        try:
            return parse(text) == text
        except ValueError:
            continue
    return False

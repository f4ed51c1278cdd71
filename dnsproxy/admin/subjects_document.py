"""The subjects document: which ingress classes and Gateways have hostnames at a server, as JSON.

It also has what an operator should know about these hostnames: the addresses that no status names, and the wildcards
that cover whole domains. The law: pure. A received document is a SubjectsDocument or a ValueError: within the limits,
each subject once, and each subject, hostname and load balancer in normal form. Replicas with the same names and the
same queries send the same octets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from dnsproxy.dns.addresses import parse_address
from dnsproxy.dns.names import is_wildcard, parse_hostname
from dnsproxy.hostnames.claimed_subjects import MOST, MOST_EXAMPLES, MOST_POINTS, ClaimedSubject
from dnsproxy.hostnames.outcomes import MOST_WIDE
from dnsproxy.hostnames.public_addresses import MOST as MOST_ADDRESSES
from dnsproxy.hostnames.public_addresses import MOST_EXAMPLES as MOST_NAMES
from dnsproxy.hostnames.public_addresses import UnknownAddress
from dnsproxy.hostnames.wide_wildcards import LONGEST_ORIGIN, WideWildcard
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
    unknown_addresses: tuple[UnknownAddress, ...] = ()
    """Addresses of no load balancer that is known, where many of the claimed names lead that were asked here lately."""
    wide: tuple[WideWildcard, ...] = ()
    """The first wildcards that cover whole domains, at most MOST_WIDE."""

    @property
    def complete(self) -> bool:
        """Whether a subject that is not in it has no hostname."""
        return not self.left_out and not self.waiting_for


_DECODER: Final = msgspec.json.Decoder(SubjectsDocument)


def format_subjects(
    subjects: Sequence[ClaimedSubject],
    *,
    left_out: int = 0,
    waiting_for: Sequence[str] = (),
    unknown_addresses: Sequence[UnknownAddress] = (),
    wide: Sequence[WideWildcard] = (),
) -> tuple[bytes, str]:
    """The document for sorted subjects, and its entity tag without quotes."""
    document = SubjectsDocument(
        subjects=tuple(subjects),
        left_out=left_out,
        waiting_for=tuple(waiting_for),
        unknown_addresses=tuple(unknown_addresses),
        wide=tuple(wide),
    )
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
    if len(document.unknown_addresses) > MOST_ADDRESSES or len(document.wide) > MOST_WIDE:
        raise ValueError(f"it has more than {MOST_ADDRESSES} addresses, or more than {MOST_WIDE} wildcards")
    for address in document.unknown_addresses:
        _check_address(address)
    for wildcard in document.wide:
        _check_wildcard(wildcard)
    return document


def _check(one: ClaimedSubject) -> None:
    """Raise ValueError for a value that a server never sends."""
    if not is_subject(one.subject):
        raise ValueError(f"{one.subject!a} is not ingressclass/NAME or gateway/NAMESPACE/NAME")
    if not 1 <= one.hostnames <= _MOST_NUMBER or not 1 <= len(one.examples) <= MOST_EXAMPLES:
        raise ValueError(f"{one.subject} has {one.hostnames} hostnames and {len(one.examples)} examples")
    if len(one.status) > MOST_POINTS:
        raise ValueError(f"{one.subject} has more than {MOST_POINTS} load balancers")
    _check_hostnames(one.examples)
    for point in one.status:
        if not _is_point(point):
            raise ValueError(f"{point!a} is neither an address nor a hostname in normal form")


def _check_address(one: UnknownAddress) -> None:
    """The same for an address that no status names."""
    if parse_address(one.address) != one.address:
        raise ValueError(f"{one.address!a} is not an address in normal form")
    if not 1 <= one.hostnames <= one.asked <= _MOST_NUMBER or not 1 <= len(one.examples) <= MOST_NAMES:
        raise ValueError(f"{one.address} has {one.hostnames} of {one.asked} hostnames, {len(one.examples)} examples")
    if one.subject and not is_subject(one.subject):
        raise ValueError(f"{one.subject!a} is not ingressclass/NAME or gateway/NAMESPACE/NAME")
    _check_hostnames(one.examples)


def _check_wildcard(one: WideWildcard) -> None:
    """The same for a wildcard that covers a whole domain."""
    _check_hostnames((one.hostname,))
    if not is_wildcard(one.hostname) or not 1 <= len(one.origin) <= LONGEST_ORIGIN:
        raise ValueError(f"{one.hostname} is no wildcard, or has no object")


def _check_hostnames(hostnames: Sequence[str]) -> None:
    for hostname in hostnames:
        if parse_hostname(hostname) != hostname:
            raise ValueError(f"{hostname!a} is not a hostname in normal form")


def _is_point(text: str) -> bool:
    for parse in (parse_address, parse_hostname):
        try:
            return parse(text) == text
        except ValueError:
            continue
    return False

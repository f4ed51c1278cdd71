"""Reports: what is wrong with a Service, or not as its owner may think, in words for people and a reason for machines.

The law: pure. A reason is one of a closed set, so that it may be a metric's label; names and addresses are in the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Why something is left out, or worth knowing."""

    UNREADABLE = "unreadable"
    NO_ADDRESS = "no-address"
    """The load balancer has not given any yet."""
    HOSTNAME = "hostname"
    """The load balancer has a name where an address is needed."""
    BAD_ADDRESS = "bad-address"
    PROTECTED_ADDRESS = "protected-address"
    """One that belongs to a node, or that the operator has kept out."""
    ADDRESS_TAKEN = "address-taken"
    """An older Service has it."""
    NO_ENDPOINT = "no-endpoint"
    """No pod is ready in the family of the address."""
    SEVERAL_ENDPOINTS = "several-endpoints"
    EGRESS_TAKEN = "egress-taken"
    """What the pod itself begins leaves with the address of an older Service."""
    ICMP_TAKEN = "icmp-taken"
    BAD_ANNOTATION = "bad-annotation"
    BAD_PORT = "bad-port"
    TARGET_PORT = "target-port"
    NO_PORTS = "no-ports"


NOTES: Final = frozenset({Reason.SEVERAL_ENDPOINTS, Reason.EGRESS_TAKEN, Reason.ICMP_TAKEN, Reason.TARGET_PORT})
"""With these nothing that was asked for is without a mapping."""


@dataclass(frozen=True, slots=True, order=True)
class Report:
    """One line about one Service."""

    service: str
    """NAMESPACE/NAME."""
    reason: Reason
    detail: str


def skipped(reports: Iterable[Report]) -> Counter[str]:
    """How many Services something is left out of, by reason."""
    pairs = {(report.service, str(report.reason)) for report in reports if report.reason not in NOTES}
    return Counter(reason for _, reason in pairs)

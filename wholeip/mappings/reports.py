"""Reports: problems of a Service and surprises for its owner, with a text for people and a reason for machines.

The law: the reasons are a fixed set, so that they can be a metric's label; names and addresses are in the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Why something is excluded, or worth knowing."""

    UNREADABLE = "unreadable"
    NO_ADDRESS = "no-address"
    """The load balancer has not assigned an address yet."""
    HOSTNAME = "hostname"
    """The load balancer has a name where an address is needed."""
    BAD_ADDRESS = "bad-address"
    PROTECTED_ADDRESS = "protected-address"
    """The address of a node or a pod, or one that the operator protects."""
    CLUSTER_ADDRESS = "cluster-address"
    """An address of the API server, of a Service inside the cluster, or in a network of the cluster."""
    NOT_ALLOWED = "not-allowed"
    """Outside the networks that the operator allows."""
    FOREIGN_ENDPOINT = "foreign-endpoint"
    """The endpoint is in no network of the cluster, or refers to no Pod of its namespace, so it is no pod."""
    ADDRESS_TAKEN = "address-taken"
    """An older Service has it."""
    NO_ENDPOINT = "no-endpoint"
    """No pod is ready in the family of the address."""
    SEVERAL_ENDPOINTS = "several-endpoints"
    EGRESS_TAKEN = "egress-taken"
    """Connections that the pod opens leave with the address of an older Service."""
    ICMP_TAKEN = "icmp-taken"
    BAD_ANNOTATION = "bad-annotation"
    BAD_PORT = "bad-port"
    TARGET_PORT = "target-port"
    NO_PORTS = "no-ports"


NOTES: Final = frozenset({Reason.SEVERAL_ENDPOINTS, Reason.EGRESS_TAKEN, Reason.ICMP_TAKEN, Reason.TARGET_PORT})
"""Reasons that exclude nothing: all that was asked for is mapped."""


@dataclass(frozen=True, slots=True, order=True)
class Report:
    """One line about one Service."""

    service: str
    """NAMESPACE/NAME."""
    reason: Reason
    detail: str
    other: str = ""
    """NAMESPACE/NAME of another Service that the detail names, if it excludes something."""


def skipped(reports: Iterable[Report]) -> Counter[str]:
    """The number of Services with something excluded, by reason."""
    pairs = {(report.service, str(report.reason)) for report in reports if report.reason not in NOTES}
    return Counter(reason for _, reason in pairs)

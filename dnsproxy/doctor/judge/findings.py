"""Findings: what a diagnosis says, as values that are printed or become JSON.

The law: a finding has a stable id, says what was seen, and what to type next. One cause is one finding, however many
hosts it has. What could not be looked at is no finding: it is neither good nor bad. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

import msgspec

from sidecar.values.errors import ExitStatus


class Severity(StrEnum):
    """How bad it is."""

    OK = "ok"
    INFO = "info"
    """Worth to know; nothing has to be done."""
    WARNING = "warning"
    """It may fail, or fails for some."""
    PROBLEM = "problem"
    """It fails."""


ORDER: Final = (Severity.PROBLEM, Severity.WARNING, Severity.INFO, Severity.OK)
"""The worst first."""


class Remedy(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to do."""

    text: str
    """Why, and what comes of it."""
    lines: tuple[str, ...] = ()
    """Commands to type, or YAML to put somewhere, as they are."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a diagnosis says."""

    id: str
    severity: Severity
    text: str
    """One sentence without its end."""
    about: str = ""
    """The object that it is about: `Service ingress-nginx/controller`."""
    evidence: tuple[str, ...] = ()
    steps: tuple[Remedy, ...] = ()
    """What to do, the best first; a later one is for whom the earlier ones do not suit."""
    hosts: tuple[str, ...] = ()


class Unseen(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that would have to be known and could not be looked at."""

    what: str
    why: str = ""
    steps: tuple[Remedy, ...] = ()
    matters: bool = True
    """Whether the diagnosis would be another one if it were known."""


class Diagnosis(msgspec.Struct, frozen=True):
    """All that there is to say."""

    findings: tuple[Finding, ...]
    unseen: tuple[Unseen, ...]
    verdict: str
    """One sentence without its end."""
    path: tuple[str, ...] = ()
    """Through what the connections of the asked host go, a line each; empty where all hosts were meant."""

    @property
    def status(self) -> int:
        """The exit status: 0 healthy, 1 findings, 3 could not look."""
        if any(finding.severity in (Severity.PROBLEM, Severity.WARNING) for finding in self.findings):
            return ExitStatus.NO
        return ExitStatus.UNKNOWN if any(one.matters for one in self.unseen) else ExitStatus.DONE


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, the worst first; within a severity in the order in which they came."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: ORDER.index(finding.severity)))


def format_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as JSON values; texts as the cluster has them."""
    return {
        "status": diagnosis.status,
        "verdict": diagnosis.verdict,
        "road": list(diagnosis.path),
        "findings": msgspec.to_builtins(diagnosis.findings),
        "unseen": msgspec.to_builtins(diagnosis.unseen),
    }


MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Where a host comes in.
        "host-unknown": "no Ingress or Gateway serves the host that was asked about",
        "no-hosts": "the cluster has no host at all",
        "no-road": "no Service of the cluster has the address in the status of the host's object",
        "no-public-record": "public DNS has no record of the host",
        "public-elsewhere": "public DNS leads the host elsewhere than to the load balancer",
        # The short circuit.
        "short-circuited": "pods never reach the load balancer, and the controller wants its header",
        "short-circuit-likely": "the same, as far as the load balancer's settings tell",
        "short-circuit-answered": "the same, and Switchback leads pods past it",
        "short-circuit-harmless": "pods never reach the load balancer, and are served all the same",
        "no-short-circuit": "pods reach the load balancer as everybody does",
        "ip-mode-ignored": "ipMode says Proxy, and kube-proxy or the CNI does not look at it",
        "reached": "a connection from a pod to the load balancer was answered",
        "balancer-unserved": "a connection from a pod to the load balancer fails, and no short circuit explains it",
        "nlb-loopback": "an AWS NLB that keeps the client's address drops connections back to their own node",
        "nlb-loopback-answered": "the same, and Switchback leads pods past it",
        "no-load-balancer": "the controller's Service has no load balancer",
        "no-loopback": "pods cannot reach the public address: no NAT loopback",
        "header-lost": "pods reach the controller by the public address, and without the header that it wants",
        # The PROXY header.
        "header-required": "the controller wants the PROXY header",
        "header-missing": "the controller wants the PROXY header, and the load balancer is not set to send it",
        "header-unwanted": "the load balancer sends the PROXY header, and the controller takes none",
        "header-from-outside": "the controller wants the PROXY header, which a proxy before the load balancer sends",
        "takes-both": "the controller takes connections with and without the PROXY header",
        "controller-dead": "nothing takes connections at the controller's Service",
        # The stanza and dnsproxy.
        "stanza-missing": "dnsproxy is deployed, and the cluster's DNS does not ask it",
        "stanza-damaged": "the stanza is not as it was written",
        "stanza-not-loaded": "the stanza is written, and the cluster's DNS does not use it",
        "stanza-address": "the stanza asks an address that is not dnsproxy's",
        "loaded": "the cluster's DNS asks dnsproxy",
        "node-local-bypass": "pods ask a cache on their node that never asks where the stanza stands",
        "dns-loop": "dnsproxy asks the cluster's DNS, which asks dnsproxy",
        "dnsproxy-missing": "the stanza leads to a Service that is not there",
        "dnsproxy-down": "no pod of dnsproxy is ready",
        "dnsproxy-silent": "dnsproxy does not answer where the stanza asks it",
        "dnsproxy-not-ready": "dnsproxy says that it is not ready",
        "table-stale": "dnsproxy has not heard of a source for minutes",
        "target-without-address": "names are forwarded because their target has no address",
        "upstream-unwell": "dnsproxy finds an upstream unwell",
        "not-answered": "the cluster's DNS asks dnsproxy, and still leads the host to the load balancer",
        # The relay.
        "relayed": "a connection through the relay was answered",
        "relay-missing": "there is no relay to lead pods to",
        "relay-down": "no pod of the relay is ready",
        "relay-unreachable": "the relay's Service takes no connection",
        "relay-unanswered": "connections through the relay are made and not answered",
        "relay-backend": "the relay says that it does not reach its backend",
        "relay-backend-other": "the relay leads to another controller than the one of the hosts",
        "relay-header-unwanted": "the controller behind the relay does not expect the PROXY header",
        "relay-not-trusted": "the controller does not believe the relay's header",
        "wrong-class": "hosts of a class that does not want the relay are led to it",
        # Whether any of it is needed.
        "not-needed": "no host needs Switchback",
        "no-longer-needed": "Switchback is installed, and no host needs it",
    }
)

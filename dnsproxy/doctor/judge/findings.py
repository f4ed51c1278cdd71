"""What a doctor's finding can be: the form of findings, and every id with its meaning.

The law: an id never changes its meaning, because scripts compare it, and every id is in MEANINGS. A finding holds what
was seen and what to type next. One cause is one finding, however many hosts it has. What could not be seen is an
Unseen, not a finding: it is neither good nor bad.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import cut

_LONGEST: Final = 1000
"""Characters of a sentence."""


class Severity(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    INFO = "info"
    """Good to know; nothing to do."""
    WARNING = "warning"
    """It may fail, or fails for some clients."""
    PROBLEM = "problem"
    """It fails."""


ORDER: Final = (Severity.PROBLEM, Severity.WARNING, Severity.INFO, Severity.OK)
"""The worst first."""


class Remedy(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to do."""

    text: str
    """What to do, why, and with which effect."""
    lines: tuple[str, ...] = ()
    """Commands or YAML, verbatim."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One statement of a diagnosis."""

    id: str
    severity: Severity
    text: str
    """One sentence without the final stop."""
    about: str = ""
    """The object that it is about: `Service ingress-nginx/controller`."""
    evidence: tuple[str, ...] = ()
    steps: tuple[Remedy, ...] = ()
    """Remedies, the best first; a later one is an alternative to the earlier ones."""
    hosts: tuple[str, ...] = ()


class Unseen(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that the diagnosis needs and that could not be seen."""

    what: str
    why: str = ""
    steps: tuple[Remedy, ...] = ()
    matters: bool = True
    """Whether knowing it could change the diagnosis."""


class Diagnosis(msgspec.Struct, frozen=True):
    """The result of a run."""

    findings: tuple[Finding, ...]
    unseen: tuple[Unseen, ...]
    verdict: str
    """One sentence without the final stop."""
    path: tuple[str, ...] = ()
    """The stations of the requested host's connections, one line each; empty for a diagnosis of all hosts."""

    @property
    def status(self) -> int:
        """The exit status: 0 healthy, 1 findings, 3 could not look."""
        if any(finding.severity in (Severity.PROBLEM, Severity.WARNING) for finding in self.findings):
            return ExitStatus.NO
        return ExitStatus.UNKNOWN if any(one.matters for one in self.unseen) else ExitStatus.DONE


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, the worst first, each once; within a severity in the given order."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: ORDER.index(finding.severity)))


def cut_texts(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with its sentences cut, into which settings and lists of others went; commands stay whole."""
    return Diagnosis(
        tuple(
            replace(
                one,
                text=_cut(one.text),
                about=_cut(one.about),
                evidence=tuple(map(_cut, one.evidence)),
                steps=_cut_steps(one.steps),
            )
            for one in diagnosis.findings
        ),
        tuple(
            replace(one, what=_cut(one.what), why=_cut(one.why), steps=_cut_steps(one.steps))
            for one in diagnosis.unseen
        ),
        _cut(diagnosis.verdict),
        tuple(map(_cut, diagnosis.path)),
    )


def _cut_steps(steps: tuple[Remedy, ...]) -> tuple[Remedy, ...]:
    return tuple(replace(one, text=_cut(one.text)) for one in steps)


def _cut(text: str) -> str:
    return cut(text, _LONGEST)


def format_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as JSON values; texts are not escaped."""
    return {
        "status": diagnosis.status,
        "verdict": diagnosis.verdict,
        "road": list(diagnosis.path),
        "findings": msgspec.to_builtins(diagnosis.findings),
        "unseen": msgspec.to_builtins(diagnosis.unseen),
    }


MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # The path of a host.
        "host-unknown": "no Ingress, Gateway or object of a followed source serves the requested host",
        "no-hosts": "no Ingress, Gateway or object of a followed source has a hostname",
        "no-road": "no Service of the cluster has the address in the status of the host's object",
        "no-record": "the cluster's DNS has no address for the host, so no pod reaches it",
        "answer-dead": "the cluster's DNS answers with an address that accepts no connection and is no load balancer's",
        "no-route": "the cluster's DNS answers only with addresses of a family that pods have no route for",
        "answer-unserved": "the cluster's DNS answers with an address that accepts connections, but serves no pod",
        "wrong-server": "the cluster's DNS leads to the Service of another controller, which answers otherwise",
        "server-error": "the host answers with an error of the server (5xx)",
        "certificate-unfit": "the certificate is not valid for the host, or not valid today",
        "no-public-record": "public DNS has no record of the host",
        "public-elsewhere": "public DNS resolves the host to another address than the load balancer's",
        # The short circuit.
        "short-circuited": "pods never reach the load balancer, and the controller requires its PROXY header",
        "short-circuit-likely": "the same, judged by the load balancer's settings alone",
        "short-circuit-answered": "the same, but Switchback gives pods an address that works",
        "short-circuit-harmless": "pods never reach the load balancer, and were seen to be served by the controller",
        "no-short-circuit": "statuses and settings show no short circuit; whether pods are served was not seen",
        "ip-mode-ignored": "ipMode is Proxy, but kube-proxy or the CNI ignores it",
        "ip-mode-harms": "ipMode is Proxy, but the load balancer passes packets on: clients in and outside are cut off",
        "ip-mode-not-applied": "a Service is selected for ipMode Proxy, and its status has another ipMode",
        "reached": "connections from a pod to all addresses that the cluster's DNS answers were answered",
        "balancer-unserved": "a connection from a pod to the load balancer fails, and no missing header explains it",
        "nlb-loopback": "an AWS NLB that preserves the client's address drops connections back to their own node",
        "nlb-loopback-answered": "the same, but Switchback gives pods an address that works",
        "no-load-balancer": "the controller's Service has no load balancer",
        "no-loopback": "pods cannot reach the public address: no NAT loopback",
        "header-lost": "pods reach the controller by the public address, but without the PROXY header that it requires",
        # The PROXY header.
        "header-required": "the controller requires the PROXY header",
        "header-missing": "the controller requires the PROXY header, and the load balancer is not set to send it",
        "header-unwanted": "the load balancer sends the PROXY header, and the controller rejects it",
        "header-from-outside": "the controller requires the PROXY header; a proxy before the load balancer sends it",
        "takes-both": "the controller accepts connections with and without the PROXY header",
        "controller-dead": "the controller's Service accepts no connection",
        "controller-silent": "the controller's Service accepts connections and answers none",
        # The stanza and dnsproxy.
        "stanza-missing": "dnsproxy is deployed, but the cluster's DNS does not ask it",
        "stanza-damaged": "the stanza is damaged: its markers or its contents were changed",
        "stanza-not-loaded": "the stanza is written, but the cluster's DNS does not use it",
        "stanza-address": "the stanza forwards to an address that is not dnsproxy's",
        "loaded": "the cluster's DNS asks dnsproxy",
        "node-local-bypass": "pods ask a cache on their node that bypasses the server with the stanza",
        "dns-loop": "dnsproxy asks the cluster's DNS, which asks dnsproxy",
        "dnsproxy-missing": "the stanza forwards to a Service that does not exist",
        "dnsproxy-down": "no pod of dnsproxy is ready",
        "dnsproxy-silent": "dnsproxy does not answer at the address in the stanza",
        "dnsproxy-not-ready": "dnsproxy reports that it is not ready",
        "table-stale": "dnsproxy had no contact with a source for minutes",
        "target-without-address": "names are forwarded because their target has no address or no ready endpoint",
        "upstream-unwell": "dnsproxy reports an unhealthy upstream",
        "upstreams-differ": "dnsproxy forwards other names to other upstreams than the cluster's DNS does without it",
        "not-answered": "the cluster's DNS asks dnsproxy, but still answers with the load balancer's address",
        "answered-before": "a line of others in the cluster's DNS answers the host before the stanza is asked",
        "line-answers": "a line of others in the cluster's DNS answers the host, and there is no stanza",
        "unknown-address": "many asked hosts lead to an address that no status names: your router's, or a CDN's",
        "wide-wildcard": "a wildcard of an object covers a whole registrable domain",
        # The relay.
        "relayed": "a connection through the relay was answered",
        "relay-missing": "the relay's Service does not exist",
        "relay-down": "no pod of the relay is ready",
        "relay-unreachable": "the relay's Service accepts no connection",
        "relay-unanswered": "connections through the relay open, but are not answered",
        "relay-backend": "the relay reports that it does not reach its backend",
        "relay-backend-other": "the relay routes to another controller than that of the hosts",
        "relay-header-unwanted": "the controller behind the relay rejects the PROXY header",
        "relay-not-trusted": "the controller does not trust the relay's PROXY header",
        "wrong-class": "the cluster's DNS answers with the relay for hosts of a class that must not use it",
        # Whether any of it is needed.
        "not-needed": "no host needs Switchback",
        "no-longer-needed": "Switchback is installed, but no host needs it",
    }
)

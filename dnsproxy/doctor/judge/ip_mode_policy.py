"""Our admission policy in a diagnosis: the Services that it selects, and those whose status does not show it.

The law: the annotation decides if there is one, else the classes that the policy names. A Service that is selected is
Proxy because its owner wants it, so that nothing here ever advises to remove the policy. Tested in
tests/dnsproxy/doctor/judge/test_ip_mode_policy.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dnsproxy.doctor.facts.model import Facts, Service
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity
from dnsproxy.doctor.judge.ip_mode_remedy import write_line

NAME: Final = "switchback-ip-mode"
"""Of the policy and of its binding."""
ANNOTATION: Final = "switchback.dev/ip-mode"
PROXY: Final = "Proxy"
"""The value that selects a Service, and the ipMode that it gets; any other value leaves the Service alone."""

CLASSES_VARIABLE: Final = "loadBalancerClasses"
"""The policy's variable that lists the classes."""


def is_selected(service: Service, facts: Facts) -> bool:
    """Whether a Service is to have `ipMode: Proxy` by us."""
    classes = facts.ip_mode_policy.classes if facts.ip_mode_policy is not None else ()
    by_class = bool(service.load_balancer_class) and service.load_balancer_class in classes
    return service.annotations.get(ANNOTATION, PROXY if by_class else "") == PROXY


def selected(facts: Facts) -> tuple[Service, ...]:
    """The Services that are to have it."""
    return tuple(service for service in facts.services if is_selected(service, facts))


def judge_policy(facts: Facts) -> Iterator[Finding]:
    """The selected Services whose status has another ipMode."""
    for service in selected(facts):
        left = [point.ip for point in service.points if point.ip and point.ip_mode != PROXY]
        if left:
            yield _not_applied(service, left, facts)


def _not_applied(service: Service, left: list[str], facts: Facts) -> Finding:
    text = f"Service {service.key} is selected for `ipMode: {PROXY}`, but its status has another ipMode"
    evidence = (
        f"status.loadBalancer.ingress of Service {service.key} has {', '.join(left)} without ipMode {PROXY}",
        _policy(facts),
    )
    step = Remedy(
        "write the policy, and the status anew; the command says what hinders it", (write_line(service, facts),)
    )
    return Finding("ip-mode-not-applied", Severity.WARNING, text, f"Service {service.key}", evidence, (step,))


def _policy(facts: Facts) -> str:
    policy = facts.ip_mode_policy
    if policy is None or policy.found is None:
        return f"whether the policy {NAME} exists is not known"
    if policy.found and policy.bound is False:
        return f"the policy {NAME} exists without its binding, so that it changes nothing"
    if policy.found:
        return f"the policy {NAME} exists: it changes a status only while somebody writes it"
    return f"the policy {NAME} does not exist, so nothing changes what the provider writes, unless --watch runs"

"""A controller: one Service with everything that is known about it, and whether pods fail there.

The law: a connection that was tried overrides what was derived from settings. A pod fails if its connection is
short-circuited and the controller requires the PROXY header; if one of the two is unknown, the result is unknown.
Tested in tests/dnsproxy/doctor/judge/test_controller_findings.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.facts.probes import Outcome, Probe, Role
from dnsproxy.doctor.judge.header_annotations import Sends
from dnsproxy.doctor.judge.header_mode import (
    HeaderMode,
    declared,
    header_mode_of,
    is_understood,
    overall,
    usable_probes,
)
from dnsproxy.doctor.judge.paths import Path
from dnsproxy.doctor.judge.providers import AWS, Provider, provider_of, sends
from dnsproxy.doctor.judge.short_circuit import Answer, DataPlane, ShortCircuit, data_plane, short_circuit

_BROKEN: Final = frozenset([Outcome.CLOSED, Outcome.RESET, Outcome.BAD_REQUEST, Outcome.SILENT, Outcome.GARBAGE])
_BETA: Final = "service.beta.kubernetes.io/aws-load-balancer-"


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller's Service with everything that is known about it."""

    path: Path
    provider: Provider
    plane: DataPlane
    short: ShortCircuit
    sends: Sends
    header_mode: HeaderMode
    declared: bool
    """Whether `header_mode` comes from the controller's settings, because probes did not show it."""
    controller_probes: tuple[Probe, ...]
    balancer_probes: tuple[Probe, ...]

    @property
    def about(self) -> str:
        """The object, for display."""
        return f"Service {self.path.service.key}"

    @property
    def needs_header(self) -> Answer:
        """Whether the controller requires the PROXY header."""
        if self.header_mode is HeaderMode.REQUIRES:
            return Answer.YES
        if self.header_mode in (HeaderMode.ACCEPTS, HeaderMode.REJECTS):
            return Answer.NO
        # With a load balancer that sends no header, a controller that requires one would serve no client at all.
        return Answer.NO if self.sends is Sends.NO and not self.provider.never_sends else Answer.UNKNOWN

    @property
    def reached(self) -> Answer:
        """Whether a bare connection to the load balancer's address was answered."""
        if not self.balancer_probes:
            return Answer.UNKNOWN
        return Answer.YES if all(map(is_understood, self.balancer_probes)) else Answer.NO

    @property
    def broken(self) -> bool:
        """Whether a bare connection to it was opened and then not answered, as without a required header."""
        return any(probe.outcome in _BROKEN for probe in self.balancer_probes)

    @property
    def affected(self) -> Answer:
        """Whether pods that dial the load balancer's address fail."""
        if self.reached is Answer.YES or self.short.state is Answer.NO:
            return Answer.NO
        if self.needs_header is Answer.NO:
            return Answer.NO
        if self.broken and self.needs_header is Answer.YES:
            return Answer.YES
        if self.short.state is Answer.YES and self.needs_header is Answer.YES:
            return Answer.YES
        return Answer.UNKNOWN

    @property
    def loops_back(self) -> bool:
        """Whether it is an AWS NLB that may return a connection to the node that it came from."""
        return self.provider is AWS and _is_nlb(self) and _keeps_client(self)


def make_controller(path: Path, facts: Facts) -> Controller:
    """The controller of one path."""
    service = path.service
    plane = data_plane(facts)
    provider = provider_of(service, facts.provider)
    probes = tuple(probe for probe in usable_probes(facts.probes) if probe.service == service.key)
    controller = tuple(probe for probe in probes if probe.role is Role.CONTROLLER)
    header_mode = overall([header_mode_of(of_port) for of_port in _by_port(controller)])
    said = declared(service)
    use_declared = header_mode is HeaderMode.UNKNOWN and said is not HeaderMode.UNKNOWN
    return Controller(
        path,
        provider,
        plane,
        short_circuit(service, plane),
        sends(provider, service.annotations),
        said if use_declared else header_mode,
        use_declared,
        controller,
        tuple(probe for probe in probes if probe.role is Role.BALANCER),
    )


def _by_port(probes: tuple[Probe, ...]) -> list[list[Probe]]:
    ports: dict[tuple[str, bool], list[Probe]] = {}
    for probe in probes:
        ports.setdefault((probe.endpoint, probe.tls), []).append(probe)
    return list(ports.values())


def _is_nlb(controller: Controller) -> bool:
    service = controller.path.service
    kind = service.annotations.get(f"{_BETA}type", "")
    return kind in ("nlb", "nlb-ip", "external") or service.load_balancer_class.startswith(AWS.classes)


def _keeps_client(controller: Controller) -> bool:
    """Whether targets see the client's own address: yes by default for instance targets, no for IP targets of TCP.

    https://docs.aws.amazon.com/elasticloadbalancing/latest/network/edit-target-group-attributes.html
    """
    annotations = controller.path.service.annotations
    attributes = annotations.get(f"{_BETA}target-group-attributes", "").replace(" ", "")
    if "preserve_client_ip.enabled=" in attributes:
        return "preserve_client_ip.enabled=true" in attributes
    by_ip = annotations.get(f"{_BETA}nlb-target-type") == "ip" or annotations.get(f"{_BETA}type") == "nlb-ip"
    return not by_ip

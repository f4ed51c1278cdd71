"""The findings about the PROXY header at one controller: what it wants, compared with what the load balancer sends.

The law: at most one finding for a controller; a controller that answers no connection is reported here, once, for all
its hosts. Tested in tests/dnsproxy/doctor/judge/test_controller_findings.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from dnsproxy.doctor.judge.controller import Controller
from dnsproxy.doctor.judge.cures import mend, target_line
from dnsproxy.doctor.judge.declared_header import trusts_by_source
from dnsproxy.doctor.judge.failing_ways import controller_evidence
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity
from dnsproxy.doctor.judge.header_annotations import Sends
from dnsproxy.doctor.judge.header_mode import HeaderMode, versions_of
from dnsproxy.doctor.judge.header_settings import turn_off, turn_on
from dnsproxy.doctor.judge.remedies import header_on
from dnsproxy.doctor.judge.short_circuit import Answer


def judge_header(controller: Controller, *, served: bool, needed: bool = True) -> Iterator[Finding]:
    """The controller's header mode compared with what the load balancer sends.

    `served`: a connection through the load balancer was answered, which refutes what its settings say; `needed`: some
    of its hosts were not seen to be served, so that a controller that is down matters.
    """
    # A short-circuited connection says nothing about the load balancer, unless the controller requires the header.
    down = Severity.PROBLEM if needed else Severity.INFO
    seen = served and controller.short.state is Answer.NO
    said = f"the load balancer of {controller.provider.name} {controller.sends.value}"
    if controller.header_mode is HeaderMode.DEAD:
        text = "the controller's Service accepts no connection"
        yield _of_header(controller, "controller-dead", down, text, (mend(controller),))
    elif controller.header_mode is HeaderMode.SILENT:
        text = "the controller's Service accepts connections and answers none, with and without the PROXY header"
        yield _of_header(controller, "controller-silent", down, text, (mend(controller),))
    elif controller.header_mode is HeaderMode.REJECTS and controller.sends is Sends.YES and not seen:
        # The load balancer may be among the trusted sources, and the prober is not.
        if trusts_by_source(controller.path.service):
            return
        text = f"{said}, but the controller rejects it: all clients get 400"
        yield _of_header(controller, "header-unwanted", Severity.PROBLEM, text, (_accept_header(controller),))
    elif controller.header_mode is HeaderMode.REQUIRES and controller.sends is Sends.NO and not served:
        yield _missing(controller, said)
    elif controller.header_mode is HeaderMode.ACCEPTS:
        text = "the controller accepts connections with and without the PROXY header: pods need no relay for it"
        lines = (target_line(controller.path.ingress_class, controller.key),)
        step = Remedy("if Switchback answers its hosts, answer with its Service directly", lines)
        yield _of_header(controller, "takes-both", Severity.INFO, text, (step,))
    elif controller.header_mode is HeaderMode.REQUIRES:
        versions = " and ".join(versions_of(controller.probes))
        text = f"the controller requires the PROXY header{f' ({versions} understood)' if versions else ''}"
        yield _of_header(controller, "header-required", Severity.OK, text)


def _missing(controller: Controller, said: str) -> Finding:
    if controller.provider.never_sends:
        note = controller.provider.note
        text = f"the controller requires the PROXY header; {f'{controller.provider.name}: {note}' if note else said}"
        return _of_header(controller, "header-from-outside", Severity.INFO, text)
    text = f"{said}, but the controller requires it: no client from outside is served"
    steps = (
        header_on(controller.path.service, controller.provider),
        Remedy(f"or turn it off at the controller; {turn_off(controller.path.service)}"),
    )
    return _of_header(controller, "header-missing", Severity.PROBLEM, text, steps)


def _accept_header(controller: Controller) -> Remedy:
    service = controller.path.service
    where = f", in {service.settings_from}" if service.settings_from else ""
    return Remedy(f"turn the header on at the controller; {turn_on(service)}{where}")


def _of_header(
    controller: Controller, ident: str, severity: Severity, text: str, steps: tuple[Remedy, ...] = ()
) -> Finding:
    evidence = (
        *controller_evidence(controller),
        f"the load balancer of {controller.provider.name} {controller.sends.value}",
    )
    return Finding(ident, severity, text, controller.about, evidence, steps, controller.path.hostnames)

"""Cures: what makes the hosts of a failing group reachable, by what their controller was seen to take.

The law: a relay is recommended only for a controller that requires the PROXY header. A controller that takes bare
connections is answered with its own Service; a controller that answers no connection needs mending, not an address.
Tested in tests/dnsproxy/doctor/judge/test_cures.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.facts.probes import Header
from dnsproxy.doctor.judge.controller import Controller
from dnsproxy.doctor.judge.findings import Remedy
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.doctor.judge.host_groups import HostGroup
from dnsproxy.doctor.judge.installation import is_automatic
from dnsproxy.doctor.judge.ip_mode_remedy import judge_with, why_not
from dnsproxy.doctor.judge.remedies import install_lines, install_step, probe_by_hand, provider_remedies, quoted
from dnsproxy.doctor.judge.short_circuit import Answer

_NO_CLASS: Final = "CLASS"
_BALANCER: Final = "LoadBalancer"


def cures(
    group: HostGroup,
    controllers: tuple[Controller, ...],
    facts: Facts,
    *,
    short: bool = False,
    ports: Iterable[int] = (),
) -> tuple[Remedy, ...]:
    """The remedies, the best first.

    `short`: whether the failing address is a short-circuited load balancer's; `ports`: those that fail, or all.
    """
    if not controllers:
        return (_name_controller(),)
    one = controllers[0].at(ports)
    at_balancer: tuple[Remedy, ...] = ()
    if short:
        service = one.path.service
        ignored = bool(one.short.ignored)
        at_balancer = provider_remedies(service, one.provider, one.plane, facts, group.sample, ignored=ignored)
    return (*at_balancer, *past_the_balancer(group, one, facts))


def why_no_policy(controllers: Iterable[Controller], facts: Facts) -> Iterator[str]:
    """Why our policy is not among the remedies for short-circuited controllers, a line for each reason."""
    for one in controllers:
        service = one.path.service
        judgement = judge_with(facts, service, one.provider, one.plane)
        reason = "" if one.short.ignored else why_not(judgement)
        if reason:
            yield f"`ipMode: Proxy` by a policy is not offered for {one.about}: {reason}"


def past_the_balancer(group: HostGroup, controller: Controller, facts: Facts) -> Iterator[Remedy]:
    """How the names can lead past the load balancer."""
    if controller.is_down:
        yield mend(controller)
    elif controller.lacks_tls:
        yield _keep_balancer(controller)
    elif controller.takes_bare:
        yield lead_to_service(group, controller, facts)
    elif controller.header_mode is HeaderMode.REQUIRES:
        yield _install(controller, facts)
    elif controller.refused_header:
        yield _read_log(controller)
    else:
        yield find_out(group, controller)
        yield _install(controller, facts, condition="if it requires the header, ")


def _install(controller: Controller, facts: Facts, *, condition: str = "") -> Remedy:
    """The installation, which steers the names of this controller by itself if pods are short-circuited to it."""
    step = install_step(facts, condition=condition)
    if controller.path.service.type == _BALANCER and controller.short.state is not Answer.NO:
        return step
    own = "write a route Service for it (deploy/README.md): operate steers only short-circuited load balancers"
    return Remedy(f"{step.text}; {own}", step.lines)


def mend(controller: Controller) -> Remedy:
    """A look at the pods of a controller that answers no connection."""
    namespace, _ = quoted(controller.key)
    line = f"kubectl -n {namespace} get endpointslices,pods"
    return Remedy("see whether the controller's pods are ready: no address can replace a living controller", (line,))


def _read_log(controller: Controller) -> Remedy:
    """A controller that answers 400 with and without the header: no address and no relay changes that."""
    namespace, _ = quoted(controller.key)
    text = "see what the controller logs: it answers 400 at its own Service, with and without the PROXY header"
    return Remedy(text, (f"kubectl -n {namespace} get pods",))


def _keep_balancer(controller: Controller) -> Remedy:
    """Neither a relay nor the controller's Service can take over from a load balancer that ends TLS."""
    return Remedy(
        f"the port for TLS of {controller.about} answers a handshake in plain text, so TLS ends at its load balancer: "
        "no address past it serves https. Let pods reach the load balancer, or let the controller end TLS"
    )


def lead_to_service(group: HostGroup, controller: Controller, facts: Facts) -> Remedy:
    """Dnsproxy without a relay: the answer is the controller's own Service."""
    text = (
        "answer the names with the controller's own Service, which takes connections without the PROXY header: no "
        "relay is needed"
    )
    line = target_line(class_of(group, controller), controller.key)
    if facts.dnsproxy is None or not facts.dnsproxy.found:
        # Names of a controller that takes bare connections are otherwise left as they are.
        text += "; write the setting into dnsproxy-settings before you deploy (deploy/README.md)"
        return Remedy(text, (line, *install_lines(facts)))
    asked = is_automatic(facts.dnsproxy) or (bool(facts.loaded) and {one.state for one in facts.loaded} == {"yes"})
    return Remedy(text, (line,) if asked else (line, "dnsproxy install"))


def target_line(ingress_class: str, key: str) -> str:
    """The setting that answers the hosts of a class with a Service; of dnsproxy-settings, deploy/README.md."""
    if ingress_class == _NO_CLASS:
        return f"DNSPROXY_TARGET=service:{key}"
    return f"DNSPROXY_TARGET_FOR={ingress_class}=service:{key}"


def class_of(group: HostGroup, controller: Controller) -> str:
    """The class of those hosts of a group that enter through a controller, as a flag takes it."""
    own = (host.ingress_class for host in group.hosts if host in controller.path.hosts)
    return next((name for name in own if name), controller.path.ingress_class)


def find_out(group: HostGroup, controller: Controller) -> Remedy:
    """How to see by hand whether the controller requires the header."""
    lines = tuple(probe_by_hand(controller.path.service, group.sample, header) for header in (Header.PLAIN, Header.V1))
    return Remedy("ask by hand, once without and once with the header; 000 means no answer", lines)


def _name_controller() -> Remedy:
    return Remedy(
        "no Service of the cluster was found for these hosts: find that of their controller, to answer with it",
        ("kubectl get ingressclasses,gatewayclasses", "kubectl get services --all-namespaces"),
    )

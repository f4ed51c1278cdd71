"""Cures: what makes the hosts of a failing group reachable, by what their controller was seen to take.

The law: a relay is recommended only for a controller that requires the PROXY header. A controller that takes bare
connections is answered with its own Service; a controller that answers no connection needs mending, not an address.
Tested in tests/dnsproxy/doctor/judge/test_cures.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.facts.probes import Header
from dnsproxy.doctor.judge.controller import Controller
from dnsproxy.doctor.judge.findings import Remedy
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.doctor.judge.host_groups import HostGroup
from dnsproxy.doctor.judge.ip_mode_remedy import judge_with, why_not
from dnsproxy.doctor.judge.overlays import backend
from dnsproxy.doctor.judge.remedies import (
    deploy_line,
    install_step,
    probe_by_hand,
    provider_remedies,
    quoted,
)
from dnsproxy.doctor.judge.web_ports import web_ports

_NO_CLASS: Final = "CLASS"
RELAY_PORTS: Final[Mapping[int, int]] = MappingProxyType({80: 8080, 443: 8443})
"""Where the relay of deploy/ listens for the ports of its Service."""


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
        yield _install(group, controller, facts)
        yield from _mixed(controller)
    elif controller.refused_header:
        yield _read_log(controller)
    else:
        yield find_out(group, controller)
        yield _install(group, controller, facts, condition="if it requires the header, ")


def _install(group: HostGroup, controller: Controller, facts: Facts, *, condition: str = "") -> Remedy:
    """The installation with the settings that it needs for this controller, and that keep other classes as they are."""
    step = install_step(facts, controller.provider, condition=condition)
    if step.lines[0] != deploy_line(facts, controller.provider):
        return step
    needed = (*_limit(group, controller, facts), *_backend(controller, facts))
    text = f"{step.text}; {' and '.join(why for why, _ in needed)} (deploy/README.md)" if needed else step.text
    return Remedy(text, (*(line for _, line in needed), *step.lines))


def _limit(group: HostGroup, controller: Controller, facts: Facts) -> Iterator[tuple[str, str]]:
    """Without it, the hosts of other controllers would be led to the relay too."""
    own = {host.ingress_class for host in controller.path.hosts}
    name = class_of(group, controller)
    if name != _NO_CLASS and any(host.ingress_class not in own for host in facts.hosts):
        by_gateway = not any(host.origin.startswith("Ingress ") for host in group.hosts if host.ingress_class == name)
        key = "DNSPROXY_GATEWAY_CLASS" if by_gateway else "DNSPROXY_INGRESS_CLASS"
        yield "first limit it to the classes that need it", f"{key}={name}"


def _backend(controller: Controller, facts: Facts) -> Iterator[tuple[str, str]]:
    if controller.key != backend(facts, controller.provider):
        yield "give the relay the routes to this controller", route_line(controller)


def _mixed(controller: Controller) -> Iterator[Remedy]:
    """The relay's route of a port that rejects the header, if another port requires it."""
    bare = sorted(port for port, mode in controller.modes.items() if mode is HeaderMode.REJECTS)
    if bare:
        ports = ", ".join(map(str, bare))
        yield Remedy(f"port {ports} rejects the header: give its route of the relay none", (route_line(controller),))


def route_line(controller: Controller) -> str:
    """The setting that leads a relay to a controller's Service; of relay-settings, deploy/README.md."""
    namespace, _, name = controller.key.partition("/")
    modes = controller.modes or dict.fromkeys(
        (port for port, _ in web_ports(controller.path.service.ports)), controller.header_mode
    )
    routes = " ".join(
        f"{RELAY_PORTS.get(port, port)}={name}.{namespace}.svc:{port}"
        + (",proxy-protocol=none" if mode is HeaderMode.REJECTS else "")
        for port, mode in sorted(modes.items())
    )
    return f"PROXY_ROUTE={routes}"


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
        # Without the setting, the deployment would lead the names to the relay.
        text += "; write the setting into dnsproxy-settings before you deploy (deploy/README.md)"
        limits = tuple(limit for _, limit in _limit(group, controller, facts))
        return Remedy(text, (line, *limits, deploy_line(facts, controller.provider), "dnsproxy install"))
    asked = bool(facts.loaded) and {one.state for one in facts.loaded} == {"yes"}
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

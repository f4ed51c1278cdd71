"""Judging the relay: whether it is there, reaches its controller, the right one, and is believed by it.

The law: a connection through the relay that was answered settles all but who is believed; without one, what is written
down is compared. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_address, ip_network
from typing import Final

from dnsproxy.doctor.facts.model import Facts, OwnService, Service
from dnsproxy.doctor.facts.probes import Outcome, Probe, Role
from dnsproxy.doctor.judge.controller import Controller
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity
from dnsproxy.doctor.judge.header_mode import HeaderMode, describe, is_understood, that_reached
from dnsproxy.doctor.judge.remedies import deploy_line, quoted

TRUST_KEYS: Final = ("proxy-real-ip-cidr", "proxy-protocol", "trusted-ips")
"""Settings of controllers that list whose headers are believed."""
_ROUTES: Final = "PROXY_ROUTE"


def judge_relay(facts: Facts, controllers: Sequence[Controller], *, used: bool) -> Iterator[Finding]:
    """All that is to say about the relay; `used`: the stanza is written, so pods are led to it."""
    part = facts.relay
    if part is None or part.found is None:
        return
    if not part.found:
        if used:
            yield _missing(part, deploy_line(facts))
        return
    behind = [controller for controller in controllers if leads_to(part, controller.path.service)]
    wanting = [controller for controller in controllers if controller.header_mode is HeaderMode.REQUIRES]
    probes = tuple(probe for probe in that_reached(facts.probes) if probe.role is Role.RELAY)
    namespace, name = quoted(part.key)
    if part.ready == 0:
        text = f"no pod of Service {part.key} is ready, so connections to it are refused"
        lines = (f"kubectl -n {namespace} get pods", f"kubectl -n {namespace} logs deploy/{name} --tail=50")
        yield _finding("relay-down", text, (), (Remedy("see why", lines),))
    elif bad := [page for page in facts.admin if page.program == "relay" and page.ready is False]:
        text = f"the relay does not reach its backend: {bad[0].text}"
        yield _finding("relay-backend", text, _routes(part), (_name_backend(part, wanting),))
    elif part.settings.get(_ROUTES) and wanting and not behind:
        text = "the relay leads to a controller that is not the one of the hosts that need it"
        evidence = (
            *_routes(part),
            f"the hosts come in through {', '.join(controller.about for controller in wanting)}",
        )
        yield _finding("relay-backend-other", text, evidence, (_name_backend(part, wanting),))
    elif any(not is_understood(probe) for probe in probes):
        yield _refused(part, probes)
    elif probes:
        text = "a connection through the relay is answered by the controller"
        yield Finding("relayed", Severity.OK, text, f"Service {part.key}", describe(probes))
    for controller in behind or wanting:
        yield from _judge_trust(part, controller.path.service)


def leads_to(part: OwnService, service: Service) -> bool:
    """Whether a route of the relay has this Service, or one of its addresses, for a backend."""
    namespace, _, name = service.key.partition("/")
    wanted = {f"service:{service.key}", f"{name}.{namespace}", *service.cluster_ips}
    return any(
        backend in wanted or backend.startswith(f"{name}.{namespace}.")
        for backend in _backends(part.settings.get(_ROUTES, ""))
    )


def _backends(routes: str) -> Iterator[str]:
    """`8080=a.b.svc:80,proxy-protocol=v2 8443=[2001:db8::1]:443` has the backends a.b.svc and 2001:db8::1."""
    for route in routes.split():
        yield route.partition("=")[2].partition(",")[0].rpartition(":")[0].strip("[]").removesuffix(".")


def _missing(part: OwnService, deploy: str) -> Finding:
    text = f"the stanza is written, and there is no Service {part.key} to lead pods to"
    steps = (
        Remedy("deploy the relay", (deploy,)),
        Remedy("or, where it has another name, say so", ("dnsproxy doctor --relay NAMESPACE/NAME",)),
        Remedy("or take the stanza out", ("dnsproxy uninstall",)),
    )
    return _finding("relay-missing", text, (), steps, severity=Severity.WARNING)


def _refused(part: OwnService, probes: Sequence[Probe]) -> Finding:
    outcomes = {probe.outcome for probe in probes if not is_understood(probe)}
    if outcomes <= {Outcome.UNREACHABLE, Outcome.REFUSED}:
        text = "the relay's Service takes no connection"
        lines = (f"kubectl -n {quoted(part.key)[0]} get endpointslices,networkpolicies",)
        return _finding("relay-unreachable", text, describe(probes), (Remedy("see what is in the way", lines),))
    # Behind TLS a 400 comes as plain text in place of a handshake.
    if outcomes <= {Outcome.BAD_REQUEST, Outcome.GARBAGE}:
        text = "the controller behind the relay answers 400: it does not expect the PROXY header that the relay sends"
        steps = (
            Remedy("have it expect the header; ingress-nginx", ('use-proxy-protocol: "true"',)),
            Remedy("or, where no load balancer sends it either, take Switchback out", ("dnsproxy uninstall",)),
        )
        return _finding("relay-header-unwanted", text, describe(probes), steps)
    text = "connections through the relay are made and then not answered: its backend refuses them, or their header"
    namespace, name = quoted(part.key)
    lines = (f"kubectl -n {namespace} logs deploy/{name} --tail=50",)
    return _finding("relay-unanswered", text, describe(probes), (Remedy("see what it says of its backend", lines),))


def _judge_trust(part: OwnService, service: Service) -> Iterator[Finding]:
    """Whether the controller takes the client's address from a header that a pod of the relay sent."""
    for key in TRUST_KEYS:
        text = service.settings.get(key, "")
        networks = parse_networks(text)
        if not networks:
            continue
        strangers = tuple(pod for pod in part.pods if not is_within(pod, networks))
        if strangers:
            told = (
                f"the controller does not believe the relay's header: {key} of {service.settings_from} lacks the "
                "network of its pods, so every client has the relay's address in logs and limits"
            )
            evidence = (f"{key}: {text}", f"pods of the relay: {', '.join(strangers)}")
            line = f'{key}: "{text.strip()},{network_of(strangers[0])}"'
            step = Remedy(
                "add the network that your cluster takes pod addresses from; of these pods it may be", (line,)
            )
            yield _finding("relay-not-trusted", told, evidence, (step,), severity=Severity.WARNING)


def parse_networks(text: str) -> tuple[str, ...]:
    """The networks in a list with commas or blanks between them; what is none is left out."""
    found = []
    for part in text.replace(",", " ").split():
        try:
            found.append(str(ip_network(part, strict=False)))
        except ValueError:
            continue
    return tuple(found)


def is_within(address: str, networks: Sequence[str]) -> bool:
    """Whether an address lies in one of the networks; what is no address lies in none."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return any(found in ip_network(network) for network in networks)


def network_of(address: str) -> str:
    """A network as clusters have for their pods: /16, or /56 of IPv6."""
    try:
        bits = 16 if ip_address(address).version == 4 else 56  # noqa: PLR2004  # as in IPv4
        return str(ip_network(f"{address}/{bits}", strict=False))
    except ValueError:
        return address


def _name_backend(part: OwnService, wanting: Sequence[Controller]) -> Remedy:
    service = wanting[0].path.service.key if wanting else "NAMESPACE/NAME"
    namespace, _, name = service.partition("/")
    ports = [port.port for port in wanting[0].path.service.ports][:2] if wanting else [80, 443]
    listening = [route.partition("=")[0] for route in part.settings.get(_ROUTES, "8080= 8443=").split()]
    pairs = " ".join(f"{own}={name}.{namespace}.svc:{port}" for own, port in zip(listening, ports, strict=False))
    return Remedy("name the controller's Service in the relay's settings", (f"{_ROUTES}={pairs}",))


def _routes(part: OwnService) -> tuple[str, ...]:
    return (f"{_ROUTES}={part.settings[_ROUTES]}",) if part.settings.get(_ROUTES) else ()


def _finding(
    ident: str, text: str, evidence: tuple[str, ...], steps: tuple[Remedy, ...], severity: Severity = Severity.PROBLEM
) -> Finding:
    return Finding(ident, severity, text, "Switchback's relay", evidence, steps)

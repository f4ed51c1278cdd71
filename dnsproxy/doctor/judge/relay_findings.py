"""The findings about the relay: whether it runs, reaches the right controller, and is trusted by it.

The law: an answered connection through the relay proves everything but the trust; without one, settings are compared.
Tested in tests/dnsproxy/doctor/judge/test_diagnose.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address, ip_network
from typing import Final

from dnsproxy.doctor.facts.model import Admin, Facts, OwnService, Service
from dnsproxy.doctor.facts.probes import Header, Outcome, Probe
from dnsproxy.doctor.judge.controller import Controller
from dnsproxy.doctor.judge.cures import target_line
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity
from dnsproxy.doctor.judge.header_annotations import Sends
from dnsproxy.doctor.judge.header_mode import HeaderMode, describe, is_understood, usable_probes
from dnsproxy.doctor.judge.paths import normalize_address
from dnsproxy.doctor.judge.remedies import STATUS, UNINSTALL, deploy_line, quoted

TRUST_KEYS: Final = ("proxy-real-ip-cidr", "proxy-protocol", "trusted-ips")
"""Settings of controllers that list the networks whose headers they trust."""
_ROUTES: Final = "PROXY_ROUTE"
_REFUSES_STRANGERS: Final = "kubernetes-ingress"
"""The controller of HAProxy Technologies expects no header from other networks: to it, the header is a bad request."""
_FAILING: Final = re.compile(r"backend unreachable \([a-z-]+\): (\S+):[^\s:]+: ")
"""The host of each failing backend in the answer of the relay's /readyz."""


def judge_relay(facts: Facts, controllers: Sequence[Controller], *, used: bool, asked: bool) -> Iterator[Finding]:
    """The findings about the relay.

    `used`: the stanza is written; `asked`: the cluster's DNS leads hosts to the relay.
    """
    part = facts.relay
    if part is None or part.found is None:
        return
    if not part.found:
        if used:
            yield _missing(part, deploy_line(facts))
        return
    routed = [controller for controller in controllers if routes_to(part, controller.path.service)]
    requiring = [controller for controller in controllers if controller.header_mode is HeaderMode.REQUIRES]
    own = frozenset(map(normalize_address, part.addresses))
    dialled = (probe for probe in usable_probes(facts.probes) if normalize_address(probe.address) in own)
    probes = tuple(probe for probe in dialled if probe.header is Header.PLAIN)
    namespace, name = quoted(part.key)
    if part.ready == 0:
        effect = "names that lead to it are forwarded" if part.routes else "connections to it are refused"
        text = f"no pod of {_about(part)} is ready, so {effect}"
        lines = (f"kubectl -n {namespace} get pods", f"kubectl -n {namespace} logs deploy/{name} --tail=50")
        yield _finding("relay-down", text, (), (Remedy("see why", lines),))
    elif bad := [page for page in facts.admin if page.program == "relay" and page.ready is False]:
        text = f"the relay does not reach its backend: {_reason(bad[0])}"
        yield _finding("relay-backend", text, _routes(part), (_name_backend(part, requiring),))
    elif part.settings.get(_ROUTES) and not part.routes and requiring and not routed:
        text = "the relay routes to another controller than that of the hosts that need it"
        evidence = (
            *_routes(part),
            f"the hosts enter through {', '.join(controller.about for controller in requiring)}",
        )
        yield _finding("relay-backend-other", text, evidence, (_name_backend(part, requiring),))
    elif any(not is_understood(probe) for probe in probes):
        if asked:
            yield _refused(part, probes, routed or controllers)
    elif probes:
        text = "a connection through the relay is answered by the controller"
        yield Finding("relayed", Severity.OK, text, _about(part), describe(probes))
    yield from _judge_failing_route(facts, part, requiring)
    for controller in routed or requiring:
        yield from _judge_trust(part, controller.path.service)


def has_routes(part: OwnService) -> bool:
    """Whether it is known where the relay routes to."""
    return bool(part.routes or part.settings.get(_ROUTES))


def routes_to(part: OwnService, service: Service, addresses: Iterable[str] = ()) -> bool:
    """Whether this Service, or one of its addresses, is the backend of one of the relay's routes.

    `addresses`: only the routes behind one of these count, where each has its own.
    """
    wanted = set(map(normalize_address, addresses))
    counted = (one for one in part.routes if not wanted or wanted.intersection(map(normalize_address, one.addresses)))
    if any(one.backend == service.key for one in counted):
        return True
    return any(_is_backend(one, service) for one in _backends(part.settings.get(_ROUTES, "")))


def _about(part: OwnService) -> str:
    return "the relay" if part.routes else f"Service {part.key}"


def _is_backend(host: str, service: Service) -> bool:
    namespace, _, name = service.key.partition("/")
    wanted = {f"service:{service.key}", f"{name}.{namespace}", *service.cluster_ips}
    return host in wanted or host.startswith(f"{name}.{namespace}.")


def _backends(routes: str) -> Iterator[str]:
    """`8080=a.b.svc:80,proxy-protocol=v2 8443=[2001:db8::1]:443` has the backends a.b.svc and 2001:db8::1."""
    for route in routes.split():
        yield route.partition("=")[2].partition(",")[0].rpartition(":")[0].strip("[]").removesuffix(".")


def _judge_failing_route(facts: Facts, part: OwnService, requiring: Sequence[Controller]) -> Iterator[Finding]:
    """A relay is ready while one of its routes works; its answer names the backends of the others."""
    for page in facts.admin:
        if page.program == "relay" and page.ready and (failing := _FAILING.findall(_reason(page))):
            needed = any(_is_backend(host.strip("[]"), one.path.service) for host in failing for one in requiring)
            text = f"the relay does not reach the backend of a route: {_reason(page)}"
            severity = Severity.PROBLEM if needed else Severity.WARNING
            yield _finding("relay-backend", text, _routes(part), (_see_log(part),), severity=severity)
            return


def _reason(page: Admin) -> str:
    """The first line of /readyz; a relay that follows Services has a line for each route below it."""
    return page.text.partition("\n")[0]


def _missing(part: OwnService, deploy: str) -> Finding:
    text = f"the stanza is written, but the relay's Service {part.key} does not exist"
    steps = (
        Remedy("deploy the relay", (deploy,)),
        Remedy("or name it, if it has another name", ("dnsproxy doctor --relay NAMESPACE/NAME",)),
        Remedy("or uninstall the stanza", (UNINSTALL,)),
    )
    return _finding("relay-missing", text, (), steps, severity=Severity.WARNING)


def _refused(part: OwnService, probes: Sequence[Probe], controllers: Sequence[Controller]) -> Finding:
    outcomes = {probe.outcome for probe in probes if not is_understood(probe)}
    if outcomes <= {Outcome.UNREACHABLE, Outcome.REFUSED}:
        text = "the relay's Service accepts no connection"
        lines = (f"kubectl -n {quoted(part.key)[0]} get endpointslices,networkpolicies",)
        return _finding("relay-unreachable", text, describe(probes), (Remedy("see what blocks it", lines),))
    # A TLS client gets the 400 as plain text instead of a handshake.
    if outcomes <= {Outcome.BAD_REQUEST, Outcome.GARBAGE}:
        text = "the controller behind the relay answers 400: it does not expect the PROXY header that the relay sends"
        steps = (
            *_agree(controllers, automatic=bool(part.routes)),
            Remedy("or uninstall Switchback, if no load balancer sends the header either", (UNINSTALL,)),
        )
        return _finding("relay-header-unwanted", text, describe(probes), steps)
    text = "connections through the relay open, but are not answered: the backend refuses them or their header"
    return _finding("relay-unanswered", text, describe(probes), (_see_log(part),))


def _agree(controllers: Sequence[Controller], *, automatic: bool) -> Iterator[Remedy]:
    """The end of the header: the controller is right unless its load balancer sends it."""
    for one in controllers[:1]:
        if automatic:
            yield Remedy("see what operate says about the class, and its route Service", (STATUS,))
        elif one.sends is Sends.YES:
            yield Remedy("turn the header on at the controller; ingress-nginx", ('use-proxy-protocol: "true"',))
        else:
            line = target_line(one.path.ingress_class, one.key)
            yield Remedy("answer the names with the controller's own Service, without a relay", (line,))


def _see_log(part: OwnService) -> Remedy:
    namespace, name = quoted(part.key)
    return Remedy("see what it logs about its backend", (f"kubectl -n {namespace} logs deploy/{name} --tail=50",))


def _judge_trust(part: OwnService, service: Service) -> Iterator[Finding]:
    """Whether the controller trusts headers from the pods of the relay."""
    for key in TRUST_KEYS:
        text = service.settings.get(key, "")
        networks = parse_networks(text)
        if not networks:
            continue
        untrusted = tuple(pod for pod in part.pods if not is_in_networks(pod, networks))
        if untrusted:
            refused = service.program == _REFUSES_STRANGERS
            effect = "it rejects the header" if refused else "logs and limits show the relay's address for every client"
            message = (
                f"the controller does not trust the relay's header: {key} of {service.settings_from} lacks the "
                f"network of the relay's pods, so {effect}"
            )
            evidence = (f"{key}: {text}", f"pods of the relay: {', '.join(untrusted)}")
            line = f'{key}: "{text.strip()},{network_of(untrusted[0])}"'
            step = Remedy(
                "add the network of the relay's pods: a pool of addresses of their own, or that of all pods with a "
                "NetworkPolicy that keeps other pods from the controller (deploy/controller-policy); it may be",
                (line,),
            )
            severity = Severity.PROBLEM if refused else Severity.WARNING
            yield _finding("relay-not-trusted", message, evidence, (step,), severity=severity)


def parse_networks(text: str) -> tuple[str, ...]:
    """The networks in a list with commas or blanks; other words are skipped."""
    found = []
    for part in text.replace(",", " ").split():
        try:
            found.append(str(ip_network(part, strict=False)))
        except ValueError:
            continue
    return tuple(found)


def is_in_networks(address: str, networks: Sequence[str]) -> bool:
    """Whether an address is in one of the networks; an invalid address is in none."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return any(found in ip_network(network) for network in networks)


def network_of(address: str) -> str:
    """The usual pod network around an address: /16, or /56 of IPv6."""
    try:
        bits = 16 if ip_address(address).version == 4 else 56  # noqa: PLR2004  # as in IPv4
        return str(ip_network(f"{address}/{bits}", strict=False))
    except ValueError:
        return address


def _name_backend(part: OwnService, requiring: Sequence[Controller]) -> Remedy:
    if part.routes:
        namespace, name = quoted(part.key)
        lines = (STATUS, f"kubectl -n {namespace} logs deploy/{name} --tail=50")
        return Remedy("see which route Service has a fault, and what the relay logs", lines)
    service = requiring[0].path.service.key if requiring else "NAMESPACE/NAME"
    namespace, _, name = service.partition("/")
    ports = [port.port for port in requiring[0].path.service.ports][:2] if requiring else [80, 443]
    listening = [route.partition("=")[0] for route in part.settings.get(_ROUTES, "8080= 8443=").split()]
    pairs = " ".join(f"{own}={name}.{namespace}.svc:{port}" for own, port in zip(listening, ports, strict=False))
    return Remedy("name the controller's Service in the relay's settings", (f"{_ROUTES}={pairs}",))


def _routes(part: OwnService) -> tuple[str, ...]:
    if part.routes:
        return tuple(f"Service {one.key} leads to {one.backend or 'nowhere'}" for one in part.routes)
    return (f"{_ROUTES}={part.settings[_ROUTES]}",) if part.settings.get(_ROUTES) else ()


def _finding(
    ident: str, text: str, evidence: tuple[str, ...], steps: tuple[Remedy, ...], severity: Severity = Severity.PROBLEM
) -> Finding:
    return Finding(ident, severity, text, "Switchback's relay", evidence, steps)

"""Failing ways: why pods are not served at an address that the cluster's DNS answers, and what helps.

The law: each failing address has one cause, and the addresses of one cause are one finding. A fault of the controller
or of our relay is reported with them, not here. Tested in tests/dnsproxy/doctor/judge/test_failing_ways.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.judge.controller import Controller
from dnsproxy.doctor.judge.cures import cures, why_no_policy
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity
from dnsproxy.doctor.judge.header_mode import describe
from dnsproxy.doctor.judge.header_settings import format_settings
from dnsproxy.doctor.judge.ip_mode_harm import back_to_vip, has_harmful_mode
from dnsproxy.doctor.judge.paths import normalize_address, relay_addresses
from dnsproxy.doctor.judge.reach import AddressReach, Reach
from dnsproxy.doctor.judge.ways import Ways

_CONTROLLER: Final = "controller"
_RELAY: Final = "relay"
_LOOPBACK: Final = "loopback"
"""Causes that are findings elsewhere."""
_SHORT: Final = frozenset(["short-circuited", "ip-mode-ignored"])


def judge_failing(ways: Ways, facts: Facts) -> Iterator[Finding]:
    """One finding for each cause, with its addresses."""
    causes: dict[str, list[AddressReach]] = {}
    for one in ways.failing:
        causes.setdefault(cause_of(one, ways, facts), []).append(one)
    for ident, addresses in causes.items():
        if ident not in (_CONTROLLER, _RELAY, _LOOPBACK):
            yield _finding(ident, addresses, ways, facts)


def cause_of(one: AddressReach, ways: Ways, facts: Facts) -> str:
    """The id of the finding for a failing address; `controller`, `relay` or `loopback` if it is found there."""
    address = normalize_address(one.address)
    if address in relay_addresses(facts):
        return _RELAY
    inner = [controller for controller in ways.controllers if address in controller.inner]
    owners = ways.owners(address)
    if ways.is_pod_itself(address):
        return "answer-dead"
    if one.reach is Reach.NEEDS_HEADER:
        return _without_header(address, owners)
    if (inner or owners) and all(controller.is_down for controller in inner or owners):
        return _CONTROLLER
    if ways.may_loop(address) and not inner:
        return _LOOPBACK
    return _unserved(one, ways, owners=owners, inner=bool(inner))


def _unserved(one: AddressReach, ways: Ways, *, owners: Sequence[Controller], inner: bool) -> str:
    """The cause of an address that serves pods neither without nor with the header."""
    if one.reach is Reach.NO_ROUTE:
        return "no-route"
    if owners:
        cut_off = any(has_harmful_mode(owner.path.service, owner.provider, one.address) for owner in owners)
        return "ip-mode-harms" if cut_off else "balancer-unserved"
    if one.reach is not Reach.CLOSED:
        return "answer-unserved"
    bare_metal = bool(ways.controllers) and all(controller.short.empty for controller in ways.controllers)
    return "no-loopback" if bare_metal and not inner else "answer-dead"


def _without_header(address: str, owners: Sequence[Controller]) -> str:
    taken = [owner for owner in owners if address in map(normalize_address, owner.short.addresses)]
    if any(address in map(normalize_address, owner.short.ignored) for owner in taken):
        return "ip-mode-ignored"
    return "short-circuited" if taken else "header-lost"


def _finding(ident: str, addresses: Sequence[AddressReach], ways: Ways, facts: Facts) -> Finding:
    named = ", ".join(one.address for one in addresses)
    text = TEXTS[ident].format(named=named, **_words(ways))
    if len(addresses) < len(ways.counted):
        text += f"; the cluster's DNS answers with {len(ways.counted)} addresses, and clients take any of them"
    ports = {port for one in addresses for port in one.failing_ports(tls=ways.group.tls)}
    controllers = ways.for_addresses(one.address for one in addresses)
    past = any(_passes_tls_by(one.address, ways) for one in addresses)
    short = past or ident in _SHORT
    # What helps then is seen once kube-proxy has its rules again.
    cured = () if ident == "ip-mode-harms" else cures(ways.group, controllers, facts, short=short, ports=ports)
    steps = (*_first_steps(ident, addresses, ways), *cured)
    evidence = (*evidence_of(ways), *(why_no_policy(controllers, facts) if short else ()))
    return Finding(ident, Severity.PROBLEM, text, ways.about, evidence, steps, ways.group.hostnames)


def _passes_tls_by(address: str, ways: Ways) -> bool:
    """Whether pods are short-circuited past the load balancer that ends TLS."""
    return any(one.lacks_tls and address in map(normalize_address, one.short.addresses) for one in ways.controllers)


TEXTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "short-circuited": "pods are short-circuited past the load balancer {named}, so the controller never gets the "
        "PROXY header that it requires",
        "ip-mode-ignored": "pods are short-circuited past the load balancer {named} although ipMode is Proxy, because "
        "{plane} ignores it; the controller never gets the PROXY header that it requires",
        "header-lost": "pods that dial {named} reach the controller without the PROXY header that it requires",
        "balancer-unserved": "pods that dial the load balancer {named} are not served, and no missing PROXY header "
        "explains it",
        "ip-mode-harms": "pods that dial the load balancer {named} are not served: its ipMode is Proxy, but {provider} "
        "passes packets on with this address as their destination, so clients from outside are cut off too",
        "no-loopback": "pods cannot reach the public address {named}: typical of a router without NAT loopback",
        "no-route": "pods have no route to {named}, and the cluster's DNS answers with no address of the other family",
        "answer-dead": "the cluster's DNS answers with {named}, which accepts no connection from a pod and belongs to "
        "no load balancer of these hosts",
        "answer-unserved": "the cluster's DNS answers with {named}, which accepts connections, but serves no pod",
    }
)
"""The text of each cause; `named` are the addresses."""


def _words(ways: Ways) -> dict[str, str]:
    plane = ways.controllers[0].plane.name if ways.controllers else "the data plane"
    harmful = [one.provider.name for one in ways.controllers if one.provider.passes_packets]
    return {"plane": plane, "provider": ", ".join(dict.fromkeys(harmful))}


def _first_steps(ident: str, addresses: Sequence[AddressReach], ways: Ways) -> Iterator[Remedy]:
    if ident == "ip-mode-harms":
        for one in ways.controllers:
            if any(has_harmful_mode(one.path.service, one.provider, at.address) for at in addresses):
                yield back_to_vip(one.path.service)
        return
    if ident == "balancer-unserved":
        yield Remedy("see whether clients outside are served, and what the controller logs when a pod asks")
        return
    entries = sorted({text for one in ways.controllers for text in one.balancer})
    right = f"; the load balancer is at {', '.join(entries)}" if entries else ""
    if ident == "no-route":
        yield Remedy(f"add a record of the family that pods have{right}")
    elif ident in ("answer-dead", "answer-unserved"):
        named = ", ".join(one.address for one in addresses)
        yield Remedy(f"see who owns {named} and correct the record, if it is stale or meant for other clients{right}")


def evidence_of(ways: Ways) -> tuple[str, ...]:
    """What the judgement of a group rests on, one line each."""
    group = ways.group
    lines = [f"the cluster's DNS answers {group.sample} with {', '.join(group.answers)}"] if group.answers else []
    lines += [f"{one.address} is each pod itself" for one in ways.answers if ways.is_pod_itself(one.address)]
    lines += [line for one in (*ways.answers, *ways.others) for line in describe(one.probes)]
    for controller in ways.controllers:
        lines += controller_evidence(controller)
    return tuple(dict.fromkeys(lines))


def controller_evidence(controller: Controller) -> Iterator[str]:
    """What is known about one controller."""
    service = controller.path.service
    if controller.path.guessed:
        yield f"{controller.about} was found by its labels: no status names it"
    yield from controller.short.evidence
    if controller.declared:
        yield f"the controller {controller.header_mode.value}, according to {service.settings_from}"
    else:
        yield from describe(controller.probes)
        yield from format_settings(service)
    if service.source_ranges:
        yield f"loadBalancerSourceRanges of {controller.about}: {', '.join(service.source_ranges)}"
    if service.external_traffic_policy == "Local":
        yield f"externalTrafficPolicy of {controller.about} is Local: only nodes with a pod of the controller answer"

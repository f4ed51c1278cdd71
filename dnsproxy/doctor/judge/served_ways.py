"""Served ways: pods were seen to be served at every address that the cluster's DNS answers.

The law: only after an answered connection. What was not checked is said; a server's own error, a certificate that does
not fit and an answer of another server are findings beside it. Tested in
tests/dnsproxy/doctor/judge/test_served_ways.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from shlex import quote
from typing import Final

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.facts.probes import Outcome, Probe
from dnsproxy.doctor.judge.failing_ways import evidence_of
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity, Unseen
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.doctor.judge.loopback import loopback
from dnsproxy.doctor.judge.paths import normalize_address, relay_addresses, services_by_address
from dnsproxy.doctor.judge.reach import FAILING, AddressReach, differ, statuses
from dnsproxy.doctor.judge.remedies import quoted
from dnsproxy.doctor.judge.short_circuit import Answer
from dnsproxy.doctor.judge.ways import Ways

_NOT_HERE: Final = frozenset([HTTPStatus.NOT_FOUND, HTTPStatus.MISDIRECTED_REQUEST])
_NO_BACKEND: Final = _NOT_HERE | {HTTPStatus.SERVICE_UNAVAILABLE}
"""HAProxy's answer for an unknown host is 503; at a server outside, it may be a backend that is down."""
NOT_CHECKED: Final = "not checked: the issuer of certificates, and every path but /"


def judge_served(ways: Ways, facts: Facts) -> Iterator[Finding | Unseen]:
    """The finding about a group that is served, then those about how."""
    wrong = tuple(judge_server(ways, facts))
    if wrong:
        yield from wrong
    elif ways.refused_handshakes:
        yield _no_handshake(ways)
    else:
        yield _past(ways, facts) if ways.is_past else _straight(ways)
    yield from _judge_plain_text(ways)
    yield from _judge_errors(ways, facts)
    yield from _judge_identity(ways, facts)


def _no_handshake(ways: Ways) -> Unseen:
    """A server that speaks TLS, and refuses the doctor: it may take clients with a certificate, or of HTTP/2 only."""
    host = quote(ways.group.sample)
    why = "the server ended the handshake: it has no certificate for the name, or takes other clients than the doctor"
    line = f"openssl s_client -connect {ways.refused_handshakes[0].endpoint} -servername {host} -alpn h2,http/1.1"
    said = "; ".join(_lines(ways.refused_handshakes))
    return Unseen(
        f"whether pods are served over TLS that dial {host}",
        f"{why} ({said})",
        (Remedy("ask as its clients do", (line,)),),
    )


def _judge_plain_text(ways: Ways) -> Iterator[Unseen]:
    """A handshake that is answered in plain text: TLS ends at a load balancer that pods are led past."""
    plain = [probe for probe in _bare(ways) if probe.tls and probe.outcome in (Outcome.GARBAGE, Outcome.BAD_REQUEST)]
    if plain and any(one.lacks_tls for one in ways.controllers):
        said = "; ".join(_lines(plain))
        why = f"a handshake is answered in plain text: TLS ends at the load balancer, if anywhere ({said})"
        step = Remedy("see whether clients outside are served by https")
        yield Unseen(f"whether pods are served that dial https://{ways.group.sample}", why, (step,))


def _past(ways: Ways, facts: Facts) -> Finding:
    """The answers are our relay's or the controller's own."""
    named = ", ".join(one.address for one in ways.answers)
    if ways.loops_back:
        return loopback(ways, facts, answered=True)
    fails = any(one.reach in FAILING for one in ways.others)
    fails = fails or any(one.fails_by_settings is Answer.YES for one in ways.controllers)
    if fails:
        text = f"pods do not get through by the load balancer; the cluster's DNS gives them {named}, which serves them"
        return _finding(ways, "short-circuit-answered", text)
    text = f"a pod that dials {named}, which the cluster's DNS answers past the load balancer, is served"
    empty = bool(ways.controllers) and all(one.short.empty for one in ways.controllers)
    return _finding(ways, "no-load-balancer" if empty else "reached", text)


def _straight(ways: Ways) -> Finding:
    named = ", ".join(one.address for one in ways.counted)
    taken = {address for one in ways.controllers for address in map(normalize_address, one.short.addresses)}
    # A bare connection that was answered did not meet a controller that requires the header, or that is down.
    met = [one for one in ways.controllers if one.header_mode is not HeaderMode.REQUIRES and not one.is_down]
    short = any(one.short.state is Answer.YES for one in met)
    if short and taken.intersection(one.address for one in ways.counted):
        text = f"pods are short-circuited past the load balancer {named}, but the controller serves them"
        return _finding(ways, "short-circuit-harmless", text)
    named_only = any(one.path.service.points for one in ways.controllers)
    foreign = [one.address for one in ways.counted if not ways.owners(one.address)]
    by = "" if not foreign or not named_only else f"; {', '.join(foreign)} is in the status of none of its Services"
    return _finding(ways, "reached", f"a pod that dials {named}, which the cluster's DNS answers, is served{by}")


def _finding(ways: Ways, ident: str, text: str) -> Finding:
    return Finding(ident, Severity.OK, text, ways.about, (*evidence_of(ways), NOT_CHECKED), (), ways.group.hostnames)


def _grade(facts: Facts) -> Severity:
    """A fault of one host's server is a warning for who asks about it, and information about a whole cluster."""
    return Severity.WARNING if facts.hostname else Severity.INFO


def has_errors(ways: Ways) -> bool:
    """Whether a server answered with an error of its own."""
    return bool(_errors(ways))


def _errors(ways: Ways) -> list[Probe]:
    return [one for one in _bare(ways) if one.status >= HTTPStatus.INTERNAL_SERVER_ERROR]


def _judge_errors(ways: Ways, facts: Facts) -> Iterator[Finding]:
    bad = _errors(ways)
    if bad:
        host = ways.group.sample
        text = f"{host} answers with an error of the server: {bad[0].detail}; its controller or its backend is unwell"
        namespaces = dict.fromkeys(quoted(one.origin.partition(" ")[2])[0] for one in ways.group.hosts[:1])
        lines = tuple(f"kubectl -n {namespace} get endpointslices,pods" for namespace in namespaces)
        step = Remedy("see whether the pods behind its Ingress or route are ready", lines)
        yield Finding("server-error", _grade(facts), text, "", _lines(bad), (step,), (host,))


def _judge_identity(ways: Ways, facts: Facts) -> Iterator[Finding]:
    bad = [one for one in _bare(ways) if one.identity is not None and one.identity.fault]
    if bad and bad[0].identity is not None:
        host, shown = ways.group.sample, bad[0].identity
        names = f"; it names {', '.join(shown.names)}" if shown.names else ""
        text = f"a client of {host} rejects the certificate: {shown.fault}{names}"
        severity = _grade(facts) if ways.group.tls else Severity.INFO
        yield Finding("certificate-unfit", severity, text, "", _lines(bad), (), (host,))


def judge_server(ways: Ways, facts: Facts) -> Iterator[Finding | Unseen]:
    """An address that is not of the hosts' controllers, and answers otherwise than they do."""
    if not ways.controllers:
        return
    owners = services_by_address(facts.services)
    own = {one.key for one in ways.controllers}
    for one in ways.counted:
        keys = {service.key for service in owners.get(one.address, ())}
        if keys & own or ways.owners(one.address) or one.address in relay_addresses(facts):
            continue
        here = [controller.statuses(ways.group.sample) for controller in ways.controllers]
        there = statuses(one.bare)
        # A proxy in front may answer for itself; only "not here" shows that it does not serve the host.
        absent = {port: status for port, status in there.items() if status in (_NO_BACKEND if keys else _NOT_HERE)}
        if any(differ(absent, at_controller) for at_controller in here) or _is_refused(one, ways):
            yield _wrong_server(one.address, sorted(keys), ways)
        elif keys and any(differ(there, at_controller) for at_controller in here):
            yield _other_server(one, sorted(keys), ways)


def _is_refused(one: AddressReach, ways: Ways) -> bool:
    """Whether a server refuses the handshake that the hosts' controllers finish."""
    refused = [probe for probe in ways.refused_handshakes if probe in one.probes]
    return any(own.greets(ways.group.sample, probe.port) for probe in refused for own in ways.controllers)


def _wrong_server(address: str, keys: list[str], ways: Ways) -> Finding:
    owner = f"belongs to Service {', '.join(keys)} and " if keys else ""
    text = f"the cluster's DNS leads to {address}, which {owner}answers otherwise than the controller of these hosts"
    entries = ", ".join(sorted({text for one in ways.controllers for text in one.balancer})) or "none in its status"
    step = Remedy(f"correct the record; the load balancer of the hosts' controller is at {entries}")
    return Finding("wrong-server", Severity.WARNING, text, ways.about, evidence_of(ways), (step,), ways.group.hostnames)


def _other_server(one: AddressReach, keys: list[str], ways: Ways) -> Unseen:
    """Another Service of the cluster: a proxy in front of the controller, or the controller of other hosts."""
    why = f"it belongs to Service {', '.join(keys)} and answers otherwise than the controller of these hosts"
    step = Remedy("see whether it leads to their controller, or the record is wrong")
    return Unseen(f"whether {one.address}, which the cluster's DNS answers, serves {ways.group.sample}", why, (step,))


def _bare(ways: Ways) -> list[Probe]:
    return [probe for one in ways.counted for probe in one.bare]


def _lines(probes: Sequence[Probe]) -> tuple[str, ...]:
    return tuple(f"{one.endpoint} ({'TLS' if one.tls else 'HTTP'}): {one.detail}" for one in probes)

"""Judging: from facts to a diagnosis.

The law: a pure function, so that one file gives the same diagnosis on every machine; it never raises, whatever the
facts hold. Hosts with one cause are one finding. An observation (a DNS answer, a connection) overrides what was derived
from settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Final

from dnsproxy.doctor.facts.model import Facts, Host
from dnsproxy.doctor.facts.probes import Lookup
from dnsproxy.doctor.judge.controller import Controller, make_controller
from dnsproxy.doctor.judge.controller_findings import judge_controller
from dnsproxy.doctor.judge.dns_findings import judge_dns
from dnsproxy.doctor.judge.findings import Diagnosis, Finding, Remedy, Severity, Unseen, worst_first
from dnsproxy.doctor.judge.header_mode import HeaderMode, usable_probes
from dnsproxy.doctor.judge.path_report import report_path
from dnsproxy.doctor.judge.paths import Paths, find_paths, near_names, normalize_address
from dnsproxy.doctor.judge.providers import AWS
from dnsproxy.doctor.judge.relay_findings import judge_relay, routes_to
from dnsproxy.doctor.judge.remedies import look_from_inside
from dnsproxy.doctor.judge.short_circuit import Answer

_SHOWN: Final = 5
_HOST_LISTS: Final = frozenset(["list services", "list ingresses", "list gateways", "list httproutes"])
"""Without one of these lists, unknown hosts may be missing from the diagnosis."""


def judge(facts: Facts, paths: Paths | None = None) -> Diagnosis:
    """The diagnosis for the facts; `paths` are those of find_paths, for a caller that has them already."""
    paths = find_paths(facts) if paths is None else paths
    controllers = [make_controller(path, facts) for path in paths.paths]
    results = [
        *_judge_paths(facts, paths),
        *(
            one
            for controller in controllers
            for one in judge_controller(controller, facts, answered=is_answered(controller, facts))
        ),
        *_judge_own(facts, controllers),
        *(one for controller in controllers for one in _judge_answers(controller, facts)),
        *_judge_need(facts, controllers, paths),
    ]
    findings = worst_first(one for one in results if isinstance(one, Finding))
    unseen = tuple(dict.fromkeys([*(one for one in results if isinstance(one, Unseen)), *_unseen(facts, controllers)]))
    return Diagnosis(findings, unseen, _verdict(facts, findings, unseen), report_path(facts, paths))


def is_answered(controller: Controller, facts: Facts) -> bool:
    """Whether the hosts of a controller resolve to our relay, or to the controller itself past the load balancer.

    Without any look-up, a complete installation counts as working; dns_findings reports that this was not seen.
    """
    past = {*(facts.relay.addresses if facts.relay else ()), *controller.path.service.cluster_ips}
    lookups = _lookups(controller, facts, "cluster")
    if lookups:
        return all(one.addresses and past.issuperset(one.addresses) for one in lookups)
    written = facts.dns is not None and any(not stanza.fault for stanza in facts.dns.stanzas)
    own = (facts.dnsproxy, facts.relay)
    return not facts.probed and written and all(part is not None and bool(part.ready) for part in own)


def _lookups(controller: Controller, facts: Facts, server: str) -> list[Lookup]:
    hostnames = set(controller.path.hostnames) | ({facts.hostname} if facts.hostname else set())
    return [one for one in facts.lookups if one.server == server and one.hostname in hostnames and not one.fault]


def _judge_paths(facts: Facts, paths: Paths) -> Iterator[Finding | Unseen]:
    if facts.hostname and not paths.paths and not paths.unmatched:
        yield _unknown_host(facts)
    elif not facts.hosts and not facts.refusals:
        yield Finding("no-hosts", Severity.INFO, "no Ingress or Gateway of this cluster has a hostname")
    if paths.unmatched:
        yield _no_path(paths.unmatched)


def _unknown_host(facts: Facts) -> Finding:
    near = near_names(facts)
    text = f"no Ingress or Gateway of this cluster serves {facts.hostname}"
    rejected = tuple(one for one in facts.rejected if facts.hostname in one)
    meant = Remedy(f"was {' or '.join(near)} meant?", tuple(f"dnsproxy doctor {quote(name)}" for name in near))
    steps, hosts = (meant,) if near else (), (facts.hostname,)
    return Finding("host-unknown", Severity.PROBLEM, text, facts.hostname, rejected, steps, hosts)


def _no_path(hosts: Sequence[Host]) -> Finding:
    hostnames = tuple(sorted({host.hostname for host in hosts}))
    origins = tuple(
        f"{host.origin}, class {host.ingress_class or 'none'}{_shown(host.status)}" for host in hosts[:_SHOWN]
    )
    if any(host.status for host in hosts):
        text = "the address in the status of their objects belongs to no Service of this cluster"
        return Finding("no-road", Severity.INFO, text, "", origins, hosts=hostnames)
    text = "their objects have no address in the status: no controller handles them"
    steps = (Remedy("see which controller should handle them", ("kubectl get ingressclasses,gatewayclasses",)),)
    return Finding("no-road", Severity.WARNING, text, "", origins, steps, hostnames)


def _shown(status: Sequence[str]) -> str:
    return f", status {', '.join(status)}" if status else ""


def _judge_own(facts: Facts, controllers: Sequence[Controller]) -> Iterator[Finding | Unseen]:
    needed = any(
        controller.affected is not Answer.NO or controller.loops_back or controller.short.empty
        for controller in controllers
    )
    used = facts.dns is not None and any(not stanza.fault for stanza in facts.dns.stanzas)
    yield from judge_dns(facts, needed=needed)
    yield from judge_relay(facts, controllers, used=used)


def _judge_answers(controller: Controller, facts: Facts) -> Iterator[Finding]:
    """The addresses in answers, compared with those that pods need."""
    relay = set(facts.relay.addresses) if facts.relay else set()
    lookups = _lookups(controller, facts, "cluster")
    to_relay = tuple(sorted({one.hostname for one in lookups if relay.intersection(one.addresses)}))
    if to_relay and facts.relay is not None:
        settings = facts.relay.settings.get("PROXY_ROUTE", "")
        other = bool(settings) and not routes_to(facts.relay, controller.path.service)
        if controller.header_mode is HeaderMode.REJECTS or (
            other and controller.header_mode is not HeaderMode.REQUIRES
        ):
            yield _wrong_class(controller, to_relay)
    loaded = bool(facts.loaded) and {asked.state for asked in facts.loaded} == {"yes"}
    past = {*relay, *controller.path.service.cluster_ips}
    to_balancer = tuple(sorted({one.hostname for one in lookups if one.addresses and past.isdisjoint(one.addresses)}))
    if loaded and to_balancer and controller.affected is Answer.YES:
        yield _not_answered(controller, to_balancer, lookups)
    yield from _judge_public(controller, facts)


def _wrong_class(controller: Controller, hostnames: tuple[str, ...]) -> Finding:
    ingress_class = controller.path.ingress_class
    why = "their controller rejects the PROXY header"
    if controller.header_mode is not HeaderMode.REJECTS:
        why = "the relay routes to another controller"
    text = f"the cluster's DNS answers with the relay for hosts of class {ingress_class}, but {why}"
    evidence = (f"{controller.about}: the controller {controller.header_mode.value}",)
    line = f"DNSPROXY_TARGET_FOR={ingress_class}=service:{controller.path.service.key}"
    steps = (Remedy("answer this class with its own controller", (line,)),)
    return Finding("wrong-class", Severity.PROBLEM, text, controller.about, evidence, steps, hostnames)


def _not_answered(controller: Controller, hostnames: tuple[str, ...], lookups: Sequence[Lookup]) -> Finding:
    text = "the cluster's DNS asks dnsproxy, but answers with the load balancer's address for these hosts"
    evidence = tuple(f"{one.hostname}: {', '.join(one.addresses)}" for one in lookups if one.hostname in hostnames)
    step = Remedy("see why", (f"kubectl -n switchback exec deploy/dnsproxy -- dnsproxy explain {quote(hostnames[0])}",))
    return Finding("not-answered", Severity.PROBLEM, text, controller.about, evidence[:_SHOWN], (step,), hostnames)


def _judge_public(controller: Controller, facts: Facts) -> Iterator[Finding]:
    """Public DNS compared with the status: another address belongs to a CDN, or the name to another owner."""
    points = {
        normalize_address(text)
        for point in controller.path.service.points
        for text in (point.ip, point.hostname)
        if text
    }
    lookups = _lookups(controller, facts, "public")
    bare = tuple(sorted({one.hostname for one in lookups if not one.addresses and not one.aliases}))
    elsewhere = [one for one in lookups if one.addresses and points.isdisjoint((*one.addresses, *one.aliases))]
    if bare:
        text = "public DNS has no record of these hosts: no client outside reaches them"
        yield Finding("no-public-record", Severity.INFO, text, controller.about, hosts=bare)
    # The addresses of a hostname in the status were not looked up.
    if elsewhere and any(point.ip for point in controller.path.service.points):
        text = "public DNS resolves these hosts to other addresses than the load balancer's: a CDN, or a foreign name"
        evidence = tuple(f"{one.hostname}: {', '.join(one.addresses)}" for one in elsewhere[:_SHOWN])
        hosts = tuple(sorted({one.hostname for one in elsewhere}))
        yield Finding("public-elsewhere", Severity.INFO, text, controller.about, evidence, hosts=hosts)


def _judge_need(facts: Facts, controllers: Sequence[Controller], paths: Paths) -> Iterator[Finding]:
    """Whether Switchback is needed: reported only if everything is known, and for all hosts together."""
    written = facts.dns is not None and bool(facts.dns.stanzas)
    known = bool(controllers) and not paths.unmatched and not facts.refusals and not facts.hostname
    idle = all(_works_without(controller) for controller in controllers)
    if not known or not idle:
        return
    if written:
        text = "Switchback is installed, but no host of this cluster needs it any more"
        lines = ("dnsproxy uninstall", "kubectl delete namespace switchback")
        steps = (Remedy("uninstall it, the stanza first; deploy/README.md has the rest", lines),)
        yield Finding("no-longer-needed", Severity.INFO, text, "Switchback", steps=steps)
    else:
        yield Finding("not-needed", Severity.OK, "no host of this cluster needs Switchback", "Switchback")


def _works_without(controller: Controller) -> bool:
    """Whether pods reach a controller without Switchback; on AWS only an answered connection can show it."""
    aws = controller.provider is AWS and controller.reached is not Answer.YES
    return controller.affected is Answer.NO and not controller.short.empty and not controller.loops_back and not aws


def _unseen(facts: Facts, controllers: Sequence[Controller]) -> Iterator[Unseen]:
    for fault in facts.dns.faults if facts.dns else ():
        # A failure of pods is a finding already; if they do not fail, their DNS server does not matter.
        yield Unseen("something about the cluster's DNS", fault, matters=False)
    if facts.probes and not usable_probes(facts.probes):
        why = "no connection from this machine succeeded: it is not a pod, or a network policy blocks it"
        unknown = any(controller.affected is Answer.UNKNOWN for controller in controllers)
        yield Unseen("the ports of the cluster", why, (look_from_inside(facts),), matters=unknown)
    if facts.probed and facts.hostname and not any(one.server == "public" for one in facts.lookups):
        step = Remedy("name a public DNS server", (f"dnsproxy doctor {quote(facts.hostname)} --public-dns 192.0.2.53",))
        yield Unseen("the answer of public DNS", "only the cluster's own DNS is known here", (step,), matters=False)
    for refusal in facts.refusals:
        steps = (
            (Remedy("grant this right while the doctor runs: reading is enough"),) if "forbidden" in refusal.why else ()
        )
        yield Unseen(refusal.what, refusal.why, steps, matters=not controllers or refusal.what in _HOST_LISTS)


def _verdict(facts: Facts, findings: Sequence[Finding], unseen: Sequence[Unseen]) -> str:
    subject = facts.hostname or "this cluster"
    bad = [one for one in findings if one.severity in (Severity.PROBLEM, Severity.WARNING)]
    if bad:
        more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
        return f"{subject}: {bad[0].text}{more}"
    if any(one.matters for one in unseen):
        return f"{subject}: could not look at everything; no fault was seen"
    named = {one.id: one for one in findings}
    for ident in ("no-longer-needed", "not-needed", "no-hosts"):
        if ident in named:
            return f"{subject}: {named[ident].text}"
    return f"{subject}: all is well"

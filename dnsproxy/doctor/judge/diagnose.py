"""Judging: from facts to a diagnosis.

The law: a pure function, so that the same file gives the same diagnosis on every machine, and it never raises, whatever
is in the facts. Hosts with one cause are one finding. What pods really get (an answer, a connection) beats what was
worked out from settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Final

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.facts.probes import Lookup
from dnsproxy.doctor.judge.controller import Controller, make_controller
from dnsproxy.doctor.judge.controller_findings import judge_controller
from dnsproxy.doctor.judge.dns_findings import judge_dns
from dnsproxy.doctor.judge.findings import Diagnosis, Finding, Remedy, Severity, Unseen, worst_first
from dnsproxy.doctor.judge.header_mode import HeaderMode, that_reached
from dnsproxy.doctor.judge.path_report import report_path
from dnsproxy.doctor.judge.paths import Paths, find_paths, near_names, normalize_address
from dnsproxy.doctor.judge.providers import AWS
from dnsproxy.doctor.judge.relay_findings import judge_relay, leads_to
from dnsproxy.doctor.judge.remedies import look_from_inside
from dnsproxy.doctor.judge.short_circuit import Answer

_SHOWN: Final = 5
_ALL_OF_THEM: Final = frozenset(["list services", "list ingresses", "list gateways", "list httproutes"])
"""Without one of these, nobody knows of which hosts nothing was said."""


def judge(facts: Facts, paths: Paths | None = None) -> Diagnosis:
    """The diagnosis for the facts; `paths` are those of find_paths, for a caller that has them already."""
    paths = find_paths(facts) if paths is None else paths
    controllers = [make_controller(path, facts) for path in paths.paths]
    said = [
        *_judge_paths(facts, paths),
        *(
            one
            for controller in controllers
            for one in judge_controller(controller, facts, cured=is_cured(controller, facts))
        ),
        *_judge_own(facts, controllers),
        *(one for controller in controllers for one in _judge_answers(controller, facts)),
        *_judge_need(facts, controllers, paths),
    ]
    findings = worst_first(one for one in said if isinstance(one, Finding))
    unseen = tuple(dict.fromkeys([*(one for one in said if isinstance(one, Unseen)), *_refusals(facts, controllers)]))
    return Diagnosis(findings, unseen, _verdict(facts, findings, unseen), report_path(facts, paths))


def is_cured(controller: Controller, facts: Facts) -> bool:
    """Whether the hosts of a controller lead to our relay, or past the load balancer to the controller itself.

    Where nothing could be asked, a whole installation is taken at its word, and dns_findings says that it was not seen.
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
        near = near_names(facts)
        text = f"no Ingress or Gateway of this cluster serves {facts.hostname}"
        rejected = tuple(one for one in facts.rejected if facts.hostname in one)
        meant = Remedy(f"was {' or '.join(near)} meant?", tuple(f"dnsproxy doctor {quote(name)}" for name in near))
        yield Finding(
            "host-unknown",
            Severity.PROBLEM,
            text,
            facts.hostname,
            rejected,
            (meant,) if near else (),
            (facts.hostname,),
        )
    elif not facts.hosts and not facts.refusals:
        yield Finding("no-hosts", Severity.INFO, "no Ingress or Gateway of this cluster has a hostname")
    if paths.unmatched:
        hostnames = tuple(sorted({host.hostname for host in paths.unmatched}))
        status = any(host.status for host in paths.unmatched)
        text = (
            "the address in their objects' status belongs to no Service of this cluster"
            if status
            else "their objects have no address in the status: no controller has taken them up"
        )
        origins = tuple(
            f"{host.origin}, class {host.ingress_class or 'none'}{_shown(host.status)}"
            for host in paths.unmatched[:_SHOWN]
        )
        steps = (
            ()
            if status
            else (Remedy("see which controller should have", ("kubectl get ingressclasses,gatewayclasses",)),)
        )
        severity = Severity.INFO if status else Severity.WARNING
        yield Finding("no-road", severity, text, "", origins, steps, hostnames)


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
    """What the names are answered with, against where they should lead."""
    relay = set(facts.relay.addresses) if facts.relay else set()
    lookups = _lookups(controller, facts, "cluster")
    led = tuple(sorted({one.hostname for one in lookups if relay.intersection(one.addresses)}))
    if led and facts.relay is not None:
        settings = facts.relay.settings.get("PROXY_ROUTE", "")
        other = bool(settings) and not leads_to(facts.relay, controller.path.service)
        if controller.header_mode is HeaderMode.REJECTS or (
            other and controller.header_mode is not HeaderMode.REQUIRES
        ):
            yield _wrong_class(controller, led)
    loaded = bool(facts.loaded) and {asked.state for asked in facts.loaded} == {"yes"}
    past = {*relay, *controller.path.service.cluster_ips}
    left = tuple(sorted({one.hostname for one in lookups if one.addresses and past.isdisjoint(one.addresses)}))
    if loaded and left and controller.affected is Answer.YES:
        yield _left_alone(controller, left, lookups)
    yield from _judge_public(controller, facts)


def _wrong_class(controller: Controller, hostnames: tuple[str, ...]) -> Finding:
    ingress_class = controller.path.ingress_class
    why = "their controller takes no PROXY header"
    if controller.header_mode is not HeaderMode.REJECTS:
        why = "the relay leads to another controller than theirs"
    text = f"hosts of class {ingress_class} are led to the relay, and {why}"
    evidence = (f"{controller.about}: the controller {controller.header_mode.value}",)
    line = f"DNSPROXY_TARGET_FOR={ingress_class}=service:{controller.path.service.key}"
    steps = (Remedy("answer this class with its own controller", (line,)),)
    return Finding("wrong-class", Severity.PROBLEM, text, controller.about, evidence, steps, hostnames)


def _left_alone(controller: Controller, hostnames: tuple[str, ...], lookups: Sequence[Lookup]) -> Finding:
    text = "the cluster's DNS asks dnsproxy, and yet leads these hosts to the load balancer"
    evidence = tuple(f"{one.hostname}: {', '.join(one.addresses)}" for one in lookups if one.hostname in hostnames)
    step = Remedy("see why", (f"kubectl -n switchback exec deploy/dnsproxy -- dnsproxy explain {quote(hostnames[0])}",))
    return Finding("not-answered", Severity.PROBLEM, text, controller.about, evidence[:_SHOWN], (step,), hostnames)


def _judge_public(controller: Controller, facts: Facts) -> Iterator[Finding]:
    """Public DNS against the status: a record that leads elsewhere is a CDN, or somebody else's name."""
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
        text = "public DNS has no record of these hosts: nobody outside reaches them"
        yield Finding("no-public-record", Severity.INFO, text, controller.about, hosts=bare)
    # A hostname in the status has addresses of its own, which nobody looked up.
    if elsewhere and any(point.ip for point in controller.path.service.points):
        text = "public DNS leads these hosts elsewhere than to the load balancer: a CDN, or another's name"
        evidence = tuple(f"{one.hostname}: {', '.join(one.addresses)}" for one in elsewhere[:_SHOWN])
        hosts = tuple(sorted({one.hostname for one in elsewhere}))
        yield Finding("public-elsewhere", Severity.INFO, text, controller.about, evidence, hosts=hosts)


def _judge_need(facts: Facts, controllers: Sequence[Controller], paths: Paths) -> Iterator[Finding]:
    """Whether what is installed is still needed: told only where all of it is known, and of all hosts."""
    written = facts.dns is not None and bool(facts.dns.stanzas)
    known = bool(controllers) and not paths.unmatched and not facts.refusals and not facts.hostname
    idle = all(_is_fine_without(controller) for controller in controllers)
    if not known or not idle:
        return
    if written:
        text = "Switchback is installed, and no host of this cluster needs it any more"
        lines = ("dnsproxy uninstall", "kubectl delete namespace switchback")
        steps = (Remedy("take it out, the stanza first; deploy/README.md has the rest", lines),)
        yield Finding("no-longer-needed", Severity.INFO, text, "Switchback", steps=steps)
    else:
        yield Finding("not-needed", Severity.OK, "no host of this cluster needs Switchback", "Switchback")


def _is_fine_without(controller: Controller) -> bool:
    """AWS has a failure of its own, which only a look at the target group could rule out."""
    aws = controller.provider is AWS and controller.reached is not Answer.YES
    return controller.affected is Answer.NO and not controller.short.empty and not controller.loops_back and not aws


def _refusals(facts: Facts, controllers: Sequence[Controller]) -> Iterator[Unseen]:
    for fault in facts.dns.faults if facts.dns else ():
        # Where pods fail, that is told; where they do not, who serves their DNS makes no difference.
        yield Unseen("something about the cluster's DNS", fault, matters=False)
    if facts.probes and not that_reached(facts.probes):
        why = "no connection came about from here: this is no pod, or a network policy is in the way"
        unknown = any(controller.affected is Answer.UNKNOWN for controller in controllers)
        yield Unseen("the ports of the cluster", why, (look_from_inside(facts),), matters=unknown)
    if facts.probed and facts.hostname and not any(one.server == "public" for one in facts.lookups):
        step = Remedy("name a server to ask", (f"dnsproxy doctor {quote(facts.hostname)} --public-dns 192.0.2.53",))
        yield Unseen("what public DNS says", "only the cluster's own DNS is known here", (step,), matters=False)
    for refusal in facts.refusals:
        steps = (Remedy("grant it for the time of the look: reading is enough"),) if "forbidden" in refusal.why else ()
        yield Unseen(refusal.what, refusal.why, steps, matters=not controllers or refusal.what in _ALL_OF_THEM)


def _verdict(facts: Facts, findings: Sequence[Finding], unseen: Sequence[Unseen]) -> str:
    subject = facts.hostname or "this cluster"
    bad = [one for one in findings if one.severity in (Severity.PROBLEM, Severity.WARNING)]
    if bad:
        more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
        return f"{subject}: {bad[0].text}{more}"
    if any(one.matters for one in unseen):
        return f"{subject}: could not look at everything; nothing wrong was seen"
    named = {one.id: one for one in findings}
    for ident in ("no-longer-needed", "not-needed", "no-hosts"):
        if ident in named:
            return f"{subject}: {named[ident].text}"
    return f"{subject}: all is well"

"""Judging: from facts to a diagnosis.

The law: a pure function, so that the same file gives the same diagnosis on every machine, and it never raises, whatever
is in the facts. Hosts with one cause are one finding. What pods really get (an answer, a connection) beats what was
worked out from settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Final

from dnsproxy.doctor.facts.model import Facts, Lookup
from dnsproxy.doctor.judge.controller import Site, make_site
from dnsproxy.doctor.judge.controller_findings import judge_site
from dnsproxy.doctor.judge.dns_findings import judge_dns
from dnsproxy.doctor.judge.findings import Diagnosis, Finding, Severity, Step, Unseen, worst_first
from dnsproxy.doctor.judge.header_mode import Speech, that_reached
from dnsproxy.doctor.judge.path_report import tell_road
from dnsproxy.doctor.judge.paths import Roads, find_roads, near_names, normal_point
from dnsproxy.doctor.judge.providers import AWS
from dnsproxy.doctor.judge.relay_findings import judge_relay, leads_to
from dnsproxy.doctor.judge.remedies import look_from_inside
from dnsproxy.doctor.judge.short_circuit import Answer

_SHOWN: Final = 5
_ALL_OF_THEM: Final = frozenset(["list services", "list ingresses", "list gateways", "list httproutes"])
"""Without one of these, nobody knows of which hosts nothing was said."""


def judge(facts: Facts) -> Diagnosis:
    """All that the facts come to."""
    roads = find_roads(facts)
    sites = [make_site(road, facts) for road in roads.roads]
    said = [
        *_judge_roads(facts, roads),
        *(one for site in sites for one in judge_site(site, facts, cured=is_cured(site, facts))),
        *_judge_own(facts, sites),
        *(one for site in sites for one in _judge_answers(site, facts)),
        *_judge_need(facts, sites, roads),
    ]
    findings = worst_first(one for one in said if isinstance(one, Finding))
    unseen = tuple(dict.fromkeys([*(one for one in said if isinstance(one, Unseen)), *_refusals(facts, sites)]))
    return Diagnosis(findings, unseen, _verdict(facts, findings, unseen), tell_road(facts, roads))


def is_cured(site: Site, facts: Facts) -> bool:
    """Whether the hosts of a site lead to our relay, or past the load balancer to the controller itself.

    Where nothing could be asked, a whole installation is taken at its word, and dns_findings says that it was not seen.
    """
    past = {*(facts.relay.addresses if facts.relay else ()), *site.road.service.cluster_ips}
    lookups = _lookups(site, facts, "cluster")
    if lookups:
        return all(one.addresses and past.issuperset(one.addresses) for one in lookups)
    written = facts.dns is not None and any(not stanza.fault for stanza in facts.dns.stanzas)
    own = (facts.dnsproxy, facts.relay)
    return not facts.probed and written and all(part is not None and bool(part.ready) for part in own)


def _lookups(site: Site, facts: Facts, server: str) -> list[Lookup]:
    hostnames = set(site.road.hostnames) | ({facts.hostname} if facts.hostname else set())
    return [one for one in facts.lookups if one.server == server and one.hostname in hostnames and not one.fault]


def _judge_roads(facts: Facts, roads: Roads) -> Iterator[Finding | Unseen]:
    if facts.hostname and not roads.roads and not roads.lost:
        near = near_names(facts)
        text = f"no Ingress or Gateway of this cluster serves {facts.hostname}"
        rejected = tuple(one for one in facts.rejected if facts.hostname in one)
        meant = Step(f"was {' or '.join(near)} meant?", tuple(f"dnsproxy doctor {quote(name)}" for name in near))
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
    if roads.lost:
        hostnames = tuple(sorted({host.hostname for host in roads.lost}))
        status = any(host.status for host in roads.lost)
        text = (
            "the address in their objects' status belongs to no Service of this cluster"
            if status
            else "their objects have no address in the status: no controller has taken them up"
        )
        origins = tuple(
            f"{host.origin}, class {host.ingress_class or 'none'}{_shown(host.status)}" for host in roads.lost[:_SHOWN]
        )
        steps = (
            ()
            if status
            else (Step("see which controller should have", ("kubectl get ingressclasses,gatewayclasses",)),)
        )
        severity = Severity.INFO if status else Severity.WARNING
        yield Finding("no-road", severity, text, "", origins, steps, hostnames)


def _shown(status: Sequence[str]) -> str:
    return f", status {', '.join(status)}" if status else ""


def _judge_own(facts: Facts, sites: Sequence[Site]) -> Iterator[Finding | Unseen]:
    needed = any(site.affected is not Answer.NO or site.loops_back or site.short.empty for site in sites)
    used = facts.dns is not None and any(not stanza.fault for stanza in facts.dns.stanzas)
    yield from judge_dns(facts, needed=needed)
    yield from judge_relay(facts, sites, used=used)


def _judge_answers(site: Site, facts: Facts) -> Iterator[Finding]:
    """What the names are answered with, against where they should lead."""
    relay = set(facts.relay.addresses) if facts.relay else set()
    lookups = _lookups(site, facts, "cluster")
    led = tuple(sorted({one.hostname for one in lookups if relay.intersection(one.addresses)}))
    if led and facts.relay is not None:
        settings = facts.relay.settings.get("PROXY_ROUTE", "")
        other = bool(settings) and not leads_to(facts.relay, site.road.service)
        if site.speech is Speech.REJECTS or (other and site.speech is not Speech.REQUIRES):
            yield _wrong_road(site, led)
    loaded = bool(facts.loaded) and {asked.state for asked in facts.loaded} == {"yes"}
    past = {*relay, *site.road.service.cluster_ips}
    left = tuple(sorted({one.hostname for one in lookups if one.addresses and past.isdisjoint(one.addresses)}))
    if loaded and left and site.affected is Answer.YES:
        yield _left_alone(site, left, lookups)
    yield from _judge_public(site, facts)


def _wrong_road(site: Site, hostnames: tuple[str, ...]) -> Finding:
    ingress_class = site.road.ingress_class
    why = "their controller takes no PROXY header"
    if site.speech is not Speech.REJECTS:
        why = "the relay leads to another controller than theirs"
    text = f"hosts of class {ingress_class} are led to the relay, and {why}"
    evidence = (f"{site.about}: the controller {site.speech.value}",)
    line = f"DNSPROXY_TARGET_FOR={ingress_class}=service:{site.road.service.key}"
    steps = (Step("answer this class with its own controller", (line,)),)
    return Finding("wrong-class", Severity.PROBLEM, text, site.about, evidence, steps, hostnames)


def _left_alone(site: Site, hostnames: tuple[str, ...], lookups: Sequence[Lookup]) -> Finding:
    text = "the cluster's DNS asks dnsproxy, and yet leads these hosts to the load balancer"
    evidence = tuple(f"{one.hostname}: {', '.join(one.addresses)}" for one in lookups if one.hostname in hostnames)
    step = Step("see why", (f"kubectl -n switchback exec deploy/dnsproxy -- dnsproxy explain {quote(hostnames[0])}",))
    return Finding("not-answered", Severity.PROBLEM, text, site.about, evidence[:_SHOWN], (step,), hostnames)


def _judge_public(site: Site, facts: Facts) -> Iterator[Finding]:
    """Public DNS against the status: a record that leads elsewhere is a CDN, or somebody else's name."""
    points = {normal_point(text) for point in site.road.service.points for text in (point.ip, point.hostname) if text}
    lookups = _lookups(site, facts, "public")
    bare = tuple(sorted({one.hostname for one in lookups if not one.addresses and not one.aliases}))
    elsewhere = [one for one in lookups if one.addresses and points.isdisjoint((*one.addresses, *one.aliases))]
    if bare:
        text = "public DNS has no record of these hosts: nobody outside reaches them"
        yield Finding("no-public-record", Severity.INFO, text, site.about, hosts=bare)
    # A hostname in the status has addresses of its own, which nobody looked up.
    if elsewhere and any(point.ip for point in site.road.service.points):
        text = "public DNS leads these hosts elsewhere than to the load balancer: a CDN, or another's name"
        evidence = tuple(f"{one.hostname}: {', '.join(one.addresses)}" for one in elsewhere[:_SHOWN])
        hosts = tuple(sorted({one.hostname for one in elsewhere}))
        yield Finding("public-elsewhere", Severity.INFO, text, site.about, evidence, hosts=hosts)


def _judge_need(facts: Facts, sites: Sequence[Site], roads: Roads) -> Iterator[Finding]:
    """Whether what is installed is still needed: told only where all of it is known, and of all hosts."""
    written = facts.dns is not None and bool(facts.dns.stanzas)
    known = bool(sites) and not roads.lost and not facts.refusals and not facts.hostname
    idle = all(_is_fine_without(site) for site in sites)
    if not known or not idle:
        return
    if written:
        text = "Switchback is installed, and no host of this cluster needs it any more"
        lines = ("dnsproxy uninstall", "kubectl delete namespace switchback")
        steps = (Step("take it out, the stanza first; deploy/README.md has the rest", lines),)
        yield Finding("no-longer-needed", Severity.INFO, text, "Switchback", steps=steps)
    else:
        yield Finding("not-needed", Severity.OK, "no host of this cluster needs Switchback", "Switchback")


def _is_fine_without(site: Site) -> bool:
    """AWS has a failure of its own, which only a look at the target group could rule out."""
    aws = site.provider is AWS and site.reached is not Answer.YES
    return site.affected is Answer.NO and not site.short.empty and not site.loops_back and not aws


def _refusals(facts: Facts, sites: Sequence[Site]) -> Iterator[Unseen]:
    for fault in facts.dns.faults if facts.dns else ():
        # Where pods fail, that is told; where they do not, who serves their DNS makes no difference.
        yield Unseen("something about the cluster's DNS", fault, matters=False)
    if facts.probes and not that_reached(facts.probes):
        why = "no connection came about from here: this is no pod, or a network policy is in the way"
        unknown = any(site.affected is Answer.UNKNOWN for site in sites)
        yield Unseen("the ports of the cluster", why, (look_from_inside(facts),), matters=unknown)
    if facts.probed and facts.hostname and not any(one.server == "public" for one in facts.lookups):
        step = Step("name a server to ask", (f"dnsproxy doctor {quote(facts.hostname)} --public-dns 192.0.2.53",))
        yield Unseen("what public DNS says", "only the cluster's own DNS is known here", (step,), matters=False)
    for refusal in facts.refusals:
        steps = (Step("grant it for the time of the look: reading is enough"),) if "forbidden" in refusal.why else ()
        yield Unseen(refusal.what, refusal.why, steps, matters=not sites or refusal.what in _ALL_OF_THEM)


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

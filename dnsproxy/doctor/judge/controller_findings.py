"""Judging a site: the findings about one controller's Service.

The law: every state of short circuit, header and load balancer gives exactly one finding or Unseen on the short
circuit, and at most one on the header. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from dnsproxy.doctor.collect.dial_targets import name_to_ask
from dnsproxy.doctor.facts.model import Facts, Header, Outcome
from dnsproxy.doctor.judge.controller import Site
from dnsproxy.doctor.judge.findings import Finding, Severity, Step, Unseen
from dnsproxy.doctor.judge.header_annotations import Sends, Value
from dnsproxy.doctor.judge.header_mode import Speech, describe, versions_of
from dnsproxy.doctor.judge.remedies import annotate, install_step, look_from_inside, probe_by_hand, quoted, remedies
from dnsproxy.doctor.judge.short_circuit import Answer


def judge_site(site: Site, facts: Facts, *, cured: bool) -> Iterator[Finding | Unseen]:
    """All that is to say about one Service; `cured`: the cluster's DNS leads its hosts to our relay."""
    yield from _judge_header(site)
    if site.loops_back:
        yield _loopback(site, cured=cured)
    elif site.short.empty:
        yield from _judge_without_balancer(site, facts, cured=cured)
    elif site.affected is Answer.YES:
        yield _affected(site, facts, cured=cured)
    elif site.affected is Answer.NO:
        yield _unserved(site, facts) if site.reached is Answer.NO and not cured else _unaffected(site)
    else:
        yield from _unknown(site, facts, cured=cured)


def _evidence(site: Site) -> tuple[str, ...]:
    guessed = (f"no status says that {site.about} is meant: its labels do",) if site.road.guessed else ()
    return (*guessed, *site.short.evidence, *_speech(site), *describe(site.balancer_probes))


def _speech(site: Site) -> tuple[str, ...]:
    if site.declared:
        return (f"the controller {site.speech.value}, says {site.road.service.settings_from}",)
    return describe(site.controller_probes)


def _affected(site: Site, facts: Facts, *, cured: bool) -> Finding:
    past = f"past the load balancer {', '.join(site.short.addresses)}".rstrip()
    why = "the controller never gets the PROXY header that it wants"
    ignored = site.short.ignored
    text = f"pods are short-circuited {past}, so {why}"
    if ignored:
        text = f"pods are short-circuited {past} although ipMode is Proxy, for {site.plane.name} ignores that; {why}"
    if cured:
        cure = "; the cluster's DNS leads them to Switchback's relay instead"
        return _finding(site, "short-circuit-answered", Severity.OK, text + cure)
    steps = remedies(site.road.service, site.provider, site.plane, facts)
    if ignored:
        steps = (Step(site.plane.remedy), steps[-1])
    return _finding(site, "ip-mode-ignored" if ignored else "short-circuited", Severity.PROBLEM, text, steps)


def _unaffected(site: Site) -> Finding:
    if site.reached is Answer.YES:
        text = "a pod that dials the load balancer's address is served"
        return _finding(site, "reached", Severity.OK, text)
    if site.short.state is Answer.NO:
        text = "pods reach the load balancer as everybody does: its status has nothing to short-circuit"
        return _finding(site, "no-short-circuit", Severity.OK, text)
    text = "pods are short-circuited past the load balancer, and the controller serves them all the same"
    return _finding(site, "short-circuit-harmless", Severity.OK, text)


def _unserved(site: Site, facts: Facts) -> Finding:
    text = "a pod that dials the load balancer's address is not served, and no short circuit explains it"
    first = Step("see whether clients outside are served, and what the controller logs when a pod asks")
    return _finding(site, "balancer-unserved", Severity.WARNING, text, (first, install_step(facts, site.provider)))


def _unknown(site: Site, facts: Facts, *, cured: bool) -> Iterator[Finding | Unseen]:
    past = ", ".join(site.short.addresses)
    if site.short.state is Answer.UNKNOWN:
        what = f"whether {site.plane.name} short-circuits pods past {past} ({site.about})"
        yield Unseen(what, "; ".join(site.short.evidence), (look_from_inside(facts),), matters=not cured)
        return
    likely = site.sends in (Sends.YES, Sends.SOME) and not cured
    if likely:
        text = (
            f"pods are short-circuited past the load balancer {past}, which {site.sends.value}: a controller that "
            "wants it refuses them"
        )
        steps = remedies(site.road.service, site.provider, site.plane, facts)
        yield _finding(site, "short-circuit-likely", Severity.WARNING, text, steps)
    hostname = name_to_ask(next(iter(site.road.hostnames), "app.example.org"))
    lines = tuple(probe_by_hand(site.road.service, hostname, header) for header in (Header.PLAIN, Header.V1))
    by_hand = Step("or ask once without and once with the header, by hand; 000 means that nothing was answered", lines)
    why = "its ports were not dialled" if not facts.probed else "; ".join(_speech(site)) or "its ports tell nothing"
    what = f"whether the controller behind {site.about} wants the PROXY header; pods are short-circuited to it"
    yield Unseen(what, why, (look_from_inside(facts), by_hand), matters=not cured)


def _judge_without_balancer(site: Site, facts: Facts, *, cured: bool) -> Iterator[Finding | Unseen]:
    failed = site.reached is Answer.NO
    if site.reached is Answer.YES:
        yield _finding(site, "reached", Severity.OK, "a pod that dials the public address is served")
    elif failed and not cured:
        outcomes = {probe.outcome for probe in site.balancer_probes}
        lost = outcomes <= {Outcome.UNREACHABLE, Outcome.REFUSED}
        text = (
            "pods cannot reach the public address: a router without NAT loopback does that"
            if lost
            else "pods that dial the public address come to the controller without the PROXY header that it wants"
        )
        steps = remedies(site.road.service, site.provider, site.plane, facts)
        yield _finding(site, "no-loopback" if lost else "header-lost", Severity.PROBLEM, text, steps)
    elif cured:
        text = "there is no load balancer in the status; the cluster's DNS leads pods to Switchback's relay"
        yield _finding(site, "no-load-balancer", Severity.OK, text)
    else:
        text = "its status has no load balancer address: on bare metal that is usual, in a cloud it is still being made"
        yield _finding(site, "no-load-balancer", Severity.INFO, text)
        if not facts.probed:
            what = f"whether pods reach the hosts of {site.about} by their public address"
            yield Unseen(what, "nothing was dialled", (look_from_inside(facts),))


def _loopback(site: Site, *, cured: bool) -> Finding:
    text = (
        "an AWS NLB that keeps the client's address drops a pod's connection whenever it chooses the node that the pod "
        "runs on: time-outs that come and go, and no matter of the PROXY header"
    )
    if cured:
        return _finding(site, "nlb-loopback-answered", Severity.OK, f"{text}; the cluster's DNS leads pods past it")
    key = "service.beta.kubernetes.io/aws-load-balancer-target-group-attributes"
    value = "preserve_client_ip.enabled=false"
    old = site.road.service.annotations.get(key, "")
    others = [part for part in old.split(",") if part.strip() and not part.strip().startswith("preserve_client_ip")]
    lines = (annotate(site.road.service, key, ",".join([value, *map(str.strip, others)])),)
    steps = (
        Step("have the NLB not keep the client's address; with PROXY v2 the controller learns it all the same", lines),
        Step(
            "or answer the names with the controller's own ClusterIP, or with the relay where the header is wanted",
            ("kubectl apply -k deploy/overlays/eks", "dnsproxy install"),
        ),
    )
    return _finding(site, "nlb-loopback", Severity.WARNING, text, steps)


def _judge_header(site: Site) -> Iterator[Finding]:
    """What the controller wants against what the load balancer sends."""
    said = f"the load balancer of {site.provider.name} {site.sends.value}"
    if site.speech is Speech.DEAD:
        text = "nothing takes connections at the controller's Service"
        namespace, _ = quoted(site.road.service.key)
        step = Step("see whether its pods are ready", (f"kubectl -n {namespace} get endpointslices,pods",))
        yield _of_header(site, "controller-dead", Severity.PROBLEM, text, (step,))
    elif site.speech is Speech.REJECTS and site.sends is Sends.YES:
        text = f"{said}, and the controller takes none: everybody gets 400"
        yield _of_header(site, "header-unwanted", Severity.PROBLEM, text, (_have_it_expected(site),))
    elif site.speech is Speech.REQUIRES and site.sends is Sends.NO:
        yield _missing(site, said)
    elif site.speech is Speech.ACCEPTS:
        text = "the controller takes connections with and without the PROXY header: pods need no relay for it"
        lines = (f"DNSPROXY_TARGET_FOR={site.road.ingress_class}=service:{site.road.service.key}",)
        step = Step("where Switchback answers its hosts, point them at its Service directly", lines)
        yield _of_header(site, "takes-both", Severity.INFO, text, (step,))
    elif site.speech is Speech.REQUIRES:
        versions = " and ".join(versions_of(site.controller_probes))
        text = f"the controller wants the PROXY header{f' ({versions} understood)' if versions else ''}"
        yield _of_header(site, "header-required", Severity.OK, text)


def _missing(site: Site, said: str) -> Finding:
    if site.provider.never_sends:
        text = f"the controller wants the PROXY header; {site.provider.note or said}"
        return _of_header(site, "header-from-outside", Severity.INFO, text)
    text = f"{said}, and the controller wants one: nobody from outside is served"
    switch = site.provider.switches[0]
    value = {Value.VERSION: "v1", Value.PORTS: "*", Value.MODE: "send-proxy"}.get(switch.value, "true")
    lines = (annotate(site.road.service, switch.key, value),)
    on = Step("turn it on at the load balancer", lines)
    if switch.value is Value.CONFIG:
        # What else the annotation holds must stay.
        on = Step(f"turn it on at the load balancer: outbound_proxy_protocol of the backends in {switch.key}")
    steps = (
        on,
        Step('or off at the controller; ingress-nginx: `use-proxy-protocol: "false"` in its ConfigMap'),
    )
    return _of_header(site, "header-missing", Severity.PROBLEM, text, steps)


def _have_it_expected(site: Site) -> Step:
    where = site.road.service.settings_from or "its ConfigMap"
    return Step(f"have the controller expect it; ingress-nginx: in {where}", ('use-proxy-protocol: "true"',))


def _finding(site: Site, ident: str, severity: Severity, text: str, steps: tuple[Step, ...] = ()) -> Finding:
    return Finding(ident, severity, text, site.about, _evidence(site), steps, site.road.hostnames)


def _of_header(site: Site, ident: str, severity: Severity, text: str, steps: tuple[Step, ...] = ()) -> Finding:
    evidence = (*_speech(site), f"the load balancer of {site.provider.name} {site.sends.value}")
    return Finding(ident, severity, text, site.about, evidence, steps, site.road.hostnames)

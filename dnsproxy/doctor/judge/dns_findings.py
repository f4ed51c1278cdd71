"""The findings about the stanza, dnsproxy and its table.

The law: written, loaded and answering are three states; the first that is wrong is reported with its remedy, and its
consequences are not. Tested in tests/dnsproxy/doctor/judge/test_diagnose.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Final

from dnsproxy.corefile.model import listed
from dnsproxy.corefile.upstream_routes import UpstreamRoute, differences
from dnsproxy.corefile.zones import ROOT
from dnsproxy.dns.wire import DNS_PORT
from dnsproxy.doctor.facts.cluster_dns import ClusterDns, Stanza
from dnsproxy.doctor.facts.model import Admin, Facts, OwnService
from dnsproxy.doctor.judge.answering_lines import before_probes
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity, Unseen
from dnsproxy.doctor.judge.installation import is_automatic
from dnsproxy.doctor.judge.remedies import STATUS, UNINSTALL, deploy_line, look_from_inside, quoted
from sidecar.values.endpoints import parse_endpoint

STALE_SECONDS: Final = 300.0
"""A watch is renewed every 45 seconds, so a source without contact for this long is lost."""
_INSTALL: Final = ("dnsproxy install", "dnsproxy status")
_LOG_OF_OPERATE: Final = "kubectl -n switchback logs deploy/operate --tail=50"


def judge_dns(facts: Facts, *, needed: bool) -> Iterator[Finding | Unseen]:
    """The findings about stanza and dnsproxy; `needed`: pods fail without them."""
    dns = facts.dns or ClusterDns()
    part = facts.dnsproxy or OwnService("switchback/dnsproxy")
    for stanza in dns.stanzas:
        if stanza.fault:
            yield _damaged(stanza)
    whole = tuple(stanza for stanza in dns.stanzas if not stanza.fault)
    answers = {asked.state for asked in facts.answers}
    loaded = {asked.state for asked in facts.loaded}
    works = bool(loaded) and loaded == {"yes"}
    if not dns.stanzas and part.found and needed and not works:
        yield _missing(facts, part)
    down: tuple[Finding, ...] = ()
    if only_rewrites(whole):
        down = tuple(_judge_source(part, deploy_line(facts)))
    elif whole or part.found:
        down = tuple(_judge_part(part, whole, answers, deploy_line(facts)))
    yield from down
    bypassed = bool(whole) and not works and _is_bypassed(dns, whole)
    if bypassed:
        yield _bypassed(dns, whole)
    if whole and not works and not bypassed and (not down or only_rewrites(whole)):
        yield from _judge_loaded(facts, loaded, whole)
    if works:
        yield _loaded(facts, whole)
    if not only_rewrites(whole):
        yield from _judge_upstreams(facts, dns, whole)
    for page in facts.admin:
        if page.program == "dnsproxy":
            yield from _judge_page(page)


def only_rewrites(stanzas: Sequence[Stanza]) -> bool:
    """Whether the cluster's DNS has rewrite lines of ours, and asks dnsproxy for nothing."""
    return bool(stanzas) and all(stanza.marker for stanza in stanzas)


def _damaged(stanza: Stanza) -> Finding:
    text = f"the stanza in {stanza.target} is damaged: {stanza.fault}"
    steps = (Remedy("remove what is left of it, and install it again", ("dnsproxy uninstall", *_INSTALL)),)
    return Finding("stanza-damaged", Severity.PROBLEM, text, "Switchback", steps=steps)


def _missing(facts: Facts, part: OwnService) -> Finding:
    where = facts.dns.where if facts.dns and facts.dns.where else "the cluster's DNS"
    text = f"dnsproxy is deployed, but {where} does not ask it: there is no stanza"
    evidence = (f"Service {part.key} at {', '.join(part.addresses) or 'no address'}",)
    if is_automatic(part):
        # operate would have written it.
        steps: tuple[Remedy, ...] = (Remedy("operate writes it; see why it did not", (STATUS, _LOG_OF_OPERATE)),)
    else:
        watching = "if another controller removes it again, let a watcher restore it"
        steps = (Remedy("install the stanza", _INSTALL), Remedy(watching, ("dnsproxy install --watch",)))
    return Finding("stanza-missing", Severity.PROBLEM, text, "Switchback", evidence, steps)


def _judge_part(part: OwnService, stanzas: tuple[Stanza, ...], answers: set[str], deploy: str) -> Iterator[Finding]:
    """The first cause that keeps dnsproxy from being asked."""
    asked = tuple(dict.fromkeys(address for stanza in stanzas for address in stanza.addresses))
    hosts = {_host(address) for address in asked}
    namespace, name = quoted(part.key)
    steps: tuple[Remedy, ...]
    if part.loop:
        text = f"dnsproxy asks the cluster's DNS, which asks dnsproxy: {part.loop}"
        steps = (
            Remedy(
                "give its pods the node's nameservers, or name others",
                ("dnsPolicy: Default", "# or --upstream ADDRESS"),
            ),
        )
        yield _finding("dns-loop", text, steps=steps)
    elif part.found is False and asked and "yes" not in answers:
        text = f"the stanza forwards to {', '.join(asked)}, but Service {part.key} does not exist"
        steps = (
            Remedy("deploy dnsproxy again", (deploy,)),
            Remedy("or uninstall the stanza", (UNINSTALL,)),
        )
        yield _finding("dnsproxy-missing", text, steps=steps)
    elif part.found and part.ready == 0:
        text = f"no pod of Service {part.key} is ready, so names are answered as without Switchback"
        lines = (f"kubectl -n {namespace} get pods", f"kubectl -n {namespace} logs deploy/{name} --tail=50")
        yield _finding("dnsproxy-down", text, steps=(Remedy("see why", lines),))
    elif part.found and asked and part.addresses and hosts.isdisjoint(part.addresses) and "yes" not in answers:
        text = f"the stanza forwards to {', '.join(asked)}, but dnsproxy is at {', '.join(part.addresses)}"
        yield _finding("stanza-address", text, steps=(Remedy("write the new address", _INSTALL),))
    elif answers and answers <= {"no", "silent"}:
        text = "dnsproxy does not answer at the address in the stanza"
        lines = (f"kubectl -n {namespace} get pods,endpointslices", f"kubectl -n {namespace} get networkpolicies")
        yield _finding("dnsproxy-silent", text, (", ".join(asked),), (Remedy("see what blocks it", lines),))


def _judge_source(part: OwnService, deploy: str) -> Iterator[Finding]:
    """What keeps rewrite lines from following dnsproxy's table: no query comes to it, so nothing else of it matters."""
    namespace, name = quoted(part.key)
    stays = "so the rewrite lines of the cluster's DNS stay as they are"
    if part.found is False:
        steps = (
            Remedy("deploy dnsproxy again", (deploy,)),
            Remedy("or uninstall the lines", (UNINSTALL,)),
        )
        yield _finding("dnsproxy-missing", f"Service {part.key} does not exist, {stays}", steps=steps)
    elif part.found and part.ready == 0:
        lines = (f"kubectl -n {namespace} get pods", f"kubectl -n {namespace} logs deploy/{name} --tail=50")
        text = f"no pod of Service {part.key} is ready, {stays}"
        yield _finding("dnsproxy-down", text, steps=(Remedy("see why", lines),))


def _is_bypassed(dns: ClusterDns, stanzas: tuple[Stanza, ...]) -> bool:
    """Whether pods ask a cache that does not forward public names to the server with our stanza."""
    if not dns.node_local or dns.node_local_passes_on:
        return False
    return not any(stanza.target.endswith(config_map) for stanza in stanzas for config_map in dns.decides)


def _bypassed(dns: ClusterDns, stanzas: tuple[Stanza, ...]) -> Finding:
    text = (
        f"pods ask {dns.node_local} at {', '.join(dns.node_local_addresses) or 'an address of the node'}, which does "
        "not forward public names to the server with the stanza"
    )
    evidence = tuple(f"the stanza is in {stanza.target}" for stanza in stanzas)
    steps = (
        Remedy(
            "install into the configuration of that cache: it takes stubDomains",
            ("dnsproxy install --method stub-domains",),
        ),
    )
    return _finding("node-local-bypass", text, evidence, steps)


def _judge_loaded(facts: Facts, loaded: set[str], stanzas: tuple[Stanza, ...]) -> Iterator[Finding | Unseen]:
    evidence = tuple(f"{asked.endpoint} for {asked.zone}: {asked.said}" for asked in facts.loaded)
    written = ", ".join(stanza.target for stanza in stanzas)
    if loaded & {"no", "partly"}:
        text = f"the stanza is written into {written}, but the cluster's DNS does not use it"
        server = facts.dns.where if facts.dns else ""
        kind, _, key = server.partition(" ")
        namespace, name = quoted(key)
        lines = (f"kubectl -n {namespace} rollout restart {quote(kind.lower())} {name}",) if "/" in key else ()
        before = before_probes(facts)
        steps = (
            *([Remedy(f"{listed(before)} answers before the stanza is asked: correct or remove it")] if before else ()),
            Remedy("a ConfigMap takes up to two minutes to reach pods; then see why", ("dnsproxy status",)),
            *([Remedy("without the plugin reload, a Corefile takes a restart", lines)] if lines else []),
        )
        yield Finding("stanza-not-loaded", Severity.PROBLEM, text, "Switchback", evidence, steps)
    else:
        why = (
            "nothing was asked from this machine"
            if not facts.probed
            else "the cluster's DNS does not answer this machine"
        )
        steps = (
            look_from_inside(facts),
            Remedy("or ask in the cluster", (STATUS,)),
        )
        yield Unseen(f"whether the stanza in {written} is loaded", why, steps)


def _loaded(facts: Facts, stanzas: tuple[Stanza, ...]) -> Finding:
    evidence = tuple(f"{asked.endpoint} for {asked.zone}: {asked.said}" for asked in facts.loaded)
    written = ", ".join(stanza.target for stanza in stanzas) or "a configuration without our markers"
    does = "rewrites names to their Services" if only_rewrites(stanzas) else "asks dnsproxy"
    return Finding("loaded", Severity.OK, f"the cluster's DNS {does} ({written})", "Switchback", evidence)


def _judge_upstreams(facts: Facts, dns: ClusterDns, stanzas: tuple[Stanza, ...]) -> Iterator[Finding | Unseen]:
    """Whether dnsproxy forwards all other names where the cluster's DNS would."""
    asked = [one for one in (*facts.answers, *facts.loaded) if one.state in ("yes", "partly")]
    if not asked or not dns.upstreams:
        return
    zones = tuple(zone for stanza in stanzas for zone in stanza.zones) or (ROOT,)
    reports = dict.fromkeys(report for one in asked for report in one.forwards)
    before = tuple(
        UpstreamRoute(one.zone, one.upstreams, one.excepted, fault=one.fault, line=one.line) for one in dns.upstreams
    )
    try:
        found = tuple(dict.fromkeys(text for report in reports for text in differences(zones, before, report)))
    except ValueError:
        reports, found = {}, ()
    if not reports:
        yield Unseen("where dnsproxy forwards all other names", "its version does not report it", matters=False)
    if found:
        text = "dnsproxy forwards other names to other upstreams than the cluster's DNS does without it"
        lines = (f"dnsproxy serve --upstream-configmap {dns.upstreams_in}", "# or --upstream ADDRESS")
        steps = (Remedy("let it follow them, or name upstreams of your own", lines),)
        yield _finding("upstreams-differ", text, found, steps, Severity.WARNING)


def _judge_page(page: Admin) -> Iterator[Finding]:
    """The findings about one pod of dnsproxy."""
    stale = {source: age for source, age in page.ages.items() if age > STALE_SECONDS}
    if page.ready is False:
        text = f"dnsproxy at {page.where} is not ready: {page.text}"
        yield _finding("dnsproxy-not-ready", text, severity=Severity.WARNING)
    if stale:
        said = ", ".join(f"{source} for {age:.0f} s" for source, age in sorted(stale.items()))
        text = f"the table of dnsproxy at {page.where} is stale: no contact with {said}"
        lines = ("kubectl -n switchback logs deploy/dnsproxy --tail=50", "kubectl -n switchback get networkpolicies")
        steps = (Remedy("see why it does not reach the API server", lines),)
        yield _finding("table-stale", text, steps=steps, severity=Severity.WARNING)
    if page.waiting_names:
        why = "because their target has no address or no ready endpoint"
        text = f"{page.waiting_names} names are claimed, but forwarded, {why}"
        lines = ("kubectl -n switchback exec deploy/dnsproxy -- dnsproxy table", "kubectl -n switchback get pods")
        steps = (Remedy("see which target", lines),)
        yield _finding("target-without-address", text, steps=steps)
    if page.unhealthy_upstreams:
        text = f"dnsproxy at {page.where} reports unhealthy upstreams: {', '.join(page.unhealthy_upstreams)}"
        yield _finding("upstream-unwell", text, severity=Severity.WARNING)


def _finding(
    ident: str,
    text: str,
    evidence: tuple[str, ...] = (),
    steps: tuple[Remedy, ...] = (),
    severity: Severity = Severity.PROBLEM,
) -> Finding:
    return Finding(ident, severity, text, "Switchback", evidence, steps)


def _host(address: str) -> str:
    try:
        return parse_endpoint(address, default_port=DNS_PORT).host
    except ValueError:
        return address

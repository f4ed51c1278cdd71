"""Diagnoses of whole clusters, mostly of our own parts: one fault at a time gives its finding and no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dnsproxy.doctor.facts.cluster_dns import OriginalUpstreams, Stanza
from dnsproxy.doctor.facts.model import Admin, BalancerAddress, Class, Facts, Host, OwnService
from dnsproxy.doctor.facts.probes import DnsCheck, Lookup, Outcome
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import Severity
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import (
    ACCEPTS,
    BALANCER,
    CONTROLLER,
    DNS,
    DNSPROXY,
    HOST,
    REJECTS,
    RELAY,
    REQUIRES,
    STANZA,
    answering,
    bad,
    controller_probes,
    ids,
    installed,
    lines,
    named,
    relay_probe,
    service,
    steering,
)

LOADED = (DnsCheck(f"{DNS}:53", ".", "yes", "8 of 8 dnsproxy"),)
NOT_LOADED = (DnsCheck(f"{DNS}:53", ".", "no", "8 of 8 NXDOMAIN"),)
PUBLIC = (Lookup(HOST, "cluster", f"{DNS}:53", (BALANCER,)),)
SILENT = (DnsCheck(f"{DNSPROXY}:53", ".", "silent", "8 of 8 no answer"),)


def dns(seen: Facts, **fields: Any) -> Facts:
    assert seen.dns is not None
    return replace(seen, dns=replace(seen.dns, **fields))


def dnsproxy(seen: Facts, **fields: Any) -> Facts:
    assert seen.dnsproxy is not None
    return replace(seen, dnsproxy=replace(seen.dnsproxy, **fields))


def relay(seen: Facts, **fields: Any) -> Facts:
    assert seen.relay is not None
    return replace(seen, relay=replace(seen.relay, **fields))


def asked(seen: Facts, **fields: Any) -> Facts:
    """Without a working stanza, names resolve to the load balancer."""
    return replace(seen, lookups=PUBLIC, loaded=NOT_LOADED, **fields)


def relay_ready_without(seen: Facts, backend: str) -> Facts:
    """The relay is ready, and says that it does not reach this backend."""
    text = f"ready, 1 of 2 routes; backend unreachable (timeout): {backend}: no connection within 2 s"
    return replace(seen, admin=(Admin("relay", "pod a/b", True, text),))


def without_relay_probe(seen: Facts, outcome: Outcome) -> Facts:
    return replace(seen, probes=(*controller_probes_of(seen), relay_probe(outcome)))


def controller_probes_of(seen: Facts) -> tuple[Any, ...]:
    return tuple(probe for probe in seen.probes if probe.address == CONTROLLER)


NODE_LOCAL = {"node_local": "DaemonSet kube-system/node-local-dns", "node_local_addresses": ("169.254.20.10",)}
HINT = "short-circuited"

FAULTS: list[Any] = [
    pytest.param(lambda one: dns(asked(one), stanzas=()), {"stanza-missing", HINT}, id="the stanza was removed"),
    pytest.param(
        lambda one: dns(asked(one), stanzas=(replace(STANZA, fault="line 3: no END marker"),)),
        {"stanza-damaged", HINT},
        id="the stanza is damaged",
    ),
    pytest.param(asked, {"stanza-not-loaded", HINT}, id="the stanza is not loaded"),
    pytest.param(
        lambda one: dns(asked(one), decides=("kube-system/node-local-dns",), **NODE_LOCAL),
        {"node-local-bypass", HINT},
        id="node-local-dns in between",
    ),
    pytest.param(
        lambda one: dnsproxy(asked(one, answers=SILENT), ready=0), {"dnsproxy-down", HINT}, id="dnsproxy has no pod"
    ),
    pytest.param(lambda one: asked(one, answers=SILENT), {"dnsproxy-silent", HINT}, id="dnsproxy does not answer"),
    pytest.param(
        lambda one: dnsproxy(asked(one, answers=SILENT), addresses=("10.96.0.77",)),
        {"stanza-address", HINT},
        id="the wrong ClusterIP",
    ),
    pytest.param(
        lambda one: replace(asked(one, answers=SILENT), dnsproxy=OwnService("switchback/dnsproxy", found=False)),
        {"dnsproxy-missing", HINT},
        id="no Service of dnsproxy",
    ),
    pytest.param(
        lambda one: dnsproxy(asked(one), loop="Deployment a/b forwards to 10.96.0.10, the cluster's DNS"),
        {"dns-loop", HINT},
        id="a loop",
    ),
    pytest.param(
        lambda one: replace(one, admin=(Admin("dnsproxy", "pod a/b", True, "ready", {"Ingress": 900.0}),)),
        {"table-stale"},
        id="the table is stale",
    ),
    pytest.param(
        lambda one: replace(one, admin=(Admin("dnsproxy", "pod a/b", False, "waiting for Ingress"),)),
        {"dnsproxy-not-ready"},
        id="dnsproxy is not ready",
    ),
    pytest.param(
        lambda one: replace(one, admin=(Admin("dnsproxy", "pod a/b", True, "ready", waiting_names=3),)),
        {"target-without-address"},
        id="its target has no address",
    ),
    pytest.param(
        lambda one: replace(one, admin=(Admin("dnsproxy", "a", True, unhealthy_upstreams=("192.0.2.53:53",)),)),
        {"upstream-unwell"},
        id="an upstream is dead",
    ),
    pytest.param(
        lambda one: replace(
            dns(one, upstreams_in="kube-system/coredns", upstreams=(OriginalUpstreams(".", ("192.0.2.53",)),)),
            answers=(DnsCheck(f"{DNSPROXY}:53", ".", "yes", forwards=(". /etc/resolv.conf",)),),
        ),
        {"upstreams-differ"},
        id="it forwards elsewhere",
    ),
    pytest.param(
        lambda one: replace(one, relay=OwnService("switchback/relay", found=False), lookups=PUBLIC),
        {"relay-missing", "not-answered", HINT},
        id="no relay",
    ),
    pytest.param(lambda one: relay(one, ready=0), {"relay-down"}, id="the relay has no pod"),
    pytest.param(
        lambda one: replace(one, admin=(Admin("relay", "pod a/b", False, "backend unreachable (dns-nxdomain): x"),)),
        {"relay-backend"},
        id="the relay's backend is wrong",
    ),
    pytest.param(
        lambda one: relay_ready_without(one, "ingress-nginx-controller.ingress-nginx.svc:443"),
        {"relay-backend"},
        id="another route works",
    ),
    pytest.param(
        lambda one: relay(one, settings={"PROXY_ROUTE": "8080=other.elsewhere.svc:80"}),
        {"relay-backend-other"},
        id="the relay routes to another controller",
    ),
    pytest.param(
        lambda one: without_relay_probe(one, Outcome.BAD_REQUEST), {"relay-header-unwanted"}, id="answered with 400"
    ),
    pytest.param(
        lambda one: without_relay_probe(one, Outcome.GARBAGE), {"relay-header-unwanted"}, id="a 400 to a handshake"
    ),
    pytest.param(lambda one: without_relay_probe(one, Outcome.CLOSED), {"relay-unanswered"}, id="closed"),
    pytest.param(lambda one: without_relay_probe(one, Outcome.REFUSED), {"relay-unreachable"}, id="refused"),
    pytest.param(
        lambda one: replace(one, services=(_trusting("192.168.0.0/16"),)), {"relay-not-trusted"}, id="not trusted"
    ),
    pytest.param(lambda one: replace(one, lookups=PUBLIC), {"not-answered", HINT}, id="a name that is not answered"),
]


def _trusting(networks: str) -> Any:
    settings = {"use-proxy-protocol": "true", "proxy-real-ip-cidr": networks}
    return service(settings=settings, settings_from="ConfigMap ingress-nginx/ingress-nginx-controller")


@pytest.mark.parametrize(("with_fault", "expected"), FAULTS)
def test_a_fault_gives_its_finding_and_no_other(with_fault: Callable[[Facts], Facts], expected: set[str]) -> None:
    assert bad(judge(installed())) == set()
    diagnosis = judge(with_fault(installed()))
    assert bad(diagnosis) == expected
    assert diagnosis.status == 1
    for finding in diagnosis.findings:
        if finding.id in expected - {"upstream-unwell", "dnsproxy-not-ready"}:
            assert finding.steps, f"{finding.id} says nothing of what to do"


OPERATE = "kubectl -n switchback exec deploy/operate -- dnsproxy status"
STEERING_FAULTS = [
    pytest.param(lambda one: relay(one, ready=0), {"relay-down"}, id="the relay has no pod"),
    pytest.param(
        lambda one: replace(one, admin=(Admin("relay", "pod a/b", False, "backend unreachable (no-endpoints): x"),)),
        {"relay-backend"},
        id="its backend has no pod",
    ),
    pytest.param(
        lambda one: without_relay_probe(one, Outcome.BAD_REQUEST), {"relay-header-unwanted"}, id="answered with 400"
    ),
    pytest.param(lambda one: replace(one, lookups=PUBLIC), {"not-answered", HINT}, id="not steered"),
    pytest.param(
        lambda one: replace(relay(one, routes=(), addresses=(), ready=None, pods=()), lookups=PUBLIC),
        {"not-answered", HINT},
        id="nothing is steered",
    ),
    pytest.param(
        lambda one: asked(dns(one, stanzas=()), answers=()), {"stanza-missing", HINT}, id="the stanza is not written"
    ),
]


@pytest.mark.parametrize(("with_fault", "expected"), STEERING_FAULTS)
def test_a_fault_of_an_installation_that_steers_leads_to_what_operate_says(
    with_fault: Callable[[Facts], Facts], expected: set[str]
) -> None:
    assert bad(judge(steering())) == set()
    diagnosis = judge(with_fault(steering()))
    assert bad(diagnosis) == expected
    told = [line for finding in diagnosis.findings if finding.id in expected for line in lines(finding)]
    assert not any("PROXY_ROUTE" in line or line == "dnsproxy install" for line in told)
    assert OPERATE in told or expected == {"relay-down"}


def test_a_relay_without_a_ready_pod_costs_its_names_their_answers_and_says_so() -> None:
    finding = named(judge(relay(steering(), ready=0)), "relay-down")
    assert finding.text == "no pod of the relay is ready, so names that lead to it are forwarded"


@pytest.mark.parametrize(
    ("backend", "severity"),
    [
        ("git.example.org:22", Severity.WARNING),
        ("service:web/git:ssh", Severity.WARNING),
        ("[2001:db8::1]:22", Severity.WARNING),
        ("ingress-nginx-controller.ingress-nginx.svc:443", Severity.PROBLEM),
        ("service:ingress-nginx/ingress-nginx-controller:https", Severity.PROBLEM),
    ],
)
def test_a_failing_route_of_a_ready_relay_is_a_problem_only_if_the_hosts_need_it(
    backend: str, severity: Severity
) -> None:
    (finding,) = (one for one in judge(relay_ready_without(installed(), backend)).findings if one.id == "relay-backend")
    assert finding.severity is severity
    assert backend in finding.text


def test_of_a_relay_that_follows_services_the_first_line_counts() -> None:
    text = (
        "ready, 1 of 2 routes; backend unreachable (timeout): git.example.org:22: no connection within 2 s\n"
        "route Services: watching\n"
        "fault of switchback/a: it has no port"
    )
    seen = replace(installed(), admin=(Admin("relay", "pod a/b", True, text),))
    (finding,) = (one for one in judge(seen).findings if one.id == "relay-backend")
    assert "switchback/a" not in finding.text


def test_a_class_whose_controller_rejects_the_header_must_not_use_the_relay() -> None:
    plain = service(key="traefik/traefik", points=(BalancerAddress(ip="203.0.113.20"),), cluster_ips=("10.96.0.81",))
    host = Host("plain.example.org", "Ingress web/plain", "traefik", ("203.0.113.20",))
    probes = tuple(replace(probe, address="10.96.0.81") for probe in controller_probes(REJECTS))
    seen = installed()
    seen = replace(
        seen,
        services=(*seen.services, plain),
        hosts=(*seen.hosts, host),
        probes=(*seen.probes, *probes),
        lookups=(*seen.lookups, Lookup(host.hostname, "cluster", f"{DNS}:53", (RELAY,))),
        classes=(Class("traefik", "traefik.io/ingress-controller"),),
    )
    finding = named(judge(seen), "wrong-class")
    assert bad(judge(seen)) == {"wrong-class"}
    assert finding.hosts == ("plain.example.org",)
    assert lines(finding) == ["DNSPROXY_TARGET_FOR=traefik=service:traefik/traefik"]


@pytest.mark.parametrize(
    ("networks", "trusted"),
    [
        ("10.244.0.0/16", True),
        ("0.0.0.0/0", True),
        ("192.168.0.0/16, 10.0.0.0/8", True),
        ("10.244.0.6", True),
        ("10.244.0.7/32", False),
        ("192.168.0.0/16", False),
        ("fd00::/8", False),
        ("not a network", True),
        ("", True),
    ],
)
def test_trust_depends_on_networks(networks: str, trusted: bool) -> None:
    diagnosis = judge(replace(installed(), services=(_trusting(networks),)))
    assert ("relay-not-trusted" not in ids(diagnosis)) is trusted


def test_a_controller_that_takes_no_header_from_strangers_rejects_the_relay() -> None:
    haproxy = service(settings={"proxy-protocol": "192.168.0.0/16"}, settings_from="x", program="kubernetes-ingress")
    finding = named(judge(replace(installed(), services=(haproxy,))), "relay-not-trusted")
    assert finding.severity is Severity.PROBLEM
    assert "it rejects the header" in finding.text


def test_the_line_that_trusts_the_relay_keeps_the_trusted_networks() -> None:
    diagnosis = judge(replace(installed(), services=(_trusting("192.168.0.0/16"),)))
    assert lines(named(diagnosis, "relay-not-trusted")) == ['proxy-real-ip-cidr: "192.168.0.0/16,10.244.0.0/16"']


def test_node_local_dns_is_no_fault_if_it_has_the_stanza() -> None:
    target = "stubDomains in ConfigMap kube-system/kube-dns"
    stanza = Stanza(target, "stub-domains", ("example.org.",), (f"{DNSPROXY}:53",))
    seen = dns(installed(), stanzas=(stanza,), decides=("kube-system/kube-dns",), **NODE_LOCAL)
    assert bad(judge(seen)) == set()
    unloaded = judge(asked(seen))
    assert "node-local-bypass" not in ids(unloaded)
    assert "stanza-not-loaded" in ids(unloaded)


def test_a_cache_that_forwards_names_is_no_fault() -> None:
    seen = dns(asked(installed()), node_local_passes_on=True, **NODE_LOCAL)
    assert "node-local-bypass" not in ids(judge(seen))


def test_an_installation_without_our_markers_works() -> None:
    assert bad(judge(dns(installed(), stanzas=()))) == set()


def test_outside_the_cluster_a_complete_installation_is_neither_healthy_nor_faulty() -> None:
    seen = replace(installed(), probed=False, probes=(), lookups=(), loaded=(), answers=())
    diagnosis = judge(seen)
    assert bad(diagnosis) == set()
    assert diagnosis.status == ExitStatus.UNKNOWN
    assert "is loaded" in diagnosis.unseen[-1].what


def test_an_answer_with_the_controllers_own_address_is_as_good_as_the_relays() -> None:
    seen = replace(installed(), lookups=(answering(CONTROLLER),))
    assert bad(judge(replace(seen, probes=controller_probes(ACCEPTS)))) == set()
    assert bad(judge(replace(seen, probes=controller_probes(REQUIRES)))) == {"header-lost"}


@pytest.mark.parametrize(
    ("forwards", "seen"),
    [
        pytest.param((". 192.0.2.53",), True, id="the same"),
        pytest.param((), False, id="an older version"),
        pytest.param(("..",), False, id="a version to come"),
    ],
)
def test_equal_upstreams_are_no_finding_and_an_unknown_report_is_unseen(
    forwards: tuple[str, ...],
    seen: bool,
) -> None:
    there = dns(installed(), upstreams_in="kube-system/coredns", upstreams=(OriginalUpstreams(".", ("192.0.2.53",)),))
    diagnosis = judge(replace(there, answers=(DnsCheck(f"{DNSPROXY}:53", ".", "yes", forwards=forwards),)))
    assert "upstreams-differ" not in ids(diagnosis)
    assert ("where dnsproxy forwards all other names" in {one.what for one in diagnosis.unseen}) is not seen


MARKER = "0123456789abcdef._switchback-rewrites.cluster.local"
LINES = Stanza("switchback.override in ConfigMap kube-system/coredns-custom", "override-rewrites", marker=MARKER)


def rewriting(**fields: Any) -> Facts:
    """A cluster whose DNS has rewrite lines, and asks dnsproxy for nothing."""
    there = dns(installed(), stanzas=(LINES,), upstreams=(OriginalUpstreams(".", ("192.0.2.53",)),))
    differs = (DnsCheck(f"{DNSPROXY}:53", ".", "yes", forwards=(". 192.0.2.9",)),)
    loaded = (DnsCheck(f"{DNS}:53", MARKER, "yes", "8 of 8 rewritten"),)
    return replace(there, **{"loaded": loaded, "answers": differs, **fields})


def test_rewrite_lines_that_are_loaded_are_healthy_wherever_dnsproxy_forwards() -> None:
    diagnosis = judge(rewriting())
    assert bad(diagnosis) == set()
    assert named(diagnosis, "loaded").text.startswith("the cluster's DNS rewrites names to their Services (switchback.")


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        pytest.param({"answers": (DnsCheck(f"{DNSPROXY}:53", ".", "silent"),)}, set(), id="dnsproxy answers no query"),
        pytest.param({"dnsproxy": OwnService("switchback/dnsproxy", True, loop="it loops")}, set(), id="a loop"),
        pytest.param({"dnsproxy": OwnService("switchback/dnsproxy", True, ready=0)}, {"dnsproxy-down"}, id="no pod"),
        pytest.param({"dnsproxy": OwnService("switchback/dnsproxy", found=False)}, {"dnsproxy-missing"}, id="gone"),
        pytest.param({"loaded": (DnsCheck(f"{DNS}:53", MARKER, "no"),)}, {"stanza-not-loaded"}, id="not loaded"),
    ],
)
def test_rewrite_lines_need_dnsproxy_only_as_their_source(fields: dict[str, Any], found: set[str]) -> None:
    assert bad(judge(rewriting(**fields))) == found


def test_a_host_that_is_not_rewritten_is_looked_for_with_status() -> None:
    finding = named(judge(rewriting(lookups=PUBLIC)), "not-answered")
    assert finding.text == "the cluster's DNS rewrites names to their Services, but not these hosts"
    assert lines(finding) == ["dnsproxy status"]


def test_no_text_of_a_diagnosis_is_longer_than_people_read() -> None:
    long = "x" * 200_000
    seen = installed(probes=controller_probes(REQUIRES))
    seen = dns(replace(seen, hostname=HOST), stanzas=(replace(STANZA, fault=long),), node_local=long)
    found = judge(replace(seen, rejected=(f"{HOST}: {long}",)))
    texts = [found.verdict, *found.path]
    texts += [text for one in found.findings for text in (one.text, one.about, *one.evidence)]
    texts += [text for one in found.unseen for text in (one.what, one.why)]
    assert any(text.startswith("the stanza in") and long[:500] in text for text in texts)
    assert max(map(len, texts)) < 1_100

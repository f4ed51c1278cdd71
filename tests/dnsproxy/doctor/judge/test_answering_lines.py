"""Lines of others in the cluster's DNS that answer hosts, with and without a stanza."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dnsproxy.corefile.taken_names import Match
from dnsproxy.doctor.facts.cluster_dns import AnsweringLine, LineNames
from dnsproxy.doctor.facts.model import Facts, Host, OwnService
from dnsproxy.doctor.facts.probes import DnsCheck, Lookup, Outcome
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import Severity, format_document
from dnsproxy.doctor.printing import format_diagnosis
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import (
    BALANCER,
    CLOSED,
    CONTROLLER,
    DNS,
    HOST,
    KEY,
    RELAY,
    REQUIRES,
    ROUTE,
    SERVED,
    STANZA,
    STRANGE,
    UNSEEN,
    answering,
    bad,
    facts,
    ids,
    installed,
    lines,
    named,
    probes_at,
    service,
    steering,
)

PLACE = "Corefile in ConfigMap kube-system/coredns, line 7"
HOSTS = AnsweringLine(f"hosts ({PLACE})", Match.EXACT, f"{HOST}.", STRANGE, f"{STRANGE} {HOST}")


def rewrite(to: str) -> AnsweringLine:
    return AnsweringLine(f"rewrite ({PLACE})", Match.EXACT, f"{HOST}.", to, f"rewrite name {HOST} {to}")


def with_lines(seen: Facts, *found: AnsweringLine, **fields: Any) -> Facts:
    assert seen.dns is not None
    return replace(seen, dns=replace(seen.dns, lines=found), **fields)


def led_by(line: AnsweringLine, address: str, outcomes: tuple[Outcome, ...], *, own: str = RELAY) -> Facts:
    """An installation where a line gives pods an address, and dnsproxy has another one."""
    seen = installed()
    return with_lines(
        seen,
        line,
        lookups=(answering(address),),
        own_lookups=(answering(own, server="dnsproxy"),) if own else (),
        probes=(*seen.probes, *(probes_at(address, outcomes) if address != CONTROLLER else ())),
    )


@pytest.mark.parametrize(
    ("line", "address", "outcomes"),
    [
        pytest.param(HOSTS, STRANGE, CLOSED, id="an address that serves only with the header"),
        pytest.param(HOSTS, STRANGE, (Outcome.REFUSED,), id="a dead address"),
        pytest.param(rewrite("controller.web.svc.cluster.local"), CONTROLLER, REQUIRES, id="the controller itself"),
        pytest.param(HOSTS, BALANCER, REQUIRES, id="the load balancer"),
    ],
)
def test_a_line_by_which_pods_fail_is_the_first_problem(
    line: AnsweringLine, address: str, outcomes: tuple[Outcome, ...]
) -> None:
    diagnosis = judge(led_by(line, address, outcomes))
    finding = diagnosis.findings[0]
    assert (finding.id, finding.severity, finding.hosts) == ("answered-before", Severity.PROBLEM, (HOST,))
    assert finding.text.startswith(f"{line.what} answers {HOST} before the stanza is asked, and ")
    assert finding.evidence == (f"{HOST}: {line.what}: {line.text}", f"dnsproxy answers {HOST} with {RELAY}")
    assert lines(finding) == ["kubectl -n kube-system edit configmap coredns", "dnsproxy status"]
    assert line.what in diagnosis.verdict
    # Nothing is wrong with dnsproxy, which is not asked.
    assert "not-answered" not in ids(diagnosis)


def test_a_line_that_answers_with_no_address_is_a_problem() -> None:
    seen = with_lines(installed(), replace(HOSTS, gives=""), lookups=(answering(),))
    assert judge(seen).findings[0].id == "answered-before"
    wild = replace(seen, hosts=(replace(seen.hosts[0], hostname="*.example.org"),))
    assert "answered-before" not in bad(judge(replace(wild, lookups=(answering(hostname="*.example.org"),))))


def test_a_line_that_leads_to_the_controller_of_others_is_a_problem() -> None:
    other = service(key="other/controller", cluster_ips=("10.96.0.81",), points=())
    seen = led_by(rewrite("controller.other.svc.cluster.local"), "10.96.0.81", SERVED)
    at_other = tuple(replace(one, status=404) for one in probes_at("10.96.0.81", SERVED))
    own = tuple(replace(one, status=200) if one.outcome is Outcome.ANSWERED else one for one in installed().probes)
    seen = replace(seen, services=(*seen.services, other), probes=(*own, *at_other))
    assert {"answered-before", "wrong-server"} <= bad(judge(seen))


def test_a_line_that_gives_what_dnsproxy_answers_is_no_finding() -> None:
    assert judge(led_by(rewrite("relay.switchback.svc.cluster.local"), RELAY, ())) == judge(installed())
    for address in (STRANGE, BALANCER):
        assert "answered-before" not in ids(judge(led_by(HOSTS, address, CLOSED, own=address)))


@pytest.mark.parametrize("own", [STRANGE, BALANCER], ids=["the same answer", "another at which pods fail"])
def test_a_line_is_not_blamed_where_dnsproxys_own_answer_fails_too_and_that_is_told(own: str) -> None:
    seen = led_by(HOSTS, STRANGE, CLOSED, own=own)
    seen = replace(seen, lookups=(answering(STRANGE, BALANCER),), probes=(*seen.probes, *probes_at(BALANCER, CLOSED)))
    seen = replace(seen, lookups=(answering(STRANGE),)) if own == STRANGE else seen
    diagnosis = judge(seen)
    assert "answered-before" not in ids(diagnosis)
    assert "not-answered" in ids(diagnosis)


@pytest.mark.parametrize(
    "own",
    [
        pytest.param((), id="dnsproxy was not asked"),
        pytest.param((Lookup(HOST, "dnsproxy", "10.96.0.53:53", fault="no answer"),), id="no answer"),
        pytest.param((Lookup(HOST, "dnsproxy", "10.96.0.53:53", (STRANGE,), partial="AAAA: x"),), id="half an answer"),
    ],
)
def test_a_dnsproxy_without_an_answer_is_not_the_same(own: tuple[Lookup, ...]) -> None:
    seen = replace(led_by(HOSTS, STRANGE, CLOSED), own_lookups=own)
    assert "answered-before" in bad(judge(seen))


def test_a_line_whose_answer_serves_pods_is_named_and_no_fault() -> None:
    diagnosis = judge(led_by(rewrite("hairpin-proxy.hairpin-proxy.svc.cluster.local"), STRANGE, SERVED))
    finding = named(diagnosis, "answered-before")
    assert (finding.severity, diagnosis.status) == (Severity.INFO, ExitStatus.DONE)
    assert "this answer serves pods" in finding.text


def test_a_line_is_not_blamed_for_a_dead_relay_or_a_dead_controller() -> None:
    at_relay = led_by(rewrite("x.y.svc.cluster.local"), RELAY, ())
    dead_relay = replace(at_relay, own_lookups=(), probes=(*facts().probes, *probes_at(RELAY, (Outcome.REFUSED,))))
    assert named(judge(dead_relay), "answered-before").severity is Severity.WARNING
    gone = (*probes_at(CONTROLLER, (Outcome.REFUSED,) * 3), *probes_at(STRANGE, CLOSED))
    assert named(judge(replace(led_by(HOSTS, STRANGE, CLOSED), probes=gone)), "answered-before").severity is (
        Severity.WARNING
    )


@pytest.mark.parametrize(
    ("seen", "line"),
    [
        pytest.param(installed(), replace(HOSTS, gives=RELAY), id="the relay's address"),
        pytest.param(installed(), rewrite("relay.switchback.svc.cluster.local"), id="the relay's name"),
        pytest.param(steering(), rewrite(f"{ROUTE.key.partition('/')[2]}.switchback.svc.my.domain"), id="a route"),
        pytest.param(installed(), rewrite(".".join([*KEY.split("/")[::-1], "svc.my.domain"])), id="the controller"),
    ],
)
def test_from_outside_a_line_to_what_switchback_would_answer_is_no_finding(seen: Facts, line: AnsweringLine) -> None:
    assert "answered-before" not in ids(judge(with_lines(seen, line, **UNSEEN)))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(HOSTS, id="an address"),
        pytest.param(rewrite("hairpin-proxy.hairpin-proxy.svc.cluster.local"), id="another Service"),
        pytest.param(rewrite("relay.switchback.example.net"), id="a name outside the cluster"),
        pytest.param(replace(HOSTS, kind=Match.SUFFIX, name=".example.org.", gives="", text=""), id="a zone"),
    ],
)
def test_from_outside_a_line_to_elsewhere_may_fail(line: AnsweringLine) -> None:
    diagnosis = judge(with_lines(installed(), line, **UNSEEN))
    assert named(diagnosis, "answered-before").severity is Severity.WARNING


def test_from_outside_a_controller_that_is_known_to_require_the_header_is_elsewhere() -> None:
    to_controller = rewrite(".".join([*KEY.split("/")[::-1], "svc.my.domain"]))
    one = service(settings={"use-proxy-protocol": "true"}, settings_from="ConfigMap a/b", program="ingress-nginx")
    assert "answered-before" in bad(judge(with_lines(installed(one), to_controller, **UNSEEN)))


@pytest.mark.parametrize("found", [None, OwnService("switchback/relay", found=None)], ids=["not read", "forbidden"])
def test_a_relay_that_could_not_be_read_makes_it_unknown(found: OwnService | None) -> None:
    diagnosis = judge(with_lines(installed(), HOSTS, relay=found, **UNSEEN))
    assert named(diagnosis, "answered-before").severity is Severity.INFO
    assert diagnosis.status == ExitStatus.UNKNOWN


def test_a_dns_that_could_not_be_read_gives_no_finding() -> None:
    assert {"answered-before", "line-answers"}.isdisjoint(ids(judge(installed(dns=None))))


@pytest.mark.parametrize(
    ("zone", "line"),
    [
        pytest.param("example.net.", HOSTS, id="the stanza is for another zone"),
        pytest.param(".", replace(HOSTS, name="other.example.org."), id="the line is for another host"),
        pytest.param(
            ".",
            replace(HOSTS, kind=Match.SUFFIX, name=".", excepted=(LineNames(Match.EXACT, f"{HOST}."),)),
            id="the line leaves the host to later ones",
        ),
    ],
)
def test_a_line_that_does_not_come_before_the_stanza_is_no_finding(zone: str, line: AnsweringLine) -> None:
    seen = led_by(line, STRANGE, CLOSED)
    assert seen.dns is not None
    seen = replace(seen, dns=replace(seen.dns, stanzas=(replace(STANZA, zones=(zone,)),)))
    assert {"answered-before", "line-answers"}.isdisjoint(ids(judge(seen)))


@pytest.mark.parametrize("served", [True, False], ids=["pods are served", "pods fail"])
def test_without_a_stanza_a_line_is_what_answers_and_no_fault(served: bool) -> None:
    probes = (*facts().probes, *probes_at(STRANGE, SERVED if served else CLOSED))
    line = rewrite("hairpin-proxy.hairpin-proxy.svc.cluster.local")
    seen = facts(probes=probes, lookups=(answering(STRANGE),))
    diagnosis = judge(with_lines(seen, line))
    finding = named(diagnosis, "line-answers")
    assert (finding.severity, finding.evidence) == (Severity.INFO, (f"{HOST}: {line.what}: {line.text}",))
    assert (diagnosis.status, bad(diagnosis)) == (judge(seen).status, bad(judge(seen)))
    assert diagnosis.status == (ExitStatus.DONE if served else ExitStatus.NO)


def test_our_own_rewrite_lines_are_no_stanza() -> None:
    seen = led_by(HOSTS, STRANGE, CLOSED)
    assert seen.dns is not None
    ours = replace(STANZA, zones=(), addresses=(), marker="a.b.cluster.local")
    diagnosis = judge(replace(seen, dns=replace(seen.dns, stanzas=(ours,))))
    assert named(diagnosis, "line-answers").severity is Severity.INFO
    assert "not-answered" in bad(diagnosis)


def test_lines_for_many_hosts_are_one_finding() -> None:
    names = tuple(f"h{number}.example.org" for number in range(40))
    seen = installed(hosts=tuple(Host(name, "Ingress web/shop", "nginx", (BALANCER,)) for name in names), **UNSEEN)
    own = (replace(HOSTS, name=f"{name}.", what=f"hosts ({PLACE}{at})") for at, name in enumerate(names))
    finding = named(judge(with_lines(seen, *own)), "answered-before")
    assert finding.text.startswith("lines of the cluster's DNS answer h0.example.org, h1.example.org, ")
    assert (len(finding.evidence), finding.hosts) == (40, tuple(sorted(names)))


def test_a_host_below_a_wildcard_is_asked_for_by_its_own_name() -> None:
    seen = led_by(HOSTS, STRANGE, CLOSED)
    wild = tuple(replace(one, hostname="*.example.org") for one in seen.hosts)
    assert "answered-before" in bad(judge(replace(seen, hosts=wild, hostname=HOST)))


def test_a_line_that_takes_the_probe_as_well_is_named_where_the_stanza_seems_not_to_be_loaded() -> None:
    everything = replace(HOSTS, kind=Match.SUFFIX, name=".", gives="", text="")
    seen = with_lines(installed(), everything, loaded=(DnsCheck(f"{DNS}:53", ".", "no", "8 of 8 SERVFAIL"),))
    first, *_ = named(judge(seen), "stanza-not-loaded").steps
    assert first.text == f"{everything.what} answers before the stanza is asked: correct or remove it"
    first, *_ = named(judge(replace(seen, dns=installed().dns)), "stanza-not-loaded").steps
    assert first.text.startswith("a ConfigMap takes up to two minutes")


def test_the_line_is_in_the_text_and_in_the_document() -> None:
    seen = led_by(HOSTS, STRANGE, CLOSED)
    diagnosis = judge(seen)
    text = " ".join(format_diagnosis(diagnosis, seen).split())
    assert f"{HOST}: {HOSTS.what}: {HOSTS.text}" in text
    first = format_document(diagnosis)["findings"][0]
    assert (first["id"], first["evidence"][0]) == ("answered-before", f"{HOST}: {HOSTS.what}: {HOSTS.text}")

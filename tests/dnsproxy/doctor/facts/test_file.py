"""The file of facts: a saved value comes back unchanged, and any input is judged or refused."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from dnsproxy.doctor.collect.dial_targets import dial_targets, names_to_look_up
from dnsproxy.doctor.facts.file import LARGEST, BadFacts, format_facts, parse_facts
from dnsproxy.doctor.facts.model import VERSION, Facts, OwnService, Service
from dnsproxy.doctor.facts.probes import DnsCheck, Header, Outcome, Probe
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import MEANINGS, Diagnosis, Severity, format_document
from dnsproxy.doctor.judge.host_groups import find_groups
from dnsproxy.doctor.judge.paths import find_paths
from dnsproxy.doctor.printing import format_diagnosis
from tests.dnsproxy.doctor.making import HOST, HOSTNAME, STANZA, facts, installed, service

# Texts with a meaning to some module, among others.
WORDS = st.sampled_from(
    ["", "a", "web/shop", "10.96.0.10", "10.96.0.53:53", "203.0.113.10", "2001:db8::1", "app.example.org",
     "*.example.org", "nginx", "Proxy", "VIP", "cluster", "public", "yes", "no", "silent", "partly", "kube-proxy",
     "cilium", "antrea", "calico", "v1.18.0", "v1.34.4+k3s1", "true", "false", "8080=a.b.svc:80", "service:a/b:80",
     "dnsproxy", "relay", "hcloud", "aws", "ingress-nginx", "https", ".", "[::1]:443", "\x1b[31m",
     "k8s.io/ingress-nginx", "a/b; reboot", "$(reboot)", "`reboot`", "web/'&reboot"]
) | st.text(max_size=8)  # fmt: skip
KEYS = st.sampled_from(
    ["load-balancer.hetzner.cloud/uses-proxyprotocol", "use-proxy-protocol", "proxy-real-ip-cidr", "mode",
     "PROXY_ROUTE", "kube-proxy-replacement", "app.kubernetes.io/name",
     "service.beta.kubernetes.io/aws-load-balancer-type",
     "service.beta.kubernetes.io/aws-load-balancer-target-group-attributes", "Ingress", "service-proxy"]
)  # fmt: skip


def strategy(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a struct's field types."""
    info = msgspec.inspect.type_info(kind)
    return _of(info)


def _of(info: Any) -> st.SearchStrategy[Any]:
    plain: dict[type, st.SearchStrategy[Any]] = {
        msgspec.inspect.NoneType: st.none(),
        msgspec.inspect.BoolType: st.booleans(),
        msgspec.inspect.IntType: st.integers(0, 70_000),
        msgspec.inspect.FloatType: st.floats(0, 1e6),
        msgspec.inspect.StrType: WORDS,
    }
    match info:
        case msgspec.inspect.StructType():
            fields = {field.name: _of(field.type) for field in info.fields}
            return st.builds(info.cls, **fields | ({"version": st.just(VERSION)} if info.cls is Facts else {}))
        case msgspec.inspect.VarTupleType():
            return st.lists(_of(info.item_type), max_size=3).map(tuple)
        case msgspec.inspect.DictType():
            return st.dictionaries(KEYS, _of(info.value_type), max_size=3)
        case msgspec.inspect.EnumType():
            return st.sampled_from(list(info.cls))
        case msgspec.inspect.UnionType():
            return st.one_of([_of(one) for one in info.types])
    return plain[type(info)]


def some_fields(draw: st.DrawFn, kind: Any) -> dict[str, Any]:
    """Two fields of a struct with any values."""
    info: Any = msgspec.inspect.type_info(kind)
    fields = {field.name: field.type for field in info.fields if field.name != "version"}
    names = draw(st.sets(st.sampled_from(sorted(fields)), max_size=2))
    return {name: draw(_of(fields[name])) for name in names}


@st.composite
def nearly_real(draw: st.DrawFn) -> Facts:
    """A consistent cluster except for a few fields: random facts seldom reach the inner judgements."""
    base = draw(st.sampled_from([facts(), installed(), facts(probes=(), probed=False), installed(hostname=HOST)]))
    one = replace(base.services[0], **some_fields(draw, Service))
    probes = tuple(replace(probe, outcome=draw(st.sampled_from(Outcome))) for probe in base.probes)
    return replace(base, **{"services": (one,), "probes": probes, **some_fields(draw, Facts)})


ANY_FACTS = strategy(Facts)


@settings(max_examples=100)
@given(ANY_FACTS | nearly_real())
def test_any_facts_are_judged_printed_and_the_same_after_a_file(seen: Facts) -> None:
    paths = find_paths(seen)
    diagnosis = judge(seen)
    assert judge(seen, paths) == diagnosis
    assert diagnosis.status in {0, 1, 3}
    assert all(finding.text and finding.id in MEANINGS for finding in diagnosis.findings)
    again = parse_facts(format_facts(seen))
    assert again == seen
    assert judge(again) == diagnosis
    text = format_diagnosis(diagnosis, seen)
    assert "\x1b" not in text
    json.dumps(format_document(diagnosis))
    assert len(names_to_look_up(seen, paths)) <= 300
    dial_targets(seen, find_groups(seen, paths), seen.lookups)


def unquoted(line: str) -> set[str]:
    """Unquoted characters that a shell interprets; `<` is allowed, because one of our lines has it."""
    return set(re.sub(r"'[^']*'", "", line)) & set(";&|$`()>\\")


HOSTILE = ("x; reboot", "$(reboot)", "`reboot`", "a&reboot", "a b", "it's")


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_facts_run_nothing_when_a_command_is_pasted(word: str) -> None:
    beta = "service.beta.kubernetes.io/aws-load-balancer-"
    loop = {f"{beta}type": "nlb", f"{beta}target-group-attributes": word}
    controllers = [service(key=f"{word}/{word}"), service(loop, points=HOSTNAME, key=f"{word}/{word}")]
    asked = [DnsCheck("a", ".", "no")]
    part = OwnService(f"{word}/{word}", True, ("10.96.0.9",), ready=0)
    for one in controllers:
        for base in (facts(one), installed(one), facts(one, probes=(), probed=False)):
            assert base.dns is not None
            for hostname in ("", word, f"{word}z"):
                hosts = tuple(replace(host, hostname=word) for host in base.hosts)
                seen = replace(base, hostname=hostname, hosts=hosts, dnsproxy=part, relay=part, loaded=tuple(asked))
                seen = replace(seen, dns=replace(base.dns, where=f"Deployment {word}/{word}", stanzas=(STANZA,)))
                for line in command_lines(judge(seen)):
                    assert not unquoted(line), line
                    assert shlex.split(line)


def command_lines(diagnosis: Diagnosis) -> list[str]:
    steps = [step for finding in diagnosis.findings for step in finding.steps]
    steps += [step for unseen in diagnosis.unseen for step in unseen.steps]
    return [line for step in steps for line in step.lines if line.startswith(("kubectl", "dnsproxy"))]


@settings(max_examples=50)
@given(nearly_real())
def test_problems_and_warnings_decide_the_status(seen: Facts) -> None:
    diagnosis = judge(seen)
    wrong = [finding for finding in diagnosis.findings if finding.severity in (Severity.PROBLEM, Severity.WARNING)]
    assert (diagnosis.status == 1) is bool(wrong)
    severities = [finding.severity for finding in diagnosis.findings]
    assert severities == sorted(severities, key=["problem", "warning", "info", "ok"].index)


@pytest.mark.parametrize("seen", [facts(), installed(), Facts(VERSION)], ids=["a fault", "installed", "nothing"])
def test_a_file_comes_back_as_it_was(seen: Facts) -> None:
    octets = format_facts(seen)
    assert parse_facts(octets) == seen
    assert octets.endswith(b"}\n")
    assert json.loads(octets)["version"] == VERSION


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b'"facts"',
        b"\xff\xfe",
        b'{"version": 1}',
        b'{"version": 0}',
        b'{"version": "1"}',
        b'{"version": 2, "hosts": 5}',
        b'{"version": 2, "hosts": [{}]}',
        b'{"version": 2, "hosts": [{"hostname": "a"}]}',
        b'{"version": 2, "probed": "yes"}',
        b'{"version": 2, "probes": [{"role": "spy"}]}',
        b'{"version": 2, "services": [{"key": "a/b", "ports": [{"port": "http"}]}]}',
        b'{"version": 2, "dns": []}',
        b"[" * 100_000,
    ],
)
def test_an_invalid_file_is_refused_in_one_line(octets: bytes) -> None:
    with pytest.raises(BadFacts) as caught:
        parse_facts(octets)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_too_large_is_refused() -> None:
    with pytest.raises(BadFacts, match="larger than"):
        parse_facts(b" " * (LARGEST + 1))


def test_fields_of_a_later_version_are_ignored() -> None:
    octets = format_facts(facts()).replace(b'"version": 2,', b'"version": 2, "later": [1],', 1)
    assert parse_facts(octets) == facts()


def test_no_field_has_room_for_a_secret() -> None:
    """Only maps take arbitrary keys, and the code that fills them takes the keys of a list."""
    schema = json.dumps(msgspec.json.schema(Facts)).lower()
    assert not any(word in schema for word in ("token", "secret", "password", "certificate", "authorization"))


def test_a_long_value_in_a_file_is_not_repeated_whole() -> None:
    octets = format_facts(Facts(VERSION, probes=(Probe("192.0.2.1", 80, HOST, False, Header.PLAIN, Outcome.ANSWERED),)))
    with pytest.raises(BadFacts, match="it holds no facts") as error:
        parse_facts(octets.replace(b'"answered"', b'"%b"' % (b"x" * 200_000)))
    assert len(str(error.value)) < 500

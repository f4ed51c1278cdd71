"""Findings about addresses that no status names and wildcards that cover whole domains."""

from __future__ import annotations

from msgspec.structs import replace

from dnsproxy.doctor.facts.model import VERSION, Admin, Facts
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import MEANINGS, Severity
from dnsproxy.doctor.judge.hint_findings import judge_hints
from dnsproxy.hostnames.public_addresses import UnknownAddress
from dnsproxy.hostnames.wide_wildcards import WideWildcard

ROUTER = UnknownAddress(
    address="198.51.100.1", hostnames=12, asked=14, examples=("app.example.org",), subject="ingressclass/nginx"
)
WIDE = WideWildcard(hostname="*.example.org", origin="Ingress shop/web", verified=True)


def facts(*pages: Admin) -> Facts:
    return Facts(VERSION, admin=pages)


def page(*addresses: UnknownAddress, wide: tuple[WideWildcard, ...] = ()) -> Admin:
    return Admin("dnsproxy", "pod switchback/a", True, unknown_addresses=addresses, wide=wide)


def test_an_address_is_a_finding_with_the_flag_and_the_value_that_name_it() -> None:
    (found,) = judge_hints(facts(page(ROUTER)))
    assert (found.id, found.severity) == ("unknown-address", Severity.INFO)
    assert found.text.startswith("12 of 14 asked hosts lead to 198.51.100.1, which no status names; ")
    assert found.steps[0].lines == ("--trust 198.51.100.1",)
    assert found.steps[1].lines == ("dns:", '  publicAddresses: ["198.51.100.1"]')
    assert found.evidence == ("its hosts belong mostly to ingressclass/nginx",)
    assert found.hosts == ("app.example.org",)


def test_a_wildcard_is_a_finding_with_its_object_and_what_to_write_instead() -> None:
    (found,) = judge_hints(facts(page(wide=(WIDE,))))
    assert (found.id, found.severity, found.about) == ("wide-wildcard", Severity.INFO, "Ingress shop/web")
    assert "only names that lead here or have no record are answered" in found.text
    assert "exact hosts" in found.steps[0].text
    assert "--tls-hosts rules" in found.steps[1].lines[0]


def test_what_several_pods_say_is_one_finding() -> None:
    less = replace(ROUTER, hostnames=2, asked=2)
    found = list(judge_hints(facts(page(less, wide=(WIDE,)), page(ROUTER, wide=(WIDE,)), page())))
    assert [one.id for one in found] == ["unknown-address", "wide-wildcard"]
    assert found[0].text.startswith("12 of 14")


def test_without_a_hint_and_from_an_older_dnsproxy_there_is_nothing() -> None:
    assert list(judge_hints(facts())) == []
    assert list(judge_hints(facts(page(), Admin("relay", "pod switchback/r", True)))) == []


def test_a_hint_is_no_fault_and_every_one_has_a_meaning() -> None:
    diagnosis = judge(facts(page(ROUTER, wide=(WIDE,))))
    shown = {one.id for one in diagnosis.findings}
    assert {"unknown-address", "wide-wildcard"} <= shown <= MEANINGS.keys()
    assert diagnosis.status == judge(facts(page())).status


def test_odd_facts_of_a_file_raise_nothing() -> None:
    odd = replace(ROUTER, address="a; rm -rf /", hostnames=-1, asked=0, examples=(), subject="\x1b")
    found = list(judge_hints(facts(page(odd, wide=(WideWildcard(hostname="", origin=""),)))))
    assert found[0].steps[0].lines == ("--trust 'a; rm -rf /'",)

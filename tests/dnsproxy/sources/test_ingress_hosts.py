"""Which hosts of TLS sections are served by the rules of their object."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from dnsproxy.sources.ingress_hosts import Hosts, TlsHosts, explain_unserved, read_hosts

APP, MAIL, WILD = "app.example.org", "mail.example.org", "*.example.org"


class Rule(NamedTuple):
    host: str | None = None
    http: object | None = True


def read(rules: list[Rule], in_tls: list[str | None], *, backend: bool = False, **options: Any) -> Hosts:
    chosen: dict[str, Any] = {"tls_only": False, "tls_hosts": TlsHosts.RULES} | options
    return read_hosts(rules, in_tls, has_default_backend=backend, **chosen)


@pytest.mark.parametrize(
    ("rules", "in_tls", "served", "unserved"),
    [
        pytest.param([Rule(APP)], [APP], [APP], [], id="the host of a rule"),
        pytest.param([Rule(APP)], ["App.example.org."], [APP], [], id="in another spelling"),
        pytest.param([Rule("App.example.org.")], [APP], [APP], [], id="a rule in another spelling"),
        pytest.param([Rule(APP, None)], [APP], [APP], [], id="of a rule without paths, which counts itself"),
        pytest.param([Rule(WILD)], [APP], [WILD, APP], [], id="below the wildcard of a rule"),
        pytest.param([Rule(WILD)], [WILD], [WILD], [], id="the wildcard of a rule"),
        pytest.param([Rule()], [APP], [APP], [], id="a rule for every name"),
        pytest.param([Rule("")], [WILD, MAIL], [WILD, MAIL], [], id="an empty host, a wildcard"),
        pytest.param([Rule(APP), Rule()], [MAIL], [APP, MAIL], [], id="a rule for every name beside another"),
        pytest.param([Rule(APP)], ["example.org", WILD], [APP], ["example.org", WILD], id="the names of a certificate"),
        pytest.param([Rule(APP)], [MAIL, APP], [APP], [MAIL], id="one of two"),
        pytest.param([Rule(APP)], [WILD], [APP], [WILD], id="a wildcard above the host of a rule"),
        pytest.param([Rule(WILD)], ["a.b.example.org"], [WILD], ["a.b.example.org"], id="two labels below"),
        pytest.param([Rule(WILD)], ["*.b.example.org"], [WILD], ["*.b.example.org"], id="a wildcard below another"),
        pytest.param([Rule(WILD)], ["example.org"], [WILD], ["example.org"], id="what a wildcard leaves out"),
        pytest.param([Rule(APP)], ["xapp.example.org"], [APP], ["xapp.example.org"], id="the end of a name"),
        pytest.param([Rule(None, None)], [APP], [], [APP], id="a rule for every name without paths"),
        pytest.param([], [APP], [], [APP], id="no rule"),
        pytest.param([Rule(APP)], [None, ""], [APP], [], id="gaps"),
        pytest.param([Rule("?")], [APP], [], [APP], id="a bad host of a rule"),
    ],
)
def test_a_host_of_tls_counts_if_a_rule_serves_it(
    rules: list[Rule], in_tls: list[str | None], served: list[str], unserved: list[str]
) -> None:
    found = read(rules, in_tls)
    assert (list(found.served), list(found.unserved)) == (served, unserved)
    everything = read(rules, in_tls, tls_hosts=TlsHosts.ALL)
    assert set(everything.served) == {*served, *unserved}
    assert everything.unserved == ()


@pytest.mark.parametrize(
    ("rules", "served"),
    [
        pytest.param([], [APP], id="no rule"),
        pytest.param([Rule(MAIL)], [MAIL], id="a rule"),
        pytest.param([Rule(None, None)], [], id="a rule without anything"),
    ],
)
def test_a_default_backend_serves_every_name_of_an_object_without_rules(rules: list[Rule], served: list[str]) -> None:
    """As ingress-nginx and Traefik have it: beside rules it is for their hosts, or for none."""
    assert list(read(rules, [APP], backend=True).served) == served


def test_with_tls_only_the_hosts_of_rules_serve_and_do_not_count() -> None:
    found = read([Rule(APP), Rule(WILD)], [APP, "www.example.org", "example.org"], tls_only=True)
    assert found == Hosts((APP, "www.example.org"), ("example.org",), ())


def test_a_bad_host_is_a_fault_once_and_no_host_that_no_rule_has() -> None:
    found = read([Rule("?"), Rule(APP)], ["?", "192.0.2.1", APP])
    assert (found.served, found.unserved, len(found.faults)) == ((APP,), (), 2)


@pytest.mark.parametrize(
    ("rules", "in_tls", "options", "expected", "is_cut"),
    [
        pytest.param(["a.org", "b.org"], ["b.org"], {}, ["a.org", "b.org"], False, id="just as many"),
        pytest.param(["a.org", "b.org", "c.org"], [], {}, ["a.org", "b.org"], True, id="rules"),
        pytest.param(["a.org"], ["b.org", "c.org"], {}, ["a.org"], True, id="rules come first"),
        pytest.param(["a.org", "b.org", "c.org"], ["b.org"], {"tls_only": True}, ["b.org"], False, id="of TLS alone"),
        pytest.param(["a.org", "b.org", "c.org"], ["c.org"], {"tls_only": True}, [], True, id="an unread rule"),
        pytest.param(["a.org"], ["a.org", "b.org", "c.org"], {"tls_only": True}, ["a.org"], True, id="TLS is cut"),
    ],
)
def test_the_first_hosts_are_read(
    rules: list[str], in_tls: list[str | None], options: dict[str, Any], expected: list[str], is_cut: bool
) -> None:
    found = read([Rule(host) for host in rules], in_tls, most=2, **options)
    assert list(found.served) == expected
    assert any("--max-names-per-object" in fault for fault in found.faults) is is_cut


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, "h0.org: no rule has this host of the TLS section (--tls-hosts all claims it)"),
        (2, "h0.org, h1.org: no rule has these hosts of the TLS section (--tls-hosts all claims them)"),
    ],
)
def test_the_reason_names_the_hosts_and_the_flag(number: int, expected: str) -> None:
    assert explain_unserved([f"h{one}.org" for one in range(number)]) == expected


def test_the_reason_is_short_for_any_number_of_hosts() -> None:
    reason = explain_unserved([f"h{one}.org" for one in range(2_010)])
    assert "h9.org and 2,000 more: no rule" in reason
    assert len(reason) < 300

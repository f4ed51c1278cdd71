"""Rewrite lines: goldens, the way back, bad lines, and what CoreDNS makes of a name with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.corefile.model import CorefileError, Scope
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.rewrite_lines import Rewrite, RewriteLines, check_rewrite, format_rewrites, parse_rewrites
from dnsproxy.dns.names import Reach
from dnsproxy.dns.rewrite_probe import is_marker
from tests.dnsproxy.corefile.rewrite_shapes import REWRITES, golden_of
from tests.dnsproxy.corefile.shapes import is_updating, read
from tests.kit.rewriting import rewritten

DOMAIN: Final = "cluster.local"
RELAY: Final = "switchback/relay"
RELAY_NAME: Final = "relay.switchback.svc.cluster.local."


def parsed(lines: Sequence[str]) -> RewriteLines:
    return parse_rewrites(parse_corefile("".join(f"{line}\n" for line in lines), Scope.ROOT_PLUGINS))


@pytest.mark.parametrize("name", REWRITES)
def test_the_lines_are_the_golden_ones(name: str) -> None:
    text = "".join(f"{line}\n" for line in format_rewrites(REWRITES[name], DOMAIN))
    if is_updating():
        golden_of(name).write_text(text)
    assert text == read(golden_of(name))


labels = st.from_regex(r"[a-z0-9_]([a-z0-9_-]{0,8}[a-z0-9_])?", fullmatch=True).filter(lambda one: "--" not in one)
domains = st.lists(labels, min_size=1, max_size=4).map(lambda some: ".".join([*some, "org"]))
services = st.sampled_from(["", RELAY, "web/relay-2", "a/b"])


@st.composite
def rewrites(draw: st.DrawFn) -> Rewrite:
    reach = draw(st.sampled_from(Reach))
    return Rewrite(("" if reach is Reach.NAME else "*.") + draw(domains), reach, draw(services))


@given(st.lists(rewrites(), unique_by=lambda one: one.key), domains)
def test_lines_parse_back_to_the_same_rewrites_in_any_order(given_: list[Rewrite], domain: str) -> None:
    lines = format_rewrites(given_, domain)
    found = parsed(lines)
    assert set(found.rewrites) == set(given_)
    assert found.marker.endswith(f".{domain}")
    assert format_rewrites(reversed(given_), domain) == lines
    assert format_rewrites(found.rewrites, domain) == lines


@given(st.lists(rewrites(), unique_by=lambda one: one.key))
def test_no_character_of_a_name_means_anything_to_a_corefile(given_: list[Rewrite]) -> None:
    for line in format_rewrites(given_, DOMAIN):
        assert len(line.split(" ")) == 8
        assert not set(line) & set("\n\r\t#\"'")
        assert "{$" not in line
        assert "{%" not in line


BAD: Final = {
    "an upper case letter": Rewrite("App.example.org", Reach.NAME, RELAY),
    "a blank": Rewrite("app .example.org", Reach.NAME, RELAY),
    "a line": Rewrite("app.example.org\nlog", Reach.NAME, RELAY),
    "a brace": Rewrite("{$HOME}.example.org", Reach.NAME, RELAY),
    "a comment": Rewrite("app#.example.org", Reach.NAME, RELAY),
    "a quote": Rewrite('"app.example.org', Reach.NAME, RELAY),
    "a regular expression": Rewrite("(.*).example.org", Reach.NAME, RELAY),
    "a final dot": Rewrite("app.example.org.", Reach.NAME, RELAY),
    "the root": Rewrite("", Reach.NAME, RELAY),
    "a bare wildcard": Rewrite("*", Reach.ANY_LABELS, RELAY),
    "a wildcard within": Rewrite("a.*.example.org", Reach.NAME, RELAY),
    "a wildcard that reaches one name": Rewrite("*.example.org", Reach.NAME, RELAY),
    "a name that reaches many": Rewrite("app.example.org", Reach.ONE_LABEL, RELAY),
    "an address": Rewrite("192.0.2.1", Reach.NAME, RELAY),
    "a Service without a namespace": Rewrite("app.example.org", Reach.NAME, "relay"),
    "a Service with a dot": Rewrite("app.example.org", Reach.NAME, "switchback/relay.example"),
    "a Service with a blank": Rewrite("app.example.org", Reach.NAME, "switchback/re lay"),
    "a Service with a brace": Rewrite("app.example.org", Reach.NAME, "switchback/{1}"),
}


@pytest.mark.parametrize("rewrite", BAD.values(), ids=BAD)
def test_a_name_that_is_not_in_normal_form_never_becomes_a_line(rewrite: Rewrite) -> None:
    with pytest.raises(ValueError, match=r".+"):
        check_rewrite(rewrite)
    with pytest.raises(ValueError, match=r".+"):
        format_rewrites([rewrite], DOMAIN)


@pytest.mark.parametrize("domain", ["", ".", "cluster.local.", "*.local", "Cluster.local", "a b", "{$DOMAIN}", "a#b"])
def test_a_cluster_domain_that_is_not_in_normal_form_is_an_error(domain: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        format_rewrites([], domain)


GOOD: Final = format_rewrites([Rewrite("app.example.org", Reach.NAME, RELAY)], DOMAIN)
EDITED: Final = {
    "no line for probes": GOOD[:-1],
    "nothing": (),
    "two lines for probes": (*GOOD, GOOD[-1]),
    "another plugin": (*GOOD, "log"),
    "another field": ("rewrite stop type A AAAA", *GOOD),
    "a prefix": ("rewrite stop name prefix app. relay. answer auto", *GOOD),
    "a line that goes on": (GOOD[0].replace("stop", "continue"), *GOOD[1:]),
    "a name of another zone": (GOOD[0].replace(f"svc.{DOMAIN}", "svc.other.local"), *GOOD[1:]),
    "another regular expression": (
        f"rewrite stop name regex .*\\.example\\.org {RELAY_NAME} answer auto",
        *GOOD,
    ),
    "a wildcard to itself twice": (r"rewrite stop name regex ^([^._\\][^.\\]*\.a)\.$ {1}{1}. answer auto", *GOOD),
    "a pod": (GOOD[0].replace("relay.switchback.svc", "1-2-3-4.switchback.pod"), *GOOD[1:]),
    "an upper case name": (GOOD[0].replace("app", "App"), *GOOD[1:]),
    "a block": ("rewrite stop {", "name exact a.example.org. b.example.org.", "}", *GOOD),
}


@pytest.mark.parametrize("lines", EDITED.values(), ids=EDITED)
def test_lines_that_dnsproxy_does_not_write_are_an_error(lines: tuple[str, ...]) -> None:
    with pytest.raises(CorefileError):
        parsed(lines)


WILD: Final = format_rewrites(
    [
        Rewrite("app.example.org", Reach.NAME, "web/one"),
        Rewrite("own.example.org", Reach.NAME),
        Rewrite("*.example.org", Reach.ONE_LABEL, RELAY),
        Rewrite("*.any.example.org", Reach.ANY_LABELS, RELAY),
        Rewrite("*.deep.any.example.org", Reach.ONE_LABEL, "web/two"),
        Rewrite("*.own.any.example.org", Reach.ANY_LABELS),
    ],
    DOMAIN,
)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        pytest.param("app.example.org.", "one.web.svc.cluster.local.", id="an exact name before a wildcard"),
        pytest.param("own.example.org.", "own.example.org.", id="a name that keeps its own answer"),
        pytest.param("x.example.org.", RELAY_NAME, id="one label"),
        pytest.param("x.y.example.org.", "x.y.example.org.", id="two labels under a wildcard of one"),
        pytest.param("example.org.", "example.org.", id="the parent of a wildcard"),
        pytest.param("x.any.example.org.", RELAY_NAME, id="one label under a wildcard of any number"),
        pytest.param("x.y.any.example.org.", RELAY_NAME, id="two labels under a wildcard of any number"),
        pytest.param("x.deep.any.example.org.", "two.web.svc.cluster.local.", id="the narrowest wildcard"),
        pytest.param("x.y.deep.any.example.org.", RELAY_NAME, id="beyond the narrowest wildcard"),
        pytest.param("x.y.own.any.example.org.", "x.y.own.any.example.org.", id="names that keep their own answers"),
        pytest.param("_acme-challenge.example.org.", "_acme-challenge.example.org.", id="no host label"),
        pytest.param("_a._b.any.example.org.", "_a._b.any.example.org.", id="no host labels"),
        pytest.param(r"a\.b.example.org.", r"a\.b.example.org.", id="a label with a dot"),
        pytest.param(r"x\.example.org.", r"x\.example.org.", id="a label that looks like the zone"),
        pytest.param("xexample.org.", "xexample.org.", id="a name that only ends alike"),
        pytest.param("x.example.org.net.", "x.example.org.net.", id="a name that only begins alike"),
        pytest.param("*.example.org.", RELAY_NAME, id="the wildcard itself"),
    ],
)
def test_coredns_takes_the_line_that_the_table_would(name: str, other: str) -> None:
    assert rewritten(WILD, name) == other


def test_a_probe_reaches_the_service_of_the_api_server_and_no_other_digest_does() -> None:
    marker = parsed(WILD).marker
    assert is_marker(marker)
    assert rewritten(WILD, f"0123abc.{marker}.") == "kubernetes.default.svc.cluster.local."
    for name in (f"{marker}.", f"xyz.{marker}.", f"0123.x{marker}.", f"0123.{parsed(GOOD).marker}."):
        assert rewritten(WILD, name) == name

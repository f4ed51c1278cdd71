"""The hostnames of Traefik's rules.

Traefik 3.7.13 itself judged the rules of the tables; 3.6.12 differs only for wildcards and capital server names.
"""

from __future__ import annotations

from itertools import product
from time import process_time
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dnsproxy.sources.described.traefik_rule import RuleHosts, Syntax, parse_rule

LONGEST = 256 * 1024
"""Characters of an object: the API server takes no larger one."""


def http(text: str, syntax: Syntax | None = "v3", most: int | None = None) -> RuleHosts:
    return parse_rule(text, matcher="Host", syntax=syntax, most=most)


def tcp(text: str, syntax: Syntax | None = "v3") -> RuleHosts:
    return parse_rule(text, matcher="HostSNI", syntax=syntax)


@pytest.mark.parametrize(
    ("rule", "hostnames"),
    [
        pytest.param("Host(`a.example.org`)", ["a.example.org"], id="one host"),
        pytest.param("Host(`A.example.org.`)", ["A.example.org."], id="as written"),
        pytest.param("Host(`a`) || Host(`A.`) || Host(`b`)", ["a", "b"], id="the same in another spelling"),
        pytest.param("Host(`a`) && PathPrefix(`/x`)", ["a"], id="with a path"),
        pytest.param("Host(`a`) && !PathPrefix(`/x`)", ["a"], id="without a path"),
        pytest.param("(Host(`b`) || Host(`a`)) && Header(`x`, `1`)", ["b", "a"], id="in the order of the rule"),
        pytest.param("Host(`a`) || Host(`b`) && Path(`/x`)", ["a", "b"], id="and binds more strongly than or"),
        pytest.param("Path(`/x`) && Host(`a`) || Host(`b`)", ["a", "b"], id="and binds more strongly on the left too"),
        pytest.param("Host(`a`) && Host(`A.`)", ["a"], id="the same twice"),
        pytest.param("(Host(`a`) || Host(`b`)) && (Host(`b`) || Host(`c`))", ["b"], id="an intersection"),
        pytest.param("(Host(`a`) || Host(`b`)) && !Host(`a`)", ["b"], id="all but one"),
        pytest.param("Host(`a`) && !(Host(`b`) || Path(`/x`))", ["a"], id="not one of two"),
        pytest.param("!(!Host(`a`) || Path(`/x`))", ["a"], id="double negation in parentheses"),
        pytest.param("!!Host(`a`)", ["a"], id="double negation"),
        pytest.param("!(!(!(!Host(`a`))))", ["a"], id="four negations"),
        pytest.param("Host(`*.a.org`) && Host(`x.a.org`)", ["x.a.org"], id="a name below a wildcard"),
        pytest.param("Host(`*.a.org`) || Host(`x.a.org`)", ["*.a.org", "x.a.org"], id="a wildcard and a name"),
        pytest.param("Host(`*.a.org`) && !Host(`x.y.a.org`)", ["*.a.org"], id="a wildcard has one label"),
        pytest.param("Host(`*.a.org`) && !Host(`a.org`)", ["*.a.org"], id="a wildcard without its apex"),
        pytest.param("Host(`*`) && Host(`a`)", ["a"], id="every name, and one"),
    ],
)
def test_the_hostnames_that_a_rule_can_match(rule: str, hostnames: list[str]) -> None:
    assert list(http(rule).hostnames) == hostnames
    assert not http(rule).every_name


@pytest.mark.parametrize(
    ("rule", "hostnames", "faults"),
    [
        pytest.param("PathPrefix(`/x`)", [], [], id="no host"),
        pytest.param("!PathPrefix(`/x`)", [], [], id="no host, negated"),
        pytest.param("Host(`*`)", [], [], id="a bare wildcard"),
        pytest.param("Host(`a`) || PathPrefix(`/x`)", ["a"], [], id="a host or a path"),
        pytest.param("Host(`a`) || !Host(`a`)", ["a"], [], id="a host or the others"),
        pytest.param("(Host(`a`) && Host(`b`)) || Path(`/x`)", [], [], id="an impossible host or a path"),
        pytest.param("!Host(`a`)", [], ["every name except 'a'"], id="not a host"),
        pytest.param("!(Host(`a`) || Host(`b`))", [], ["every name except 'a', 'b',"], id="not two hosts"),
        pytest.param("Host(`b`) || !Host(`a`)", ["b"], ["every name except 'a'"], id="a host or all but another"),
        pytest.param("Path(`/x`) && !Host(`*.a`)", [], ["every name except '*.a'"], id="not a wildcard"),
        pytest.param("(Host(`a`) || Path(`/x`)) && !Host(`a`)", [], ["except 'a'"], id="a host, excluded again"),
        pytest.param(
            " && ".join(f"!Host(`{name}`)" for name in "abcde"), [], ["except 'a', 'b', 'c' and others"], id="many"
        ),
    ],
)
def test_a_rule_that_matches_every_name_claims_those_that_it_names(
    rule: str, hostnames: list[str], faults: list[str]
) -> None:
    result = http(rule)
    assert result.every_name
    assert list(result.hostnames) == hostnames
    assert_faults(result, faults)


@pytest.mark.parametrize(
    ("rule", "hostnames", "faults"),
    [
        pytest.param("Host(`a`) && Host(`b`)", [], ["can match no hostname"], id="two hosts at once"),
        pytest.param("Host(`a`) && !Host(`a`)", [], ["can match no hostname"], id="a contradiction"),
        pytest.param("!Host(`*`)", [], ["can match no hostname"], id="not every name"),
        pytest.param("HostRegexp(`^.+\\.a$`)", [], [r"HostRegexp('^.+\\.a$') is a regular"], id="a regular expression"),
        pytest.param("Host(`a`) && HostRegexp(`x`)", ["a"], ["HostRegexp('x')"], id="narrowed by a regular expression"),
        pytest.param("Host(`a`) && !HostRegexp(`x`)", ["a"], ["HostRegexp('x')"], id="not a regular expression"),
        pytest.param("Host(`a`) || HostRegexp(`x`)", ["a"], ["HostRegexp('x')"], id="or a regular expression"),
        pytest.param("HostRegexp(`x`) && HostRegexp(`x`)", [], ["HostRegexp('x')"], id="each fault once"),
        pytest.param("Host(`*.a`) && !Host(`x.a`)", [], ["matches '*.a' except 'x.a'"], id="a wildcard but one name"),
        pytest.param(
            "Host(`*.a`) && !Host(`x.a`) || Host(`b`)", ["b"], ["matches '*.a' except 'x.a'"], id="and another host"
        ),
        pytest.param("Host(`{n:.*}.a`)", [], ["Traefik reads only in HostRegexp"], id="braces"),
        pytest.param("Host(`*a.org`)", [], ["as a whole first label"], id="a wildcard of half a label"),
        pytest.param("Host(`a:443`)", [], ["no hostname has these characters"], id="a port"),
        pytest.param("Host(` a `) || Host(`b`)", ["b"], ["no hostname has these characters"], id="blanks"),
        pytest.param("HostRegexp(`" + "x" * 10_000 + "`)", [], ["xxx..."], id="a long regular expression is cut"),
        pytest.param("HostRegexp(`\x1b`)", [], [r"'\x1b'"], id="a hostile regular expression is escaped"),
    ],
)
def test_what_cannot_be_expressed_is_a_fault(rule: str, hostnames: list[str], faults: list[str]) -> None:
    result = http(rule)
    assert not result.every_name
    assert list(result.hostnames) == hostnames
    assert_faults(result, faults)
    assert sum(map(len, result.faults)) < 250


def assert_faults(result: RuleHosts, parts: list[str]) -> None:
    assert len(result.faults) == len(parts)
    for part, fault in zip(parts, result.faults, strict=True):
        assert part in fault


@pytest.mark.parametrize(
    ("rule", "syntax", "hostnames", "every_name"),
    [
        pytest.param("HostSNI(`a`)", "v3", ["a"], False, id="one name"),
        pytest.param("HostSNI(`A.`)", "v3", ["A."], False, id="as written"),
        pytest.param("HostSNI(`*.a`)", "v3", ["*.a"], False, id="a wildcard"),
        pytest.param("HostSNI(`*`)", "v3", [], True, id="every name"),
        pytest.param("HostSNI(`*`) && ClientIP(`192.0.2.1`)", "v3", [], True, id="every name of a client"),
        pytest.param("HostSNI(`*`) && HostSNI(`a`)", "v3", ["a"], False, id="every name, and one"),
        pytest.param("ALPN(`h2`)", "v3", [], True, id="no name"),
        pytest.param("HostSNI(`a`, `b`)", "v2", ["a", "b"], False, id="two names in v2"),
        pytest.param("HostSNI(`a`, `*`)", "v2", ["a"], True, id="a name or every name in v2"),
        pytest.param("!HostSNI(`a`, `*`)", "v2", [], False, id="not every name in v2"),
    ],
)
def test_the_names_of_tcp_rules(rule: str, syntax: Syntax, hostnames: list[str], every_name: bool) -> None:
    result = tcp(rule, syntax)
    assert (list(result.hostnames), result.every_name) == (hostnames, every_name)


@pytest.mark.parametrize(
    ("rule", "hostnames"),
    [
        pytest.param("Host(`a`, `b`)", ["a", "b"], id="several arguments"),
        pytest.param("HostHeader(`a`)", ["a"], id="HostHeader"),
        pytest.param("Host(`a`) && Headers(`x`, `1`)", ["a"], id="Headers"),
        pytest.param("Host(`a`) && Path(`/x`, `/y`)", ["a"], id="several paths"),
    ],
)
def test_only_the_v2_syntax_has_its_matchers_and_an_object_without_a_syntax_may_mean_it(
    rule: str, hostnames: list[str]
) -> None:
    assert list(http(rule, "v2").hostnames) == hostnames
    assert http(rule, None) == http(rule, "v2")
    assert not http(rule, "v3").hostnames
    assert http(rule, "v3").faults


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        pytest.param("Host(`*.a`)", "only in the v3 syntax", id="a wildcard"),
        pytest.param("Host(`*`)", "only in the v3 syntax", id="a bare wildcard"),
        pytest.param("Header(`x`, `1`) && Host(`a`)", "'Header' is not a matcher", id="Header"),
    ],
)
def test_the_v2_syntax_has_neither_wildcards_nor_the_matchers_of_v3(rule: str, fault: str) -> None:
    result = http(rule, "v2")
    assert not result.hostnames
    assert not result.every_name
    assert_faults(result, [fault])
    assert http(rule, None) == http(rule, "v3") != result


def test_a_rule_that_no_syntax_accepts_has_the_fault_of_v3() -> None:
    assert http("Host(`a`, `b`) && Header(`x`, `1`)", None) == http("Host(`a`, `b`) && Header(`x`, `1`)", "v3")


def test_only_so_many_hostnames_are_kept() -> None:
    rule = " || ".join(f"Host(`{at}.example.org`)" for at in range(5))
    assert http(rule, most=5).faults == ()
    result = http(rule, most=3)
    assert result.hostnames == ("0.example.org", "1.example.org", "2.example.org")
    assert_faults(result, ["more than 3 names"])


def test_only_the_first_faults_are_listed() -> None:
    result = http(" || ".join(f"HostRegexp(`{at}`)" for at in range(1_000)))
    assert len(result.faults) == 11
    assert result.faults[-1] == "and 990 faults more"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param("(" * 10_000 + "Host(`a`)" + ")" * 10_000, 1, id="parentheses"),
        pytest.param("!" * 200_000 + "Host(`a`)", 1, id="negations"),
        pytest.param("(" * LONGEST, 0, id="open parentheses"),
        pytest.param("||".join(f"Host(`{at:x}`)" for at in range(18_000)), 1_000, id="alternatives"),
        pytest.param("||(".join(f"Host(`{at:x}`)" for at in range(15_000)) + ")" * 14_999, 1_000, id="nested"),
        pytest.param("&&".join(f"Host(`{at:x}`)" for at in range(18_000)), 0, id="contradictions"),
        pytest.param("&&".join(f"!Host(`{at:x}`)" for at in range(17_000)), 0, id="exclusions"),
        pytest.param(
            "||".join(["Host(`*.z`)"] * 8_000 + [f"Host(`{at:x}.z`)" for at in range(8_000)]), 1_000, id="one wildcard"
        ),
        pytest.param(
            "||".join(f"Host(`*.{at:x}`)&&!Host(`a.{at:x}`)" for at in range(7_500)), 0, id="wildcards with exceptions"
        ),
        pytest.param("Host(" + ",".join(f"`{at:x}`" for at in range(38_000)) + ")", 1_000, id="arguments"),
        pytest.param("Host(`" + "a" * LONGEST, 0, id="an open raw string"),
        pytest.param('Host("' + "\\" * LONGEST, 0, id="an open string of escapes"),
        pytest.param("/*" * (LONGEST // 2), 0, id="open comments"),
        pytest.param("/* */" * 50_000 + "Host(`a`)", 1, id="comments"),
        pytest.param(" " * LONGEST, 0, id="blanks"),
    ],
)
def test_the_largest_rules_are_read_in_linear_time(rule: str, expected: int) -> None:
    """The slowest takes 0.4 seconds of the processor; with a step for each pair of names it would be a minute."""
    start = process_time()
    assert len(http(rule, None, most=1_000).hostnames) == expected
    assert process_time() - start < 4


NAMES = ("a.org", "b.org", "x.a.org", "y.a.org")
UNMENTIONED = "other.net"
UNIVERSE = (*NAMES, "z.a.org", UNMENTIONED)


class Leaf(NamedTuple):
    text: str
    host: str | None
    """None: a matcher that says nothing of hostnames."""


class Not(NamedTuple):
    inner: Tree


class Both(NamedTuple):
    left: Tree
    right: Tree


class Either(NamedTuple):
    left: Tree
    right: Tree


Tree = Leaf | Not | Both | Either

LEAVES = st.one_of(
    st.sampled_from([*NAMES, "*.a.org"]).map(lambda host: Leaf(f"Host(`{host}`)", host)),
    st.just(Leaf("Path(`/x`)", None)),
)
TREES: st.SearchStrategy[Tree] = st.recursive(
    LEAVES, lambda inner: st.builds(Not, inner) | st.builds(Both, inner, inner) | st.builds(Either, inner, inner)
)


def text_of(tree: Tree) -> str:
    match tree:
        case Leaf():
            return tree.text
        case Not():
            return f"!({text_of(tree.inner)})"
        case Both():
            return f"({text_of(tree.left)}) && ({text_of(tree.right)})"
        case Either():
            return f"({text_of(tree.left)}) || ({text_of(tree.right)})"


def outcomes(tree: Tree, name: str) -> frozenset[bool]:
    """Whether the rule can match a name, and whether it can miss it: each other matcher is free."""
    match tree:
        case Leaf():
            return frozenset({True, False}) if tree.host is None else frozenset({covers(tree.host, name)})
        case Not():
            return frozenset(not one for one in outcomes(tree.inner, name))
        case Both():
            return frozenset(a and b for a, b in product(outcomes(tree.left, name), outcomes(tree.right, name)))
        case Either():
            return frozenset(a or b for a, b in product(outcomes(tree.left, name), outcomes(tree.right, name)))


def covers(host: str, name: str) -> bool:
    return name == host or (host.startswith("*.") and name.partition(".")[2] == host.removeprefix("*."))


@given(TREES)
def test_exactly_the_names_that_can_match_are_claimed(tree: Tree) -> None:
    result = http(text_of(tree))
    possible = {name for name in UNIVERSE if True in outcomes(tree, name)}
    claimed = {name for name in UNIVERSE for host in result.hostnames if covers(host, name)}
    assert claimed <= possible
    assert result.every_name == (UNMENTIONED in possible)
    assert claimed == possible or result.every_name or any(" except " in fault for fault in result.faults)


@given(st.text('Hostea`"\\!&|(), \n/*.{x1', max_size=60) | st.text(max_size=30))
def test_any_text_is_a_rule_or_a_fault(text: str) -> None:
    for result in (http(text, None), tcp(text, None)):
        assert result.hostnames or result.every_name or result.faults


PLAIN_HOST = st.text("aB0-_.", min_size=1, max_size=12)
PLAIN_PATH = st.text("/a`{\x00\r\u00e9 ~", max_size=4)


@given(
    st.sampled_from(["Host", "HostSNI", "host"]),
    PLAIN_HOST | st.just("a:1"),
    st.lists(st.tuples(st.sampled_from(["Path", "PathPrefix", "Method"]), PLAIN_PATH), max_size=2),
    st.sampled_from(["v2", "v3", None]),
)
@example("Host", "a", [("Path", "/`")], "v3")
@example("Host", "a", [("Path", "")], "v3")
@example("Host", "a", [("PathPrefix", "/\0")], None)
@example("Host", "a", [("PathPrefix", "\r")], None)
@example("HostSNI", "a", [("Path", "/")], "v3")
def test_a_plain_rule_says_what_it_says_in_parentheses(
    matcher: str, host: str, paths: list[tuple[str, str]], syntax: Syntax | None
) -> None:
    """Rules of the usual form are not parsed step by step; parentheses make the same rule an unusual one."""
    more = "".join(f" && {name}(`{path}`)" for name, path in paths)
    plain, whole = f"{matcher}(`{host}`){more}", f"({matcher}(`{host}`)){more}"
    for read in (http, tcp):
        found, expected = read(plain, syntax), read(whole, syntax)
        assert (found.hostnames, found.every_name) == (expected.hostnames, expected.every_name)
        assert bool(found.faults) is bool(expected.faults)

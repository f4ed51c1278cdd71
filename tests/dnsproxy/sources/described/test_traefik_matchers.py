"""The matchers of Traefik's rules and their arguments."""

from __future__ import annotations

import pytest

from dnsproxy.sources.described.traefik_matchers import Role, Syntax, read_matchers
from dnsproxy.sources.described.traefik_syntax import BadRule, Matcher


def read(name: str, *arguments: str, matcher: str = "Host", syntax: Syntax = "v3") -> Role:
    return read_matchers([Matcher(name, arguments, negated=False)], matcher, syntax)[name]


@pytest.mark.parametrize("name", ["HostRegexp", "hostregexp", "HOSTREGEXP", "Hostregexp"])
def test_a_matcher_has_four_spellings(name: str) -> None:
    assert read(name, "x") is Role.PATTERNS


@pytest.mark.parametrize(
    ("name", "matcher", "syntax"),
    [
        pytest.param("hostRegexp", "Host", "v3", id="a fifth spelling"),
        pytest.param("HoSt", "Host", "v3", id="a mixture"),
        pytest.param("HostSNI", "Host", "v3", id="of another protocol"),
        pytest.param("Host", "HostSNI", "v3", id="of another protocol, TCP"),
        pytest.param("HostHeader", "Host", "v3", id="of v2"),
        pytest.param("Headers", "Host", "v3", id="Headers of v2"),
        pytest.param("PathRegexp", "Host", "v2", id="of v3"),
        pytest.param("Hośt", "Host", "v3", id="another script"),
    ],
)
def test_an_unknown_matcher_is_refused(name: str, matcher: str, syntax: Syntax) -> None:
    with pytest.raises(BadRule, match=f"is not a matcher of {matcher} rules in the {syntax} syntax"):
        read(name, "a", matcher=matcher, syntax=syntax)


@pytest.mark.parametrize(
    ("name", "arguments", "syntax", "fault"),
    [
        pytest.param("Host", (), "v3", "has 0 arguments instead of 1", id="none"),
        pytest.param("Host", (), "v2", "has 0 arguments instead of 1 to any number", id="none in v2"),
        pytest.param("Host", ("a", "b"), "v3", "has 2 arguments instead of 1", id="two in v3"),
        pytest.param("Path", ("/a", "/b"), "v3", "has 2 arguments instead of 1", id="two paths in v3"),
        pytest.param("Header", ("a",), "v3", "has 1 arguments instead of 2", id="half a header"),
        pytest.param("Query", ("a", "b", "c"), "v3", "has 3 arguments instead of 1 to 2", id="a long query"),
        pytest.param("Host", ("",), "v3", "empty argument", id="empty"),
        pytest.param("Host", ("a", ""), "v2", "empty argument", id="empty in v2"),
        pytest.param("Host", ("münchen.example.org",), "v3", "not ASCII", id="another script"),
        pytest.param("Host", ("a", "\u212a.example.org"), "v2", "not ASCII", id="the Kelvin sign"),
    ],
)
def test_bad_arguments_are_refused(name: str, arguments: tuple[str, ...], syntax: Syntax, fault: str) -> None:
    with pytest.raises(BadRule, match=fault) as caught:
        read(name, *arguments, syntax=syntax)
    assert str(caught.value).isascii()


@pytest.mark.parametrize(
    ("host", "syntax"),
    [
        pytest.param("*.a", "v2", id="a wildcard in v2"),
        pytest.param("**", "v3", id="two stars"),
        pytest.param("a.*", "v3", id="a last star"),
        pytest.param("a b", "v3", id="a blank"),
        pytest.param("a\n", "v3", id="a newline"),
        pytest.param("{n:.*}", "v2", id="braces"),
    ],
)
def test_traefik_refuses_a_server_name_with_other_characters(host: str, syntax: Syntax) -> None:
    with pytest.raises(BadRule, match=f"which Traefik refuses in the {syntax} syntax"):
        read("HostSNI", host, matcher="HostSNI", syntax=syntax)


@pytest.mark.parametrize("host", ["a", "a.example.org.", "A_b-c", "192.0.2.1", "2001:db8::1", "*", "*.a"])
def test_traefik_accepts_a_server_name(host: str) -> None:
    assert read("HostSNI", host, matcher="HostSNI") is Role.HOSTS

"""The hosts of servers, by the namespaces that may bind to them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import BadName, parse_hostname
from dnsproxy.sources.istio.hosts import BadHost, ServerHosts, first_hosts, parse_server_host, parse_servers
from dnsproxy.sources.istio.structs import Server


def read(*hosts: Any, most: int | None = None) -> ServerHosts:
    parsed, faults = parse_servers([Server(hosts)], home="infra", most=most)
    assert faults == []
    return parsed


def names(hosts: ServerHosts, namespace: str) -> set[str]:
    found = {name for some in hosts.names_for(namespace) for name in some.names}
    return found | ({"*"} if hosts.have_every_name_for(namespace) else set())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a.example.org", ("*", "a.example.org"), id="every namespace by default"),
        pytest.param("*/a.example.org", ("*", "a.example.org"), id="every namespace"),
        pytest.param("./a.example.org", ("infra", "a.example.org"), id="the Gateway's namespace"),
        pytest.param("web/A.Example.org.", ("web", "a.example.org"), id="a namespace, and the normal form"),
        pytest.param("web/*.example.org", ("web", "*.example.org"), id="a wildcard"),
        pytest.param("*", ("*", None), id="every name"),
        pytest.param("*/*", ("*", None), id="every name of every namespace"),
        pytest.param("./*", ("infra", None), id="every name of the Gateway's namespace"),
        pytest.param("web/*", ("web", None), id="every name of a namespace"),
    ],
)
def test_a_host_has_a_namespace_and_a_name(text: str, expected: tuple[str, str | None]) -> None:
    assert parse_server_host(text, "infra") == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("/", id="slash"),
        pytest.param("/a.example.org", id="empty namespace"),
        pytest.param("web/", id="empty name"),
        pytest.param("a/b/c.example.org", id="two slashes"),
        pytest.param("~/a.example.org", id="no namespace"),
        pytest.param("WEB/a.example.org", id="upper-case namespace"),
        pytest.param("w.b/a.example.org", id="namespace with a dot"),
        pytest.param(f"{'w' * 64}/a.example.org", id="long namespace"),
        pytest.param("we\x1b[m/a.example.org", id="control characters"),
        pytest.param("192.0.2.1", id="address"),
        pytest.param("*-x.example.org", id="wildcard in a label"),
        pytest.param("a.*.example.org", id="wildcard in the middle"),
        pytest.param("**", id="two stars"),
        pytest.param("a..example.org", id="empty label"),
        pytest.param("web/*/", id="slash at the end"),
    ],
)
def test_an_invalid_host_is_quoted_and_harms_no_other(text: str) -> None:
    with pytest.raises((BadHost, BadName)) as caught:
        parse_server_host(text, "infra")
    assert str(caught.value).isprintable()
    parsed, faults = parse_servers([None, Server((text, "a.example.org", None)), Server()], home="infra", most=None)
    assert names(parsed, "web") == {"a.example.org"}
    assert f"servers: {caught.value}" in faults


@given(st.text(max_size=20) | st.from_regex(r"(\.|\*|[a-z]{1,3})?/?(\*|(\*\.)?[a-z]{1,3}\.org)", fullmatch=True))
def test_any_text_is_a_host_or_refused(text: str) -> None:
    try:
        namespace, hostname = parse_server_host(text, "infra")
    except (BadHost, BadName):
        return
    assert parse_server_host(f"{namespace}/{hostname or '*'}", "infra") == (namespace, hostname)
    assert hostname is None or parse_hostname(hostname) == hostname


def test_a_namespace_has_its_own_hosts_and_those_of_every_namespace() -> None:
    hosts = read("a.example.org", "*/b.example.org", "web/c.example.org", "./d.example.org", "shop/*")
    assert names(hosts, "web") == {"a.example.org", "b.example.org", "c.example.org"}
    assert names(hosts, "infra") == {"a.example.org", "b.example.org", "d.example.org"}
    assert names(hosts, "shop") == {"a.example.org", "b.example.org", "*"}
    assert all(hosts.admit(namespace) for namespace in ("web", "infra", "shop", "other"))


def test_hosts_of_one_namespace_admit_no_other() -> None:
    assert [read("web/a.example.org").admit(one) for one in ("web", "shop", "*")] == [True, False, False]
    assert [read("./*").admit(one) for one in ("infra", "web")] == [True, False]
    assert not read().admit("infra")


def test_only_names_without_wildcards_are_exact_and_each_comes_once() -> None:
    hosts = read("b.example.org", "*.example.org", "web/b.example.org", "shop/a.example.org", "*")
    assert list(hosts.exact_names()) == ["b.example.org", "a.example.org"]


def test_hosts_beyond_the_limit_are_not_read() -> None:
    """Over all servers; one host that is there twice counts once."""
    many = [Server(tuple(f"h{number}.example.org" for number in range(100_000)))]
    parsed, faults = parse_servers([Server(("h0.example.org", "h1.example.org")), *many], home="infra", most=3)
    assert sorted(names(parsed, "web")) == ["h0.example.org", "h1.example.org", "h2.example.org"]
    assert parsed.is_cut
    assert faults == ["it claims more than 3 names (--max-names-per-object): the others are left out"]
    assert not read("a.example.org", "a.example.org", "b.example.org", most=2).is_cut


def test_the_first_texts_are_taken_as_they_are() -> None:
    assert first_hosts(["b", None, "a", "b"], None) == (["b", "", "a"], [])

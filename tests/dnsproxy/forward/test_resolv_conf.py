"""resolv.conf: nameservers, options and search list of valid, unusual and broken files."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.forward.resolv_conf import (
    ResolverOptions,
    find_cluster_domain,
    parse_nameservers,
    parse_options,
    parse_search,
    search_domains,
)

POD = "search shop.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n"


@pytest.mark.parametrize(
    ("content", "nameservers"),
    [
        pytest.param("", [], id="empty"),
        pytest.param(POD, ["10.96.0.10"], id="pod"),
        pytest.param("nameserver 192.0.2.1", ["192.0.2.1"], id="no final newline"),
        pytest.param("\tnameserver\t192.0.2.1\r\n", ["192.0.2.1"], id="tabs and CRLF"),
        pytest.param(
            "".join(f"nameserver 192.0.2.{number}\n" for number in range(1, 6)),
            [f"192.0.2.{number}" for number in range(1, 6)],
            id="more than three",
        ),
        pytest.param("nameserver 192.0.2.1\nnameserver 192.0.2.1\n", ["192.0.2.1"], id="twice the same"),
        pytest.param("nameserver 2001:DB8::0:1\n", ["2001:db8::1"], id="IPv6"),
        pytest.param("nameserver fe80::1%eth0\n", ["fe80::1%eth0"], id="zone"),
        pytest.param("nameserver 192.0.2.1 # office\n", ["192.0.2.1"], id="comment behind"),
        pytest.param("# nameserver 192.0.2.9\n ;nameserver 192.0.2.9\n", [], id="comments"),
        pytest.param("#\u0085nameserver 192.0.2.9\n;\u2028nameserver 192.0.2.9\n", [], id="only a newline ends a line"),
        pytest.param("nameserver\nnameserver 192.0.2.1\n", ["192.0.2.1"], id="no address"),
        pytest.param("nameserver dns.example.org\nnameserver 192.0.2.1\n", ["192.0.2.1"], id="name"),
        pytest.param("nameserver 192.0.2.1:53\nnameserver 192.0.2.256\n", [], id="port, number too large"),
        pytest.param("nameserver192.0.2.1\nnameservers 192.0.2.1\nNAMESERVER 192.0.2.1\n", [], id="other keywords"),
        pytest.param("\0\nnameserver 192.0.2.1\n", ["192.0.2.1"], id="NUL"),
        pytest.param("\ufeffnameserver 192.0.2.1\r\n", ["192.0.2.1"], id="byte order mark"),
        pytest.param("domain example.org\nsortlist 192.0.2.0\noptions rotate\n", [], id="no nameserver at all"),
    ],
)
def test_nameservers_are_read_and_the_rest_is_passed_over(content: str, nameservers: list[str]) -> None:
    assert parse_nameservers(content) == nameservers


@pytest.mark.parametrize(
    ("content", "search"),
    [
        pytest.param("", [], id="empty"),
        pytest.param(POD, ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local"], id="pod"),
        pytest.param("search example.org\nsearch example.net\n", ["example.net"], id="the last counts"),
        pytest.param("search example.org\ndomain example.net\n", ["example.net"], id="domain is a search of one"),
        pytest.param("search Example.ORG. example.net\n", ["example.org", "example.net"], id="case and final dot"),
        pytest.param("search example.org\nsearch\n", [], id="an empty one ends it"),
        pytest.param("# search example.org\n;search example.org\nsearchexample.org\n", [], id="no search"),
    ],
)
def test_the_last_search_list_counts(content: str, search: list[str]) -> None:
    assert parse_search(content) == search


@pytest.mark.parametrize(
    ("search", "domain"),
    [
        pytest.param(["shop.svc.cluster.local", "svc.cluster.local", "cluster.local"], "cluster.local", id="pod"),
        pytest.param(
            ["shop.svc.k8s.example.org", "svc.k8s.example.org", "k8s.example.org", "example.org"],
            "k8s.example.org",
            id="own domain, host's list behind",
        ),
        pytest.param(["cluster.local", "svc.cluster.local", "shop.svc.cluster.local"], "cluster.local", id="any order"),
        pytest.param(["svc.example", "svc.test", "test", "example"], "test", id="a tie goes to the shorter"),
        pytest.param(
            ["corp.example.net", "shop.svc.cozy.local", "svc.cozy.local", "cozy.local", "example.org"],
            "cozy.local",
            id="a company's list around it",
        ),
        pytest.param(["a.svc.one.test", "svc.one.test", "svc.two", "one.test", "two"], "one.test", id="the most svc"),
        pytest.param([], None, id="empty"),
        pytest.param(["example.org", "example.net"], None, id="a host's list"),
        pytest.param(["svc.cluster.local"], None, id="no domain behind it"),
        pytest.param(["shop.svc.cluster.local", "cluster"], None, id="half a name"),
        pytest.param(["", "svc."], None, id="root"),
    ],
)
def test_the_cluster_domain_is_what_the_svc_entries_end_with(search: list[str], domain: str | None) -> None:
    assert find_cluster_domain(search) == domain


PLAIN = ResolverOptions()


@pytest.mark.parametrize(
    ("content", "options"),
    [
        pytest.param("", PLAIN, id="empty"),
        pytest.param("nameserver 192.0.2.1\n", PLAIN, id="no options"),
        pytest.param("options\n", PLAIN, id="options without any"),
        pytest.param(POD, PLAIN, id="pod"),
        pytest.param("options rotate use-vc\n", ResolverOptions(rotate=True, use_vc=True), id="two on a line"),
        pytest.param("options rotate\noptions use-vc", ResolverOptions(rotate=True, use_vc=True), id="lines add up"),
        pytest.param("\toptions\trotate\r\n", ResolverOptions(rotate=True), id="tabs and CRLF"),
        pytest.param("options timeout:1 attempts:1\n", ResolverOptions(timeout=1, attempts=1), id="numbers"),
        pytest.param("options timeout:3 timeout:2\n", ResolverOptions(timeout=2), id="the last timeout counts"),
        pytest.param(
            "options attempts:1\noptions attempts:3\n", ResolverOptions(attempts=3), id="the last line counts"
        ),
        pytest.param("options attempts:1 attempts:x\n", ResolverOptions(attempts=1), id="nonsense does not count"),
        pytest.param(
            "options timeout:60 attempts:9\n", ResolverOptions(timeout=30, attempts=5), id="the C library's caps"
        ),
        pytest.param(f"options timeout:{'9' * 5000}\n", ResolverOptions(timeout=30), id="5,000 digits"),
        pytest.param(f"options attempts:{'0' * 5000}1\n", ResolverOptions(attempts=1), id="5,000 zeros in front"),
        pytest.param("options attempts:0 timeout:0 attempts:00\n", PLAIN, id="zero"),
        pytest.param("options attempts: timeout:\n", PLAIN, id="no number"),
        pytest.param("options attempts:-1 timeout:+3\n", PLAIN, id="sign"),
        pytest.param("options attempts:1.5 timeout:1s\n", PLAIN, id="fraction, unit"),
        pytest.param("options attempts:\u0663 timeout:\u00b2\n", PLAIN, id="other digits"),
        pytest.param("options attempts 1 timeout =1\n", PLAIN, id="no colon"),
        pytest.param("options ATTEMPTS:1 Rotate USE-VC\n", PLAIN, id="other case"),
        pytest.param("options rotate:1 norotate use-vcs xattempts:1\n", PLAIN, id="nearly"),
        pytest.param(
            "options edns0 ndots:5 single-request trust-ad inet6 debug\n", PLAIN, id="options that are not ours"
        ),
        pytest.param("# options rotate\n;options use-vc\n", PLAIN, id="comments"),
        pytest.param("options rotate # attempts:1\n", ResolverOptions(rotate=True, attempts=1), id="no comment behind"),
        pytest.param("rotate\noption rotate\noptionsrotate\n", PLAIN, id="other keywords"),
        pytest.param("nameserver 192.0.2.1 rotate\nsearch use-vc\n", PLAIN, id="the words elsewhere"),
    ],
)
def test_options_are_read_and_the_rest_is_passed_over(content: str, options: ResolverOptions) -> None:
    assert parse_options(content) == options


@given(st.text() | st.text("optionstimeout:attempts:0129 \n", max_size=80).map("options ".__add__))
def test_options_stay_within_the_bounds_of_the_c_library(content: str) -> None:
    options = parse_options(content)
    assert 1 <= options.timeout <= 30
    assert 1 <= options.attempts <= 5


@given(st.text() | st.text("nameserver search1.:%#;\n ", max_size=80))
def test_any_text_is_a_resolv_conf(content: str) -> None:
    nameservers = parse_nameservers(content)
    assert [str(ipaddress.ip_address(address)) for address in nameservers] == list(dict.fromkeys(nameservers))
    domain = find_cluster_domain(parse_search(content))
    assert domain is None or domain in parse_search(content)


@pytest.mark.parametrize(
    ("search", "domains"),
    [
        pytest.param([], (), id="empty"),
        pytest.param(["eu.example.org", "lan"], ("eu.example.org", "lan"), id="as it is"),
        pytest.param(["lan", "eu.example.org", "lan"], ("lan", "eu.example.org"), id="each once"),
        pytest.param(["bücher.example.org"], ("xn--bcher-kva.example.org",), id="normal form"),
        pytest.param([""], (), id="root"),
        pytest.param(["a..b", "-x", "*.example.org", "192.0.2.1", "\0", "a b"], (), id="no names"),
        pytest.param(["a..b", "lan"], ("lan",), id="one of two"),
    ],
)
def test_the_search_domains_are_the_names_of_the_list(search: list[str], domains: tuple[str, ...]) -> None:
    assert search_domains(search) == domains

"""resolv.conf: nameservers and search list of files good, odd and broken."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.resolvconf import find_cluster_domain, parse_nameservers, parse_search

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
        pytest.param([], None, id="empty"),
        pytest.param(["example.org", "example.net"], None, id="a host's list"),
        pytest.param(["svc.cluster.local"], None, id="no domain behind it"),
        pytest.param(["shop.svc.cluster.local", "cluster"], None, id="half a name"),
        pytest.param(["", "svc."], None, id="root"),
    ],
)
def test_the_cluster_domain_is_what_the_svc_entries_end_with(search: list[str], domain: str | None) -> None:
    assert find_cluster_domain(search) == domain


@given(st.text() | st.text("nameserver search1.:%#;\n ", max_size=80))
def test_any_text_is_a_resolv_conf(content: str) -> None:
    nameservers = parse_nameservers(content)
    assert [str(ipaddress.ip_address(address)) for address in nameservers] == list(dict.fromkeys(nameservers))
    domain = find_cluster_domain(parse_search(content))
    assert domain is None or domain in parse_search(content)

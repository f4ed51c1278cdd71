"""Which live hostnames are in no zone of what is installed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.install.change.coverage import Coverage, find_coverage, judge_coverage, serves_every_name


@pytest.mark.parametrize(
    ("zones", "hosts", "missing", "would"),
    [
        (["example.org"], ["a.example.org", "example.org"], (), ()),
        (["example.org"], ["*.example.org", "A.Example.ORG"], (), ()),
        (["example.org"], ["a.example.net"], ("a.example.net",), ("example.net",)),
        (["example.org"], ["a.example.net", "b.example.net"], ("a.example.net", "b.example.net"), ("example.net",)),
        (["example.org"], ["notexample.org"], ("notexample.org",), ("notexample.org",)),
        (["apps.example.org"], ["a.apps.example.org"], (), ()),
        (["apps.example.org"], ["*.example.org"], ("*.example.org",), ("example.org",)),
        (["example.org"], ["localhost", "a.svc.cluster.local", "", "a..b"], (), ()),
        (["example.org", "example.net"], ["a.example.net"], (), ()),
        (["example.org"], [], (), ()),
    ],
)
def test_hosts_in_no_zone_are_named_with_the_zones_for_them(
    zones: list[str], hosts: list[str], missing: tuple[str, ...], would: tuple[str, ...]
) -> None:
    found = find_coverage(zones, hosts, "a table")
    assert (found.hosts, found.zones, found.source) == (missing, would, "a table")


@pytest.mark.parametrize(
    ("within", "missing"),
    [
        ((), ("a.example.com", "a.example.net")),
        (("example.net",), ("a.example.net",)),
        (("example.org",), ()),
        ((".",), ("a.example.com", "a.example.net")),
    ],
)
def test_hosts_outside_the_named_zones_do_not_count(within: tuple[str, ...], missing: tuple[str, ...]) -> None:
    hosts = ["a.example.org", "a.example.net", "a.example.com"]
    assert find_coverage(["example.org."], hosts, "a table", within=within).hosts == missing


names = st.from_regex(r"[a-c]\.example\.(org|net|com)", fullmatch=True)


@given(st.lists(names))
def test_with_the_zones_that_are_named_no_host_is_missing(hosts: list[str]) -> None:
    missing = find_coverage(["example.org."], hosts, "a table").zones
    assert find_coverage(["example.org.", *missing], hosts, "a table").hosts == ()


def test_the_root_serves_every_name() -> None:
    assert serves_every_name(["."])
    assert not serves_every_name(["example.org."])
    assert not serves_every_name([])
    assert find_coverage(["."], ["a.example.net"], "a table").hosts == ()


MISSING = Coverage(("a.example.net", "b.example.org"), ("example.net", "example.org"), "a test")


@pytest.mark.parametrize(
    ("planned", "expected"),
    [
        pytest.param(MISSING.zones, MISSING, id="all are installed"),
        pytest.param(
            ("example.net", "a"), replace(MISSING, hosts=MISSING.hosts[:1], zones=MISSING.zones[:1]), id="one"
        ),
        pytest.param(("a",), replace(MISSING, chosen=True), id="none"),
    ],
)
def test_hosts_that_an_install_leaves_out_are_not_missing(planned: tuple[str, ...], expected: Coverage) -> None:
    assert judge_coverage(MISSING, planned) == expected
    assert judge_coverage(Coverage(), planned) == Coverage()

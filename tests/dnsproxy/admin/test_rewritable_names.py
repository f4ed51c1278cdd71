"""Rewritable names: what CoreDNS does with them is what the table does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.admin import rewritable_names
from dnsproxy.admin.rewritable_names import RewritableNames, find_rewritable
from dnsproxy.answers.table import Host, HostTable
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.corefile.rewrite_lines import Rewrite, format_rewrites
from dnsproxy.dns.names import Reach, to_wire
from tests.kit.rewriting import rewritten
from tests.kit.stepping import finish

RELAY, OTHER, DEAD = "switchback/relay", "web/other", "web/dead"
ADDRESSES: Final = {RELAY: ("192.0.2.1",), OTHER: ("192.0.2.2",), DEAD: ("192.0.2.3",), "": ("192.0.2.4",)}
DOMAIN: Final = "cluster.local"


def table_of(
    hosts: Iterable[Host], *, never: Iterable[str] = (), closed: Iterable[str] = (), unready: Iterable[str] = (DEAD,)
) -> HostTable:
    writer = TableWriter(ttl=5, never=never)
    for host in hosts:
        writer.put(host)
    writer.close(closed)
    writer.forward(frozenset(unready))
    return writer.publish()


def host(hostname: str, service: str, reach: Reach = Reach.NAME) -> Host:
    return Host(hostname, reach, ADDRESSES[service], service=service)


def found_in(table: HostTable) -> RewritableNames:
    return finish(find_rewritable(table, lambda hostname, _: hostname))


def lines_of(found: RewritableNames) -> tuple[str, ...]:
    named = [Rewrite(hostname, Reach(reach), service) for _, hostname, reach, service in found.rows]
    return format_rewrites([*named, *(Rewrite(*key) for key in found.exempt)], DOMAIN)


bases = st.lists(st.sampled_from("abc"), max_size=3).map(lambda labels: ".".join([*labels, "org"]))
hosts = st.builds(
    lambda reach, base, service: host(base if reach is Reach.NAME else f"*.{base}", service, reach),
    st.sampled_from(Reach),
    bases,
    st.sampled_from(sorted(ADDRESSES)),
)
asked = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=5).map(lambda labels: ".".join([*labels, "org"]))


@given(
    st.lists(hosts, max_size=8),
    st.lists(bases, max_size=2),
    st.lists(bases, max_size=2),
    st.lists(asked, min_size=1, max_size=20),
)
def test_coredns_gives_each_name_the_service_that_the_table_gives_it(
    rows: list[Host], never: list[str], closed: list[str], names: list[str]
) -> None:
    table = table_of(rows, never=never, closed=closed)
    lines = lines_of(found_in(table))
    for name in (*names, *(row.hostname.removeprefix("*.") for row in rows), *never, *closed):
        answers = table.find(to_wire(name))
        service = answers.service if answers is not None and answers.addresses else ""
        namespace, _, own = service.partition("/")
        expected = f"{own}.{namespace}.svc.{DOMAIN}." if service else f"{name}."
        assert rewritten(lines, f"{name}.") == expected


@given(st.lists(hosts, max_size=8), st.lists(bases, max_size=2), st.lists(bases, max_size=2))
def test_only_names_below_a_wildcard_are_exempt(rows: list[Host], never: list[str], closed: list[str]) -> None:
    found = found_in(table_of(rows, never=never, closed=closed))
    wildcards = [(hostname[2:], reach) for _, hostname, reach, _ in found.rows if hostname.startswith("*.")]
    for hostname, reach in found.exempt:
        base = hostname.removeprefix("*.")
        above = [one for one, kind in wildcards if kind == Reach.ANY_LABELS.value and base.endswith(f".{one}")]
        beside = [
            one
            for one, kind in wildcards
            if (kind == Reach.ONE_LABEL.value and reach is Reach.NAME and base.partition(".")[2] == one)
            or (kind == Reach.ANY_LABELS.value and reach is Reach.ONE_LABEL and base == one)
        ]
        assert above or beside


def test_names_are_counted_by_what_answers_them() -> None:
    rows = [host("a.org", RELAY), host("b.org", ""), host("c.org", DEAD), host("*.d.org", "", Reach.ANY_LABELS)]
    found = found_in(table_of(rows))
    assert [row[1:] for row in found.rows] == [("a.org", "exact", RELAY)]
    assert (found.plain, found.left_out, found.exempt) == (2, 0, [])


def test_with_too_many_names_the_wildcards_and_then_the_youngest_names_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rewritable_names, "MOST", 10)
    rows = [host(f"n{number:02}.org", RELAY) for number in (*range(7, 15), *range(7))]
    rows += [host("*.org", RELAY, Reach.ANY_LABELS), host("own.org", "")]
    ages = {f"n{number:02}.org": f"2026-01-{20 - number:02}" for number in range(15)}
    found = finish(find_rewritable(table_of(rows), lambda hostname, _: ages.get(hostname, "9")))
    assert [row[1] for row in found.rows] == [f"n{number:02}.org" for number in reversed(range(5, 15))]
    assert (found.left_out, found.exempt) == (6, [])


def test_with_too_many_exempt_names_their_wildcards_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewritable_names, "MOST_EXEMPT", 3)
    wildcard, exact = host("*.org", RELAY, Reach.ANY_LABELS), host("a.org", RELAY)
    few = found_in(table_of([wildcard, exact, *(host(f"n{number}.org", "") for number in range(3))]))
    assert (len(few.rows), len(few.exempt), few.left_out) == (2, 3, 0)
    many = found_in(table_of([wildcard, exact, *(host(f"n{number}.org", "") for number in range(4))]))
    assert ([row[1] for row in many.rows], many.exempt, many.left_out) == (["a.org"], [], 1)


def test_the_order_of_a_table_makes_no_difference() -> None:
    rows = [host(f"n{number}.org", RELAY) for number in range(30)] + [host("*.org", RELAY, Reach.ONE_LABEL)]
    rows += [host(f"p{number}.org", "") for number in range(10)]
    first = found_in(table_of(rows))
    assert found_in(table_of(reversed(rows))) == first

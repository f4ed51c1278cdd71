"""The document of a table: its content, its tag, and the documents that are refused."""

from __future__ import annotations

import gzip
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.admin import publication
from dnsproxy.admin.publication import (
    Document,
    Name,
    Publication,
    format_document,
    names_of,
    parse_document,
    sort_key,
    write_document,
)
from dnsproxy.answers.table import Host, HostTable
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns.names import Reach

HOSTS = (
    Host("app.example.org", Reach.NAME, ("192.0.2.10", "2001:db8::10")),
    Host("under_score.example.net", Reach.NAME, ("192.0.2.11",)),
    Host("*.example.org", Reach.ONE_LABEL, ("192.0.2.12",)),
    Host("*.example.org", Reach.ANY_LABELS, ("192.0.2.13",)),
    Host("example", Reach.NAME, ("192.0.2.14",)),
)


def table_of(*hosts: Host) -> HostTable:
    writer = TableWriter(ttl=5)
    for host in hosts:
        writer.put(host)
    return writer.publish()


def document_of(*hosts: Host, ttl: int = 5) -> Document:
    steps = write_document(names_of(table_of(*hosts)), ttl=ttl)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            document: Document = done.value
            return document


labels = st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=1, max_size=20)
hostnames = st.lists(labels, min_size=1, max_size=4).map(".".join).filter(lambda name: not name[-1].isdigit())
addresses = st.lists(st.ip_addresses().map(str).filter(lambda one: "%" not in one), min_size=1, max_size=3).map(tuple)
hosts = st.lists(
    st.one_of(
        st.builds(Host, hostnames, st.just(Reach.NAME), addresses),
        st.builds(Host, hostnames.map("*.{}".format), st.sampled_from((Reach.ONE_LABEL, Reach.ANY_LABELS)), addresses),
    ),
    max_size=60,
    unique_by=lambda host: (host.hostname, host.reach),
)


@given(hosts)
def test_a_document_reads_back_as_the_rows_of_the_table(rows: list[Host]) -> None:
    document = document_of(*rows)
    read = parse_document(document.octets)
    assert {(name.hostname, name.reach): name.addresses for name in read.names} == {
        (row.hostname, row.reach): row.addresses for row in rows
    }
    assert (read.ttl, document.names) == (5, len(rows))


@given(hosts, st.randoms(use_true_random=False))
def test_the_tag_depends_on_the_rows_and_not_on_their_order(rows: list[Host], rng: random.Random) -> None:
    shuffled = list(rows)
    rng.shuffle(shuffled)
    first, second = document_of(*rows), document_of(*shuffled)
    assert first.tag == second.tag
    assert parse_document(first.octets) == parse_document(second.octets)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(HOSTS[1:], id="a name less"),
        pytest.param((*HOSTS, Host("b.example.org", Reach.NAME, ("192.0.2.10",))), id="a name more"),
        pytest.param((Host("app.example.org", Reach.NAME, ("192.0.2.10",)), *HOSTS[1:]), id="an address less"),
        pytest.param(
            (Host("app.example.org", Reach.NAME, ("2001:db8::10", "192.0.2.10")), *HOSTS[1:]),
            id="another order of them",
        ),
        pytest.param((*HOSTS[:2], *HOSTS[3:]), id="a reach less"),
        pytest.param((), id="nothing"),
    ],
)
def test_another_table_has_another_tag(changed: tuple[Host, ...]) -> None:
    assert document_of(*changed).tag != document_of(*HOSTS).tag


def test_another_ttl_has_another_tag() -> None:
    assert document_of(*HOSTS, ttl=6).tag != document_of(*HOSTS).tag


def test_names_are_sorted_from_the_right() -> None:
    names = parse_document(document_of(*HOSTS).octets).names
    assert [name.hostname for name in names] == [
        "example",
        "under_score.example.net",
        "*.example.org",
        "*.example.org",
        "app.example.org",
    ]
    assert list(names) == sorted(names, key=sort_key)


def test_the_same_publication_is_always_the_same_octets() -> None:
    one = parse_document(document_of(*HOSTS).octets)
    other = parse_document(document_of(*reversed(HOSTS)).octets)
    assert format_document(one) == format_document(other)
    assert parse_document(format_document(one).octets) == one


def test_an_empty_table_is_a_document_too() -> None:
    assert parse_document(document_of().octets) == Publication(5, ())


def test_a_long_document_is_written_in_many_steps() -> None:
    steps = write_document((Name(f"h{number}.example.org", ("192.0.2.1",)) for number in range(1000)), ttl=5)
    assert sum(1 for _ in steps) == 1000 // 40


def packed(value: Any) -> bytes:
    return gzip.compress(json.dumps(value).encode())


def rows(*names: Any) -> bytes:
    return packed({"ttl": 5, "names": list(names)})


GOOD = document_of(*HOSTS).octets


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        pytest.param(b"", "cut", id="nothing"),
        pytest.param(b"{}", "incorrect header", id="not gzipped"),
        pytest.param(GOOD[:-1], "cut", id="cut"),
        pytest.param(GOOD + b"x", "cut", id="more behind it"),
        pytest.param(GOOD[:20] + b"\0\0\0" + GOOD[23:], ".", id="broken in the middle"),
        pytest.param(gzip.compress(b"<html>"), "malformed", id="not JSON"),
        pytest.param(packed([]), "Expected `object`", id="a list"),
        pytest.param(packed({"names": []}), "ttl", id="no ttl"),
        pytest.param(packed({"ttl": 5}), "names", id="no names"),
        pytest.param(rows(["a.example.org"]), "length 2", id="no addresses at all"),
        pytest.param(rows(["a.example.org", []]), "has no address", id="no address"),
        pytest.param(rows(["a.example.org", "192.0.2.1"]), "Expected `array`", id="addresses as text"),
        pytest.param(rows(["a.example.org", ["192.0.2.256"]]), "does not appear to be", id="no address in it"),
        pytest.param(
            rows(["a.example.org", ["2001:DB8::1"]]), "is not an address in normal form", id="address in upper case"
        ),
        pytest.param(
            rows(["a.example.org", ["fe80::1%eth0"]]), "is not an address in normal form", id="scoped address"
        ),
        pytest.param(rows(["A.example.org", ["192.0.2.1"]]), "normal form", id="upper case"),
        pytest.param(rows(["a.example.org\n192.0.2.9 evil", ["192.0.2.1"]]), "not a host label", id="a second line"),
        pytest.param(rows(["a b", ["192.0.2.1"]]), "not a host label", id="a second name"),
        pytest.param(rows(["a#b", ["192.0.2.1"]]), "not a host label", id="a comment"),
        pytest.param(rows(["", ["192.0.2.1"]]), "not a hostname", id="no name"),
        pytest.param(rows(["192.0.2.1", ["192.0.2.1"]]), "IP address", id="an address as a name"),
        pytest.param(rows(["*.example.org", ["192.0.2.1"]]), "does not reach", id="a wildcard as a name"),
        pytest.param(rows(["a.example.org", ["192.0.2.1"], "one label"]), "does not reach", id="a name as a wildcard"),
        pytest.param(rows(["a.example.org", ["192.0.2.1"], "two"]), "Invalid enum value", id="an unknown reach"),
        pytest.param(rows(*[["a.example.org", ["192.0.2.1"]]] * 2), "comes twice", id="a name twice"),
    ],
)
def test_any_other_document_is_refused(octets: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_document(octets)


def test_a_document_that_unpacks_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication, "LARGEST", 1000)
    with pytest.raises(ValueError, match="larger than"):
        parse_document(gzip.compress(b" " * 1001))


@given(st.binary(max_size=200), st.booleans())
def test_garbage_is_a_value_error(octets: bytes, wrapped: bool) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_document(gzip.compress(octets) if wrapped else octets)


def test_a_name_is_in_front_of_the_names_below_it_and_those_in_front_of_its_neighbours() -> None:
    """Also of a label that is less than the text of a reach, and of a neighbour with a dash."""
    order = ["example.org", "a.example.org", "b.a.example.org", "z.example.org", "example-a.org", "examples.org"]
    names = tuple(Name(hostname, ("192.0.2.1",)) for hostname in sorted(order))
    parsed = parse_document(format_document(Publication(5, names)).octets)
    assert [name.hostname for name in parsed.names] == order

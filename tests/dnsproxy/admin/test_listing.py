"""The listing: every row of the table, in three forms, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.admin.listing import (
    Listing,
    Row,
    format_columns,
    format_hosts,
    format_json,
    format_listing,
    parse_listing,
    select_rows,
)
from dnsproxy.answers.table import Host
from dnsproxy.dns.names import Reach, is_wildcard
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import LedElsewhere
from tests.dnsproxy.answers.test_table_writer import contents, write
from tests.dnsproxy.hostnames.test_registry import Following, object_claims
from tests.kit.stepping import parse_hosts

RELAY: Final = "192.0.2.10"


def row(hostname: str, *addresses: str, reach: Reach = Reach.ANY_LABELS, origin: str = "web") -> Row:
    reach = reach if is_wildcard(hostname) else Reach.NAME
    return Row(hostname, reach, addresses or (RELAY,), Origin("Ingress", origin, "shop"), "nginx")


def listed(registry: Registry) -> Listing:
    return parse_listing(b"".join(format_listing(registry, ttl=5, notes=["a note"])))


@given(st.lists(object_claims(), max_size=8))
def test_the_rows_are_those_of_the_table(steps: list[tuple[tuple[str, str], tuple[Claim, ...]]]) -> None:
    following = Following()
    for key, claims in steps:
        following.replace(key, *claims)
    rows = listed(following.registry).names
    hosts = [Host(one.hostname, one.reach, one.addresses) for one in rows]
    assert contents(write(hosts)) == contents(following.table())
    assert len(hosts) == len(following.table())


def test_a_row_has_the_origin_of_the_claim() -> None:
    registry = Registry(targets=Targets((RELAY,)), guards=Guards(deny=("no.example.org",)))
    for name in ("a.example.org", "no.example.org"):
        claim = Claim(name, Reach.NAME, Origin("Ingress", "web", "shop", "2026-01-01T00:00:00Z"), Terms((), "nginx"))
        registry.replace("Ingress", name, [claim])
    listing = listed(registry)
    origin = Origin("Ingress", "web", "shop", "2026-01-01T00:00:00Z")
    assert listing == Listing(5, ("a note",), (Row("a.example.org", Reach.NAME, (RELAY,), origin, "nginx"),))


def test_a_large_table_comes_in_pieces_while_it_changes() -> None:
    registry = Registry(targets=Targets((RELAY,)), guards=Guards())
    for number in range(1000):
        name = f"h{number}.example.org"
        registry.replace("Ingress", name, [Claim(name, Reach.NAME, Origin("Ingress", name))])
    pieces = format_listing(registry, ttl=5, notes=())
    octets = next(pieces) + next(pieces)
    for number in range(500, 1000):
        registry.replace("Ingress", f"h{number}.example.org", [])
    registry.replace("Ingress", "new", [Claim("new.example.org", Reach.NAME, Origin("Ingress", "new"))])
    rest = list(pieces)
    assert max(piece.count(b"\n") for piece in rest) <= 51
    assert len(parse_listing(octets + b"".join(rest)).names) == 500


@pytest.mark.parametrize(
    ("zones", "names"),
    [
        pytest.param(
            [], ["a.example.net", "example.org", "*.example.org", "a.example.org", "x.a.example.org"], id="all"
        ),
        pytest.param(["example.org"], ["example.org", "*.example.org", "a.example.org", "x.a.example.org"], id="one"),
        pytest.param(["a.example.org", "example.net"], ["a.example.net", "a.example.org", "x.a.example.org"], id="two"),
        pytest.param(["ample.org"], [], id="half a label"),
    ],
)
def test_rows_are_chosen_by_whole_labels_and_sorted_from_the_right(zones: list[str], names: list[str]) -> None:
    rows = [row(name) for name in ("x.a.example.org", "a.example.net", "*.example.org", "a.example.org", "example.org")]
    assert [one.hostname for one in select_rows(rows, zones=zones)] == names


def test_columns_stand_below_one_another() -> None:
    rows = [row("a.example.org", RELAY, "2001:db8::10"), row("long-name.example.org", origin="w")]
    assert list(format_columns(rows)) == [
        "NAME                   ADDRESSES                ORIGIN            CLASS",
        "a.example.org          192.0.2.10,2001:db8::10  Ingress shop/web  nginx",
        "long-name.example.org  192.0.2.10               Ingress shop/w    nginx",
    ]


def test_where_names_lead_has_a_column_only_if_any_lead_elsewhere() -> None:
    rows = [row("a.example.org"), replace(row("b.example.org"), leads="it leads elsewhere")]
    assert list(format_columns(rows)) == [
        "NAME           ADDRESSES   ORIGIN            CLASS  LEADS",
        "a.example.org  192.0.2.10  Ingress shop/web  nginx",
        "b.example.org  192.0.2.10  Ingress shop/web  nginx  it leads elsewhere",
    ]


def test_a_name_of_the_registry_is_listed_with_where_it_leads() -> None:
    registry = Registry(targets=Targets((RELAY,)), guards=Guards())
    claim = Claim("a.example.org", Reach.NAME, Origin("Ingress", "web", "shop"), Terms(status=("192.0.2.1",)))
    registry.replace("Ingress", "web", [claim])
    registry.outcomes.set_elsewhere([LedElsewhere("a.example.org", claim, ("198.51.100.9",))])
    reason = "its public record leads elsewhere (198.51.100.9): that is left as it is"
    assert [one.leads for one in listed(registry).names] == [reason]


def test_one_long_name_does_not_push_the_others_away() -> None:
    lines = list(format_columns([row("a.example.org"), row("b" * 63 + ".example.org")]))
    assert lines[1].index(RELAY) == 62


def test_a_table_without_rows_has_headings_alone() -> None:
    assert list(format_columns([])) == ["NAME  ADDRESSES  ORIGIN  CLASS"]


names = st.from_regex(r"(\*\.)?[a-h]{1,3}(\.[a-h]{1,3}){1,2}", fullmatch=True)
addresses = st.lists(st.sampled_from(["192.0.2.1", "192.0.2.2", "2001:db8::1"]), min_size=1, unique=True).map(tuple)


@given(st.dictionaries(names, addresses, max_size=10))
def test_a_hosts_file_reads_back_as_the_same_names(hosts: dict[str, tuple[str, ...]]) -> None:
    rows = [row(name, *found) for name, found in hosts.items()]
    claims, rejections, _ = parse_hosts("\n".join(format_hosts(rows)))
    assert not rejections
    assert {(claim.hostname, claim.reach): claim.terms.addresses for claim in claims.values()} == {
        (one.hostname, one.reach): one.addresses for one in rows
    }


def test_a_wildcard_of_one_label_does_not_grow_in_a_hosts_file() -> None:
    (line,) = format_hosts([row("*.example.org", reach=Reach.ONE_LABEL)])
    assert parse_hosts(line) == ({}, [], 0)
    assert "192.0.2.10 *.example.org" in line


def test_json_has_a_row_a_line_and_only_what_was_chosen() -> None:
    listing = Listing(5, ("a note",), (row("a.example.org"), row("b.example.org")))
    lines = list(format_json(listing, listing.names))
    document = json.loads("\n".join(lines))
    assert [one["hostname"] for one in document["names"]] == ["a.example.org", "b.example.org"]
    assert document["names"][0]["origin"]["namespace"] == "shop"
    assert (document["ttl"], document["notes"], len(lines)) == (5, ["a note"], 4)
    assert json.loads("".join(format_json(listing, ())))["names"] == []


def test_nothing_from_outside_reaches_a_terminal_as_it_is() -> None:
    evil = "\x1b[2J\x7f\x9b\u202e\n\r"
    one = Row(evil, Reach.NAME, (evil,), Origin(evil, evil, evil, evil), evil, evil)
    listing = Listing(5, (evil,), (one,))
    for line in (*format_columns([one]), *format_hosts([one]), *format_json(listing, [one])):
        assert line.isprintable()


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"ttl":5,"notes":[],"names":[', id="cut"),
        pytest.param(b'{"ttl":5,"notes":[],"names":[{"hostname":1}]}', id="a name that is a number"),
        pytest.param(b'{"ttl":"\xff","notes":[],"names":[]}', id="no UTF-8"),
        pytest.param(b"[" * 1_000_000, id="too deep"),
        pytest.param(b'{"x":' * 100_000, id="an unknown field too deep"),
        pytest.param(b"<!doctype html>", id="HTML"),
    ],
)
def test_any_other_document_than_a_listing_is_a_value_error(octets: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_listing(octets)

"""The table: which row answers a name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.answer_records import build_answers
from dnsproxy.answers.table import HostTable
from tests.kit.messages import ANY, HTTPS, SVCB, addresses_of, table_of, wire_name
from tests.kit.rows import failing
from tests.kit.strategies import HUNDREDS, LONG_NAME, octet_labels

LAYERED = table_of(
    "app.example.org 192.0.2.1",
    "*.example.org 192.0.2.2",
    "**.example.org 192.0.2.3",
    "**.deep.example.org 192.0.2.4",
    "*.deep.example.org 192.0.2.5",
    "**.net 192.0.2.6",
    "*.one.net 192.0.2.7",
)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        pytest.param("app.example.org", "192.0.2.1", id="exact beats wildcard"),
        pytest.param("APP.Example.oRG", "192.0.2.1", id="case"),
        pytest.param("other.example.org", "192.0.2.2", id="one label beats any at the same parent"),
        pytest.param("x.app.example.org", "192.0.2.3", id="below an exact name"),
        pytest.param("deep.example.org", "192.0.2.2", id="a wildcard does not cover its own parent"),
        pytest.param("x.deep.example.org", "192.0.2.5", id="longer beats shorter"),
        pytest.param("y.x.deep.example.org", "192.0.2.4", id="two labels, longer beats shorter"),
        pytest.param("z.y.x.deep.example.org", "192.0.2.4", id="three labels"),
        pytest.param("x.one.net", "192.0.2.7", id="one label below a shorter wildcard"),
        pytest.param("y.x.one.net", "192.0.2.6", id="two labels fall to the shorter wildcard"),
        pytest.param("one.net", "192.0.2.6", id="parent of a wildcard under another"),
        pytest.param("example.org", None, id="apex"),
        pytest.param("net", None, id="apex of any"),
        pytest.param("org", None, id="above"),
        pytest.param("", None, id="root"),
        pytest.param("appexample.org", None, id="suffix of a label"),
        pytest.param("app.example.org.example.com", None, id="search domain behind it"),
        pytest.param("example.com", None, id="other"),
    ],
)
def test_exact_beats_wildcard_and_longer_beats_shorter(name: str, answer: str | None) -> None:
    assert addresses_of(LAYERED, name) == ((answer,) if answer else None)


@pytest.mark.parametrize(
    ("name", "covered"),
    [("a.w.example.org", True), ("a.b.w.example.org", False), ("a.b.c.w.example.org", False), ("w.example.org", False)],
    ids=["one label", "two labels", "three labels", "none"],
)
def test_an_ingress_wildcard_covers_exactly_one_label(name: str, covered: bool) -> None:
    table = table_of("*.w.example.org 192.0.2.1")
    assert (addresses_of(table, name) is not None) == covered


def test_a_label_of_any_octet_is_one_label() -> None:
    table = table_of("a.b.example.org 192.0.2.1", "*.w.example.org 192.0.2.2")

    def check(octet: int) -> None:
        assert table.find(bytes([3, 0x61, octet, 0x62]) + wire_name("example.org")) is None
        found = table.find(bytes([1, octet]) + wire_name("w.example.org"))
        assert found is not None
        assert found.addresses == ("192.0.2.2",)

    assert failing(check, range(256)) == []


def test_a_length_octet_that_begins_no_label_matches_no_wildcard() -> None:
    table = table_of("**.example.org 192.0.2.1")
    names = [bytes([length]) + b"a" * length + wire_name("example.org") for length in range(256)]
    assert [name[0] for name in names if table.match_wildcard(name)] == list(range(1, 64))


@given(st.binary(max_size=300) | st.lists(octet_labels).map(lambda labels: b"".join(labels) + wire_name("example.org")))
def test_any_octets_can_be_looked_up(name: bytes) -> None:
    found = LAYERED.match_wildcard(name)
    assert found is None or name.endswith((wire_name("example.org"), wire_name("net")))


def test_a_wildcard_answers_no_name_over_255_octets() -> None:
    table = table_of("**.example.org 192.0.2.1")
    tail = wire_name("example.org")
    fits = b"\x01a" * ((255 - len(tail)) // 2) + tail
    assert len(fits) == 255
    assert table.match_wildcard(fits) is not None
    assert table.match_wildcard(b"\x01a" + fits) is None


@pytest.mark.parametrize("row", ["*.example.org", "**.example.org"])
def test_a_wildcard_leaves_out_a_name_that_was_denied(row: str) -> None:
    table = table_of(f"{row} 192.0.2.1", never=("intern.example.org",))
    assert addresses_of(table, "intern.example.org") is None
    assert addresses_of(table, "INTERN.example.org") is None
    assert addresses_of(table, "extern.example.org") == ("192.0.2.1",)


CLOSED = table_of(
    "**.example.org 192.0.2.1",
    "*.example.org 192.0.2.2",
    "own.eu.example.org 192.0.2.3",
    "**.apps.eu.example.org 192.0.2.4",
    "*.example.net 192.0.2.5",
    closed=("eu.example.org", "example.net", "com"),
)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        pytest.param("eu.example.org", None, id="the closed zone itself"),
        pytest.param("a.eu.example.org", None, id="one label in it"),
        pytest.param("github.com.eu.example.org", None, id="two labels in it"),
        pytest.param("GitHub.com.EU.example.org", None, id="case"),
        pytest.param("x.own.eu.example.org", None, id="below an exact name in it"),
        pytest.param("apps.eu.example.org", None, id="parent of a wildcard in it"),
        pytest.param("own.eu.example.org", "192.0.2.3", id="an exact name in it"),
        pytest.param("a.b.apps.eu.example.org", "192.0.2.4", id="below a wildcard in it"),
        pytest.param("a.example.net", "192.0.2.5", id="the wildcard of the closed zone"),
        pytest.param("example.net", None, id="the parent of that wildcard"),
        pytest.param("b.a.example.net", None, id="two labels below it"),
        pytest.param("aeu.example.org", "192.0.2.2", id="ends like it"),
        pytest.param("a.aeu.example.org", "192.0.2.1", id="below a name that ends like it"),
        pytest.param("eu.example.org.example.org", "192.0.2.1", id="it in front"),
    ],
)
def test_no_wildcard_from_above_reaches_into_a_closed_zone(name: str, answer: str | None) -> None:
    assert addresses_of(CLOSED, name) == ((answer,) if answer else None)


ZONE_LABELS = st.lists(st.sampled_from(["a", "b", "eu"]), min_size=1, max_size=4)


@given(ZONE_LABELS, ZONE_LABELS, ZONE_LABELS)
def test_a_wildcard_covers_a_name_unless_a_zone_below_it_is_closed_to_the_name(
    name: list[str], parent: list[str], zone: list[str]
) -> None:
    table = table_of(f"**.{'.'.join(parent)} 192.0.2.1", closed=(".".join(zone),))
    below = len(name) > len(parent) and name[-len(parent) :] == parent
    barred = name[-len(zone) :] == zone and parent[-len(zone) :] != zone
    assert (addresses_of(table, ".".join(name)) is not None) is (below and not barred)


def test_a_table_counts_both_kinds_of_wildcard() -> None:
    assert len(LAYERED) == 7
    assert len(HostTable()) == 0


def test_an_empty_table_knows_nothing() -> None:
    assert addresses_of(HostTable(), "app.example.org") is None


@pytest.mark.parametrize("rtype", [1, 28, HTTPS, SVCB], ids=["A", "AAAA", "HTTPS", "SVCB"])
@pytest.mark.parametrize("addresses", [("192.0.2.1",), ("2001:db8::1",)], ids=["IPv4", "IPv6"])
def test_a_type_without_addresses_is_one_soa(addresses: tuple[str, ...], rtype: int) -> None:
    row = build_answers(addresses, ttl=5).by_type[rtype]
    has_family = rtype == (1 if "." in addresses[0] else 28)
    assert (row.answers, row.authorities) == ((1, 0) if has_family else (0, 1))


def test_only_types_that_lead_to_addresses_are_ours() -> None:
    assert set(build_answers(("192.0.2.1",), ttl=5).by_type) == {1, 28, HTTPS, SVCB, ANY}


def test_a_quick_answer_fits_512_octets_behind_the_longest_question() -> None:
    def check(count: int) -> None:
        quick = build_answers(HUNDREDS[:count], ttl=5).quick.get(b"\0\1\0\1")
        longest = 12 + len(wire_name(LONG_NAME)) + 4 + 16 * count + 11
        assert (quick is not None) == (longest <= 512)

    assert failing(check, range(1, 41)) == []

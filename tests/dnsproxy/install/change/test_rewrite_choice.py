"""The choice of rewrites: what stands, what is too much, and that each name gets the table's Service or none."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.table import Host, HostTable
from dnsproxy.corefile.rewrite_lines import MOST, Rewrite, format_rewrites
from dnsproxy.dns.names import Reach, to_wire
from dnsproxy.install.change.rewrite_choice import ChosenRewrites, LiveRewrites, choose_rewrites, covers
from tests.dnsproxy.admin.test_rewritable_names import DOMAIN, asked, bases, found_in, hosts, table_of
from tests.kit.rewriting import rewritten

RELAY: Final = "switchback/relay"


def name(hostname: str, service: str = RELAY) -> Rewrite:
    return Rewrite(hostname, Reach.NAME, service)


def one_label(hostname: str, service: str = RELAY) -> Rewrite:
    return Rewrite(hostname, Reach.ONE_LABEL, service)


def any_labels(hostname: str, service: str = RELAY) -> Rewrite:
    return Rewrite(hostname, Reach.ANY_LABELS, service)


def names(count: int, prefix: str = "n") -> tuple[Rewrite, ...]:
    return tuple(name(f"{prefix}{number:04}.example.org") for number in range(count))


def live(*rows: Rewrite, exempt: tuple[Rewrite, ...] = (), doubt: str = "") -> LiveRewrites:
    return LiveRewrites(rows, exempt, answered=1, doubt=doubt)


def test_all_names_are_taken_while_they_fit() -> None:
    chosen = choose_rewrites(live(*names(MOST)), ())
    assert chosen == ChosenRewrites(names(MOST))


def test_beyond_the_limit_the_youngest_are_left_out() -> None:
    chosen = choose_rewrites(live(*names(MOST + 3)), ())
    assert chosen.rewrites == names(MOST)
    assert chosen.beyond == tuple(one.hostname for one in names(MOST + 3)[MOST:])


def test_a_line_that_stands_keeps_its_place_before_older_names() -> None:
    old, young = names(MOST, "a"), names(10, "b")
    chosen = choose_rewrites(live(*old, *young), young)
    assert set(chosen.rewrites) == {*young, *old[: MOST - 10]}
    assert chosen.beyond == tuple(one.hostname for one in old[MOST - 10 :])


@pytest.mark.parametrize(
    ("doubt", "names", "kept"),
    [("", ("a.org",), ()), ("a pod is silent", ("a.org", "b.org"), ("b.org",))],
    ids=["every pod answered", "a pod is silent"],
)
def test_a_name_leaves_only_if_every_pod_answered_completely(
    doubt: str, names: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    chosen = choose_rewrites(live(name("a.org"), doubt=doubt), [name("a.org"), name("b.org")])
    assert (chosen.names, chosen.kept) == (names, kept)


def test_the_service_of_a_standing_name_is_that_of_the_table_also_in_doubt() -> None:
    chosen = choose_rewrites(live(name("a.org", "web/new"), doubt="a pod is silent"), [name("a.org")])
    assert chosen.rewrites == (name("a.org", "web/new"),)


def test_a_name_that_must_not_be_rewritten_is_not_even_kept() -> None:
    standing = [name("a.org"), name("b.org", "web/gone")]
    refuse = {name("b.org", "web/gone"): "no address"}
    chosen = choose_rewrites(live(doubt="all silent"), standing, refuse=lambda one: refuse.get(one, ""))
    assert (chosen.names, chosen.kept, chosen.refused) == (("a.org",), ("a.org",), (("b.org", "no address"),))


def test_a_wildcard_is_not_kept_if_the_names_below_it_may_be_left_out() -> None:
    said = replace(live(doubt="a pod is silent"), left_out=1)
    assert choose_rewrites(said, [name("a.org"), any_labels("*.org")]).names == ("a.org",)
    assert choose_rewrites(live(doubt="a pod is silent"), [any_labels("*.org")]).names == ("*.org",)


def test_only_names_in_the_zones_count() -> None:
    rows = [name("example.org"), name("a.example.org"), one_label("*.example.org"), name("a.example.net")]
    chosen = choose_rewrites(live(*rows), (), zones=["example.org"])
    assert chosen.rewrites == tuple(rows[:3])
    assert (chosen.beyond, chosen.refused) == ((), ())


def test_an_exempt_name_is_written_only_with_its_wildcard() -> None:
    exempt = (name("own.a.org", ""), name("own.b.org", ""))
    chosen = choose_rewrites(live(one_label("*.a.org"), exempt=exempt), ())
    assert chosen.rewrites == (one_label("*.a.org"), name("own.a.org", ""))
    assert chosen.names == ("*.a.org",)


def test_a_refused_name_keeps_its_own_answer_under_a_wildcard() -> None:
    rows = [any_labels("*.org"), name("theirs.org"), one_label("*.theirs.org")]
    refuse = {rows[1], rows[2]}
    chosen = choose_rewrites(live(*rows), (), refuse=lambda one: "theirs" if one in refuse else "")
    assert set(chosen.rewrites) == {rows[0], name("theirs.org", ""), one_label("*.theirs.org", "")}


def test_a_zone_of_others_keeps_its_answers_under_a_wildcard() -> None:
    chosen = choose_rewrites(live(any_labels("*.org"), name("a.net")), (), foreign=["corp.org", "corp.net"])
    assert set(chosen.rewrites) == {
        *(any_labels("*.org"), name("a.net")),
        *(name("corp.org", ""), any_labels("*.corp.org", "")),
    }


def test_a_wildcard_without_room_for_all_that_it_covers_is_left_out() -> None:
    rows = (name("a.org"), name("b.org"), any_labels("*.org"))
    exempt = (name("c.org", ""), name("d.org", ""))
    assert choose_rewrites(live(*rows, exempt=exempt), (), most=4).beyond == ("*.org",)
    assert choose_rewrites(live(*rows, exempt=exempt), (), most=5).beyond == ()


def test_a_wildcard_that_stands_keeps_its_place_when_an_exempt_name_comes() -> None:
    standing = [name("a.net"), name("b.net"), any_labels("*.org")]
    exempt = (name("own.org", ""),)
    chosen = choose_rewrites(live(*standing, exempt=exempt), standing, most=3)
    assert set(chosen.rewrites) == {any_labels("*.org"), name("own.org", ""), name("a.net")}
    assert chosen.beyond == ("b.net",)


@pytest.mark.parametrize(
    ("wildcard", "other", "covered"),
    [
        (one_label("*.a.org"), name("x.a.org"), True),
        (one_label("*.a.org"), name("x.y.a.org"), False),
        (one_label("*.a.org"), name("a.org"), False),
        (one_label("*.a.org"), one_label("*.x.a.org"), False),
        (one_label("*.a.org"), any_labels("*.a.org"), False),
        (any_labels("*.a.org"), name("x.y.a.org"), True),
        (any_labels("*.a.org"), name("a.org"), False),
        (any_labels("*.a.org"), name("xa.org"), False),
        (any_labels("*.a.org"), one_label("*.a.org"), True),
        (any_labels("*.a.org"), one_label("*.x.a.org"), True),
        (any_labels("*.a.org"), any_labels("*.x.a.org"), True),
        (any_labels("*.a.org"), any_labels("*.a.org"), False),
        (any_labels("*.a.org"), any_labels("*.org"), False),
        (name("a.org"), name("a.org"), False),
    ],
)
def test_a_wildcard_covers_what_would_come_in_its_turn(wildcard: Rewrite, other: Rewrite, covered: bool) -> None:
    assert covers(wildcard, other.key) is covered


tables = st.builds(
    lambda rows, never, closed: table_of(rows, never=never, closed=closed),
    st.lists(hosts, max_size=10),
    st.lists(bases, max_size=2),
    st.lists(bases, max_size=2),
)


@given(tables, st.lists(hosts, max_size=6), st.integers(0, 8), st.sets(bases, max_size=2), st.sets(bases, max_size=2))
def test_no_name_gets_another_service_than_that_of_the_table(
    table: HostTable, before: list[Host], most: int, refused: set[str], foreign: set[str]
) -> None:
    said = live_of(table)
    standing = live_of(table_of(before)).names
    chosen = choose_rewrites(
        said, standing, refuse=lambda one: "no" if one.base in refused else "", foreign=foreign, most=most
    )
    lines = format_rewrites(chosen.rewrites, DOMAIN)
    assert len(lines) <= most + 1
    for name_ in {*SOME, *(one.base for one in said.names), *refused, *foreign}:
        found = rewritten(lines, f"{name_}.")
        answers = table.find(to_wire(name_))
        namespace, _, service = (answers.service if answers is not None else "").partition("/")
        assert found in (f"{name_}.", f"{service}.{namespace}.svc.{DOMAIN}.")


SOME: Final = ("a.org", "b.org", "a.b.org", "c.a.b.org", "d.org", "d.a.org", "d.a.b.org", "d.d.a.org", "d.d.d.org")


@given(tables, st.lists(hosts, max_size=6), st.integers(0, 8), st.booleans())
def test_choosing_again_gives_the_same(table: HostTable, before: list[Host], most: int, doubtful: bool) -> None:
    said = replace(live_of(table), doubt="a pod is silent" if doubtful else "")
    standing = live_of(table_of(before)).names
    first = choose_rewrites(said, standing, most=most)
    again = choose_rewrites(said, first.rewrites, most=most)
    assert set(again.rewrites) == set(first.rewrites)
    assert set(again.beyond) <= set(first.beyond)


def live_of(table: HostTable) -> LiveRewrites:
    found = found_in(table)
    rows = tuple(Rewrite(hostname, Reach(reach), service) for _, hostname, reach, service in found.rows)
    return LiveRewrites(rows, tuple(Rewrite(*key) for key in found.exempt), answered=1)


@given(st.lists(asked, max_size=3))
def test_without_names_nothing_is_written(foreign: list[str]) -> None:
    assert choose_rewrites(live(), (), foreign=foreign).rewrites == ()

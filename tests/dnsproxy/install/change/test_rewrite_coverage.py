"""The comparison of lines that stand with the names of the table, and what is said of it in one line."""

from __future__ import annotations

from dataclasses import replace

from dnsproxy.install.change.rewrite_choice import ChosenRewrites
from dnsproxy.install.change.rewrite_coverage import (
    RewriteCoverage,
    count_left_out,
    describe_rewrites,
    find_rewrite_coverage,
)
from tests.dnsproxy.install.change.test_rewrite_choice import live, name

A, B, EXEMPT = name("a.org"), name("b.org"), name("own.org", "")


def test_lines_that_are_those_of_an_install_miss_nothing() -> None:
    assert find_rewrite_coverage([A, EXEMPT], ChosenRewrites((A, EXEMPT)), live(A)) == RewriteCoverage(standing=1)


def test_a_name_is_missing_or_gone_or_has_another_service() -> None:
    found = find_rewrite_coverage([A, EXEMPT], ChosenRewrites((B,)), live(B))
    assert (found.missing, found.gone) == (("b.org",), ("a.org",))
    moved = find_rewrite_coverage([A], ChosenRewrites((name("a.org", "web/other"),)), live())
    assert (moved.missing, moved.gone) == (("a.org",), ())


def test_what_an_install_leaves_out_is_counted_and_not_missing() -> None:
    chosen = ChosenRewrites((A,), beyond=("b.org",), refused=(("c.org", "theirs"),))
    found = find_rewrite_coverage([A], chosen, replace(live(A), plain=2, left_out=5, doubt="a pod is silent"))
    assert found == RewriteCoverage(1, (), (), 6, 2, (("c.org", "theirs"),), "a pod is silent")


def test_where_an_install_would_be_refused_nothing_is_missing() -> None:
    assert find_rewrite_coverage([A], None, live(B)) == RewriteCoverage(standing=1)


def test_one_line_counts_what_is_rewritten_and_what_is_not() -> None:
    assert describe_rewrites(ChosenRewrites((A, B, EXEMPT)), live()) == "2 names, each to its Service"
    chosen = ChosenRewrites((A,), beyond=("b.org",), refused=(("c.org", "theirs"),))
    said = replace(live(A), plain=2, left_out=5)
    assert describe_rewrites(chosen, said) == (
        "1 names, each to its Service; 6 left out beyond 500 lines; 1 left out (c.org); "
        "2 with plain addresses stay as they are"
    )
    assert count_left_out(chosen, said) == 6

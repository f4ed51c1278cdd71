"""The lines of a hosts file: one name each, in a fixed order, and the names that are excluded."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dnsproxy.admin.publication import Name
from dnsproxy.dns.names import Reach
from dnsproxy.publish.hosts.lines import HostsLines, InFile, Why, make_lines, names_in_block, names_outside
from dnsproxy.publish.hosts.rules import ROOT, Rules

ALL = Rules(frozenset({ROOT}))
NAMES = (
    Name("example.org", ("192.0.2.1",)),
    Name("*.example.org", ("192.0.2.2",), Reach.ONE_LABEL),
    Name("*.example.org", ("192.0.2.3",), Reach.ANY_LABELS),
    Name("app.example.org", ("192.0.2.10", "2001:db8::10")),
    Name("notexample.org", ("192.0.2.4",)),
)


def made_from(names: Sequence[Name], rules: Rules = ALL, *, foreign: bytes = b"", published: str = "") -> HostsLines:
    there = InFile(names_outside(foreign), frozenset(published.split()))
    return make_lines(names, rules=rules, there=there)


def test_each_address_of_each_name_is_a_line_and_wildcards_are_told_once() -> None:
    made = made_from(NAMES)
    assert made.lines == (
        "192.0.2.1 example.org",
        "192.0.2.10 app.example.org",
        "2001:db8::10 app.example.org",
        "192.0.2.4 notexample.org",
    )
    assert (made.names, made.excluded[Why.WILDCARD]) == (3, ("*.example.org",))


def test_names_are_counted_once_however_many_addresses_they_have() -> None:
    lines = [line.encode() for line in made_from(NAMES).lines]
    published = names_in_block([*lines, b"", b"192.0.2.9", b"# note", b"192.0.2.9 \xff"])
    assert len(published & {"example.org", "app.example.org", "notexample.org"}) == 3
    assert len(published) == 3 + 2


def test_protected_names_have_no_lines_unless_they_are_named() -> None:
    names = [Name(one, ("192.0.2.1",)) for one in ("kubernetes", "quay.io", "a.example.org", "b.example.org")]
    rules = Rules(frozenset({ROOT}), deny=frozenset({"b.example.org"}))
    made = made_from(names, rules)
    assert made.lines == ("192.0.2.1 a.example.org",)
    assert made.excluded[Why.PROTECTED] == ("kubernetes", "quay.io", "b.example.org")
    named = made_from(names, Rules(frozenset({"quay.io", "kubernetes"})))
    assert named.lines == ("192.0.2.1 kubernetes", "192.0.2.1 quay.io")


def test_a_refused_address_is_left_out_and_the_names_other_addresses_stay() -> None:
    names = [
        Name("a.example.org", ("127.0.0.1",)),
        Name("b.example.org", ("192.0.2.1", "169.254.169.254", "::1")),
        Name("c.example.org", ("192.0.2.1",)),
        Name("quay.io", ("127.0.0.1",)),
    ]
    made = made_from(names, Rules(frozenset({"example.org"})))
    assert made.lines == ("192.0.2.1 b.example.org", "192.0.2.1 c.example.org")
    assert made.excluded[Why.ADDRESS] == ("a.example.org", "b.example.org")


def test_a_flood_of_names_displaces_neither_named_nor_published_ones() -> None:
    flood = [Name(f"a{number}.example.org", ("192.0.2.66", "192.0.2.67")) for number in range(100)]
    names = [*flood, Name("harbor.example.org", ("192.0.2.1",)), Name("old.example.org", ("192.0.2.2",))]
    rules = Rules(frozenset({"example.org", "harbor.example.org"}), most=3)
    made = made_from(names, rules, published="old.example.org")
    assert made.lines == (
        "192.0.2.66 a0.example.org",
        "192.0.2.67 a0.example.org",
        "192.0.2.1 harbor.example.org",
        "192.0.2.2 old.example.org",
    )
    assert (made.names, len(made.excluded[Why.LIMIT])) == (3, 99)


def test_names_up_to_the_limit_are_all_written() -> None:
    assert made_from(NAMES, Rules(ALL.zones, most=3)) == made_from(NAMES)


@pytest.mark.parametrize(
    ("foreign", "taken"),
    [
        pytest.param(b"", (), id="nothing there"),
        pytest.param(b"192.0.2.99 app.example.org\n", ("app.example.org",), id="the name"),
        pytest.param(b"192.0.2.99\tother  App.Example.ORG.\r\n", ("app.example.org",), id="another spelling"),
        pytest.param(b"::1 example.org # own\n1 notexample.org", ("example.org", "notexample.org"), id="two of them"),
        pytest.param(b"192.0.2.99 x # app.example.org\n#1 app.example.org\n", (), id="in comments"),
        pytest.param(b"app.example.org\n", (), id="where the address should be"),
        pytest.param(b"192.0.2.99 app.example\xff.org sub.app.example.org\n", (), id="other names"),
    ],
)
def test_a_name_that_the_file_has_already_is_left_to_it(foreign: bytes, taken: tuple[str, ...]) -> None:
    made = made_from(NAMES, foreign=foreign)
    assert made.excluded[Why.TAKEN] == taken
    assert {line.split()[1] for line in made.lines} == {"example.org", "app.example.org", "notexample.org"} - set(taken)
    assert (made.names, made.excluded[Why.WILDCARD]) == (3 - len(taken), ("*.example.org",))

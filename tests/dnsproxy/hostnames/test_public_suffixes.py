"""Public suffixes: which names are one, and what is registrable below them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from publicsuffixlist import PSLFILE, PublicSuffixList

from dnsproxy.hostnames.public_suffixes import is_public_suffix, registrable_domain

LIBRARY: Final = PublicSuffixList()


def names_of_rules() -> list[str]:
    """What each rule of the list is about, in normal form, without `*.` and `!`."""
    with Path(PSLFILE).open(encoding="utf-8") as lines:
        rules = [line.strip() for line in lines if line.strip() and not line.startswith("//")]
    return [rule.lstrip("!").removeprefix("*.").encode("idna").decode() for rule in rules]


RULES: Final = names_of_rules()
LABELS: Final = sorted({label for rule in RULES for label in rule.split(".")})


def agrees_with_the_library(name: str) -> bool:
    return (is_public_suffix(name), registrable_domain(name)) == (LIBRARY.is_public(name), LIBRARY.privatesuffix(name))


@pytest.mark.parametrize(
    ("name", "domain"),
    [
        pytest.param("org", None, id="top level"),
        pytest.param("lan", None, id="unknown top level"),
        pytest.param("co.uk", None, id="two labels"),
        pytest.param("github.io", None, id="of a hoster"),
        pytest.param("any.ck", None, id="wildcard rule"),
        pytest.param("xn--55qx5d.cn", None, id="A-label"),
        pytest.param("www.ck", "www.ck", id="exception"),
        pytest.param("example.org", "example.org", id="registrable itself"),
        pytest.param("a.b.example.co.uk", "example.co.uk", id="below"),
        pytest.param("a.team.github.io", "team.github.io", id="below a hoster's"),
        pytest.param("app.corp.lan", "corp.lan", id="below an unknown top level"),
    ],
)
def test_a_suffix_has_no_registrable_domain_and_every_other_name_has_one(name: str, domain: str | None) -> None:
    assert registrable_domain(name) == domain
    assert is_public_suffix(name) is (domain is None)


@pytest.mark.parametrize("prefix", ["", "a.", "b.a.", "c.b.a.", "d.c.b.a."])
def test_at_and_below_each_rule_the_answer_is_the_librarys(prefix: str) -> None:
    assert len(RULES) > 5000
    assert [rule for rule in RULES if not agrees_with_the_library(prefix + rule)] == []


@given(
    st.lists(st.sampled_from(LABELS) | st.from_regex("[a-z0-9]{1,3}", fullmatch=True), min_size=1, max_size=5),
    st.data(),
)
def test_of_any_name_the_answer_is_the_librarys(labels: list[str], data: st.DataObject) -> None:
    """Labels of the list, in any order, before a whole rule, a part of one or none."""
    rule = data.draw(st.sampled_from(RULES)).split(".")
    name = ".".join(labels + rule[data.draw(st.integers(0, len(rule))) :])
    assert agrees_with_the_library(name)


def test_the_list_is_read_only_when_it_is_needed() -> None:
    """A server of static names and the other commands never need it."""
    code = "import sys, dnsproxy.serve.program; print('publicsuffixlist' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"

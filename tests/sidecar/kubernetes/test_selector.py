"""Selectors as text: what is accepted, what it means, and what is refused why; a real API server judges in peers."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.selector import (
    DOES_NOT_EXIST,
    EXISTS,
    IN,
    NOT_IN,
    BadSelector,
    Requirement,
    Selector,
    format_selector,
    parse_annotation_selector,
    parse_selector,
)

LABELS = {"team": "web", "example.org/tier": "a.b_c-9", "empty": "", "in": "x"}

KEYS = st.sampled_from(["a", "team", "example.org/tier", "A_b.c", "in", "notin", "x" * 63, f"{'a.' * 100}b/c"])
LABEL_VALUES = st.sampled_from(["", "a", "web", "in", "notin", "A_b.c-1", "9" * 63])
TEXTS = st.text(st.characters(exclude_characters=" \t\r\n=!(),<>", exclude_categories=["Cs"]))


def requirements(values: st.SearchStrategy[str]) -> st.SearchStrategy[Requirement]:
    sets = st.frozensets(values, min_size=1, max_size=3)
    return st.builds(Requirement, KEYS, st.sampled_from([IN, NOT_IN]), sets) | st.builds(
        Requirement, KEYS, st.sampled_from([EXISTS, DOES_NOT_EXIST])
    )


def selectors(values: st.SearchStrategy[str]) -> st.SearchStrategy[Selector]:
    return st.lists(requirements(values), max_size=4).map(tuple).map(Selector)


@pytest.mark.parametrize(
    ("text", "normal", "expected"),
    [
        pytest.param("", "", True, id="empty"),
        pytest.param(" \t\r\n", "", True, id="blank"),
        pytest.param("team=web", "team=web", True, id="equal"),
        pytest.param("team==web", "team=web", True, id="equal twice"),
        pytest.param(" team = web ", "team=web", True, id="blanks"),
        pytest.param("team=Web", "team=Web", False, id="case counts"),
        pytest.param("team!=web", "team!=web", False, id="unequal"),
        pytest.param("absent!=web", "absent!=web", True, id="absent is unequal"),
        pytest.param("absent=", "absent=", False, id="absent is not empty"),
        pytest.param("empty=", "empty=", True, id="empty value"),
        pytest.param("empty=,team", "empty=,team", True, id="empty value before another"),
        pytest.param("team", "team", True, id="exists"),
        pytest.param("absent", "absent", False, id="does exist not"),
        pytest.param("!absent", "!absent", True, id="does not exist"),
        pytest.param("! team", "!team", False, id="does not exist, with a blank"),
        pytest.param("team in (api,web)", "team in (api,web)", True, id="in"),
        pytest.param("team in(web , api)", "team in (api,web)", True, id="in, sorted"),
        pytest.param("team in (web)", "team=web", True, id="in one"),
        pytest.param("team in (web,web)", "team=web", True, id="in one twice"),
        pytest.param("team notin (api)", "team!=api", True, id="notin one"),
        pytest.param("absent notin (api, web)", "absent notin (api,web)", True, id="notin of an absent one"),
        pytest.param("empty in (,a)", "empty in (,a)", True, id="empty text first"),
        pytest.param("empty in (a,)", "empty in (,a)", True, id="empty text last"),
        pytest.param("empty in (,)", "empty=", True, id="empty text alone"),
        pytest.param("empty in ()", "empty=", True, id="no text at all"),
        pytest.param("in in (x)", "in=x", True, id="a key named in"),
        pytest.param("team=in", "team=in", False, id="a value named in"),
        pytest.param("team,!absent,empty=", "!absent,empty=,team", True, id="sorted by key"),
        pytest.param("team,team", "team", True, id="twice the same"),
        pytest.param("team=web,team=api", "team=api,team=web", False, id="a contradiction"),
        pytest.param("example.org/tier=a.b_c-9", "example.org/tier=a.b_c-9", True, id="a prefix"),
    ],
)
def test_a_selector_has_a_normal_form_and_selects(text: str, normal: str, expected: bool) -> None:
    selector = parse_selector(text)
    assert selector.matches(LABELS) is expected
    assert format_selector(selector) == normal


BAD = [
    pytest.param("=", "a key is missing: there is '='", id="no key"),
    pytest.param("=a", "a key is missing", id="no key but a value"),
    pytest.param("!", "a key after ! is missing: there is the end", id="! alone"),
    pytest.param("!!a", "a key after !", id="! twice"),
    pytest.param("!a=b", "a comma or the end is missing: there is '='", id="! and a value"),
    pytest.param("a!b", "one of = == != in notin", id="! in between"),
    pytest.param(",", "a key is missing", id="a comma"),
    pytest.param("a,", "a key is missing: there is the end", id="a comma at the end"),
    pytest.param("a,,b", "a key is missing: there is ','", id="two commas"),
    pytest.param("a b", "there is 'b'", id="two words"),
    pytest.param("a=b c", "there is 'c'", id="two values"),
    pytest.param("a=b=c", "there is '='", id="two equal signs"),
    pytest.param("a===b", "a value is missing", id="three equal signs"),
    pytest.param("a=!b", "a value is missing: there is '!'", id="unequal the wrong way"),
    pytest.param("a=(b)", "a value is missing", id="a set after ="),
    pytest.param("a in", "( after in is missing", id="in nothing"),
    pytest.param("a in b", "( after in is missing: there is 'b'", id="in without a set"),
    pytest.param("a in (", "a value is missing", id="in, open"),
    pytest.param("a in (b", "a comma or ) is missing", id="in, open, with a value"),
    pytest.param("a in (b c)", "there is 'c'", id="in, a comma missing"),
    pytest.param("a in (b))", "there is ')'", id="in, closed twice"),
    pytest.param("a in (b) c", "there is 'c'", id="a word after a set"),
    pytest.param("a IN (b)", "there is 'IN'", id="in, in capitals"),
    pytest.param("a>1", "there is '>'", id="greater: of node selectors"),
    pytest.param("a<1", "there is '<'", id="less"),
    pytest.param("(a)", "a key is missing", id="in parentheses"),
    pytest.param("-a", "'-a' is not the key", id="a hyphen first"),
    pytest.param("a.", "'a.' is not the key", id="a dot last"),
    pytest.param("/a", "'/a' is not the key", id="an empty prefix"),
    pytest.param("a/", "'a/' is not the key", id="an empty name"),
    pytest.param("a/b/c", "'a/b/c' is not the key", id="two slashes"),
    pytest.param("a..b/c", "not the key", id="an empty label in the prefix"),
    pytest.param("a_b/c", "not the key", id="an underscore in the prefix"),
    pytest.param("x" * 64, "not the key", id="a key of 64"),
    pytest.param(f"{'a' * 254}/b", "not the key", id="a prefix of 254"),
    pytest.param("ä", "not the key", id="a letter beyond ASCII"),
    pytest.param("a\0", "not the key", id="a control character"),
    pytest.param("\N{NO-BREAK SPACE}a", "not the key", id="a blank that is none"),
]


@pytest.mark.parametrize(("text", "reason"), BAD)
def test_a_bad_selector_is_refused_with_a_reason(text: str, reason: str) -> None:
    for parse in (parse_selector, parse_annotation_selector):
        with pytest.raises(BadSelector) as caught:
            parse(text)
        assert reason in str(caught.value)
        assert str(caught.value).isascii()
        assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a=b/c", id="a slash"),
        pytest.param("a=-b", id="a hyphen first"),
        pytest.param("a=b.", id="a dot last"),
        pytest.param(f"a={'x' * 64}", id="64 characters"),
        pytest.param("a=ä", id="beyond ASCII"),
        pytest.param("a in (b,c:d)", id="a colon in a set"),
        pytest.param("Example.org/a=b", id="a prefix in capitals"),
    ],
)
def test_only_annotations_take_any_value_and_any_case_of_the_prefix(text: str) -> None:
    with pytest.raises(BadSelector, match="is not the"):
        parse_selector(text)
    assert format_selector(parse_annotation_selector(text)) == text


@given(selectors(LABEL_VALUES))
def test_the_normal_form_of_a_selector_is_read_back(selector: Selector) -> None:
    again = parse_selector(format_selector(selector))
    assert set(again.requirements) == set(selector.requirements)
    assert format_selector(parse_selector(format_selector(again))) == format_selector(again)


@given(selectors(TEXTS))
def test_the_normal_form_of_a_selector_of_annotations_is_read_back(selector: Selector) -> None:
    assert set(parse_annotation_selector(format_selector(selector)).requirements) == set(selector.requirements)


@given(st.lists(requirements(LABEL_VALUES), max_size=4).flatmap(st.permutations))
def test_order_and_repetition_do_not_matter(given: list[Requirement]) -> None:
    text = format_selector(Selector(tuple(given)))
    turned = format_selector(Selector(tuple(given[::-1] * 2)))
    assert parse_selector(text) == parse_selector(turned)


@given(st.text() | st.text(st.sampled_from("abin=!(),<> /.-_")))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    for parse in (parse_selector, parse_annotation_selector):
        with suppress(BadSelector):
            selector = parse(text)
            assert parse(format_selector(selector)) == selector


@given(requirements(LABEL_VALUES), st.dictionaries(KEYS, LABEL_VALUES))
def test_each_operator_is_the_contrary_of_another(one: Requirement, labels: dict[str, str]) -> None:
    contrary = {IN: NOT_IN, NOT_IN: IN, EXISTS: DOES_NOT_EXIST, DOES_NOT_EXIST: EXISTS}[one.operator]
    assert one.matches(labels) is not Requirement(one.key, contrary, one.values).matches(labels)


def test_keys_are_named_once() -> None:
    assert parse_selector("b=1,a,b=2,!a").keys == ("a", "b")

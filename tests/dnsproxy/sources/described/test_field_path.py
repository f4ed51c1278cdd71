"""Paths to values in objects that can have anything anywhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.described.field_path import BadPath, first_text, parse_path, places_at, values_at


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        pytest.param("spec", ("spec",), id="one step"),
        pytest.param("spec.host", ("spec", "host"), id="two"),
        pytest.param(".spec.host", ("spec", "host"), id="with kubectl's leading dot"),
        pytest.param("spec.rules[*].host", ("spec", "rules", "*", "host"), id="each item"),
        pytest.param("spec.a[*][*]", ("spec", "a", "*", "*"), id="lists in lists"),
        pytest.param("spec['example.org/host'].name", ("spec", "example.org/host", "name"), id="a name with dots"),
        pytest.param("spec.a-b_c", ("spec", "a-b_c"), id="other characters"),
    ],
)
def test_a_path_has_steps(text: str, steps: tuple[str, ...]) -> None:
    assert parse_path(text) == steps


@pytest.mark.parametrize(
    "text",
    ["", ".", "spec.", "spec..host", "spec host", "spec[0]", "spec[]", "spec[*", "[*]", "spec[*]host", "spec['']",
     "spec['a]", "{.spec.host}", "spec.host;drop", "$.spec", ".a" * 33, "spec.hôst", "spec[?(@.x)]"],
)  # fmt: skip
def test_other_texts_are_no_paths(text: str) -> None:
    with pytest.raises(BadPath):
        parse_path(text)


@pytest.mark.parametrize(
    ("value", "path", "expected"),
    [
        pytest.param({"spec": {"host": "a"}}, "spec.host", ["a"], id="there"),
        pytest.param({"spec": {"rules": [{"host": "a"}, {}, None, {"host": "b"}]}}, "spec.rules[*].host", ["a", "b"],
                     id="items without it"),
        pytest.param({"spec": {"byName": {"x": {"h": 1}, "y": {"h": 2}}}}, "spec.byName[*].h", [1, 2], id="of a map"),
        pytest.param({"spec": "host"}, "spec.host", [], id="a text where a map should be"),
        pytest.param({"spec": {"rules": "ab"}}, "spec.rules[*]", [], id="a text where a list should be"),
        pytest.param({"spec": [1]}, "spec.host", [], id="a list where a map should be"),
        pytest.param({"spec": {"host": None}}, "spec.host", [], id="null"),
        pytest.param(None, "spec", [], id="nothing"),
    ],
)  # fmt: skip
def test_a_path_leads_to_values_or_to_nothing(value: Any, path: str, expected: list[Any]) -> None:
    assert list(values_at(value, parse_path(path))) == expected


@pytest.mark.parametrize(
    ("value", "path", "expected"),
    [
        pytest.param({"spec": {"rules": [{"host": "a"}, {}, None, {"host": None}]}}, "spec.rules[*].host",
                     ["a", None, None, None], id="items"),
        pytest.param({"spec": {"rules": [{"hosts": []}, {"hosts": {}}, {}]}}, "spec.rules[*].hosts[*]",
                     [None, None, None], id="empty lists and maps"),
        pytest.param({"spec": {}}, "spec.rules[*].host", [None], id="no list"),
    ],
)  # fmt: skip
def test_each_place_that_was_looked_at_can_be_counted(value: Any, path: str, expected: list[Any]) -> None:
    assert list(places_at(value, parse_path(path))) == expected


def test_the_first_text_has_characters() -> None:
    assert first_text([{"a": 7}, {"a": ""}, {"a": "x"}, {"a": "y"}], ("*", "a")) == "x"


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)
paths = st.lists(st.sampled_from(["a", "b", "c", "*"]), min_size=1, max_size=4).map(tuple)


@given(json, paths)
def test_no_object_fails(value: Any, path: tuple[str, ...]) -> None:
    assert None not in list(values_at(value, path))


@given(paths.filter(lambda path: path[0] != "*"))
def test_a_path_that_is_written_down_is_read_again(path: tuple[str, ...]) -> None:
    text = "".join("[*]" if step == "*" else f".{step}" for step in path)
    assert parse_path(text) == path

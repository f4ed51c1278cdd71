"""Adding members to JSON objects, and removing them, without changing another character."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.install.change.members import put_in, take_out

BLANKS = st.text(" \t\r\n", max_size=3)
NAMES = st.one_of(st.text(max_size=8), st.sampled_from(["example.org", 'a"b', "\\", "é", "{", "}", ","]))
VALUES = st.one_of(st.lists(st.text(max_size=5), max_size=3), st.none(), st.booleans(), st.dictionaries(NAMES, NAMES))


@st.composite
def objects(draw: st.DrawFn) -> str:
    """JSON objects as people write them, with blanks anywhere."""
    members = draw(st.dictionaries(NAMES, VALUES, max_size=4))
    parts = [
        f"{draw(BLANKS)}{json.dumps(name)}{draw(BLANKS)}:{draw(BLANKS)}{json.dumps(value)}{draw(BLANKS)}"
        for name, value in members.items()
    ]
    inside = ",".join(parts) or draw(BLANKS)
    return f"{draw(BLANKS)}{{{inside}}}{draw(BLANKS)}"


@given(objects(), st.dictionaries(NAMES, st.lists(st.text(max_size=5), max_size=2), max_size=3))
def test_what_is_put_in_is_there_and_taken_out_it_was_never_there(text: str, members: dict[str, Any]) -> None:
    before = json.loads(text)
    members = {name: value for name, value in members.items() if name not in before}
    there = put_in(text, members)
    assert json.loads(there) == before | members
    assert take_out(there, set(members)) == text


@given(objects(), st.sets(NAMES))
def test_taking_out_leaves_the_members_of_others(text: str, names: set[str]) -> None:
    before = json.loads(text)
    assert json.loads(take_out(text, names)) == {name: before[name] for name in before if name not in names}


@given(objects(), objects())
def test_members_of_others_that_came_meanwhile_stay(text: str, more: str) -> None:
    ours = {"switchback.example": ["192.0.2.1"]}
    theirs = {name: value for name, value in json.loads(more).items() if name not in json.loads(text)}
    there = put_in(put_in(text, ours), theirs)
    assert json.loads(take_out(there, set(ours))) == json.loads(text) | theirs


def test_a_name_that_is_there_twice_goes_twice() -> None:
    assert take_out('{"a": 1, "b": 2, "a": 3}', {"a"}) == '{"b": 2}'


NO_OBJECTS = [
    *("", " ", "[]", "1", '"{}"', "{", "}", "{,}", '{"a"}', '{"a":}', '{"a" 1}', '{"a": 1,}', '{"a": 1 "b": 2}'),
    *("{} {}", "{}x", "{'a': 1}", "{a: 1}", "\ufeff{}", '{"a": 1', '{"a: 1}', "{1: 2}", '{"a": [}'),
]


@pytest.mark.parametrize("text", NO_OBJECTS, ids=repr)
def test_what_is_no_object_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # json has several messages
        put_in(text, {"x": []})
    with pytest.raises(ValueError):  # noqa: PT011  # as above
        take_out(text, {"x"})

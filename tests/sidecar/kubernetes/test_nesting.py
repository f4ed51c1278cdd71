"""Values that are nested too deeply cost themselves alone."""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.nesting import DEEPEST, cut_deep, decode_nested

VALUES = st.recursive(
    st.none() | st.integers() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)
)
ANY = msgspec.json.Decoder()


def nested(depth: int, *, inside: Any = 1) -> Any:
    for _ in range(depth):
        inside = {"a": inside}
    return inside


def text(depth: int, inside: bytes = b"1") -> bytes:
    return b'{"a":' * depth + inside + b"}" * depth


def depth_of(value: Any) -> int:
    depth = 0
    while isinstance(value, dict):
        depth, value = depth + 1, value["a"]
    return depth


@given(VALUES)
def test_values_of_usual_depth_stay_as_they_are(value: Any) -> None:
    body = json.dumps(value).encode()
    assert cut_deep(body) == body


@pytest.mark.parametrize("depth", [DEEPEST - 1, DEEPEST, DEEPEST + 1, DEEPEST + 2, 300])
def test_what_is_below_the_deepest_level_is_null(depth: int) -> None:
    value = json.loads(cut_deep(text(depth)))
    assert value == (nested(depth) if depth <= DEEPEST else nested(DEEPEST, inside=None))


@pytest.mark.parametrize(
    "quoted", [r"]}]}", r"\"]}", r"\\", r"\\\"[[["], ids=["ends", "a quote", "a backslash", "both"]
)
def test_brackets_in_texts_count_as_text(quoted: str) -> None:
    body = b'{"a":%b,"b":"%b"}' % (text(200, b'"%b"' % quoted.encode()), quoted.encode())
    assert json.loads(cut_deep(body))["b"] == json.loads(f'"{quoted}"')


@pytest.mark.parametrize("depth", [100, 900, 1_000, 5_000, 10_000])
def test_a_text_of_any_depth_is_decoded(depth: int) -> None:
    found = decode_nested(ANY, b'{"deep":%b,"name":"x"}' % text(depth))
    assert found["name"] == "x"
    assert depth_of(found["deep"]) in (depth, DEEPEST - 1)


@pytest.mark.parametrize("body", [b"[" * 5_000, b"]" * 5_000, b'{"a":' * 2_000 + b'"', b"[" * 2_000 + b"]" * 1_999])
def test_garbage_of_any_depth_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_nested(ANY, body)


def test_a_megabyte_of_brackets_takes_a_moment() -> None:
    began = process_time()
    cut_deep(b'{"a":' * 200_000 + b"1" + b"}" * 200_000)
    assert process_time() - began < 2

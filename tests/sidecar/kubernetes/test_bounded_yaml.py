"""YAML as plain values; texts that would crash libyaml's composer, or grow without bound, are refused."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.bounded_yaml import DEEPEST, decode_yaml

LEVELS = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
MERGES = [f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 10)}]}}" for level in range(1, 12)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param("# only a comment\n", None, id="a comment"),
        pytest.param("a: [b, true, null, 1, 1.5]", {"a": ["b", True, None, 1, 1.5]}, id="each kind"),
        pytest.param('{"a": "1"}', {"a": "1"}, id="JSON"),
        pytest.param("a: 2026-01-31", {"a": "2026-01-31"}, id="a date is a text"),
        pytest.param("a: &x [1]\nb: *x", {"a": [1], "b": [1]}, id="an alias"),
        pytest.param("a: &x {b: 1}\nc: {<<: *x, d: 2}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}, id="a merge"),
        pytest.param("[" * 9 + "]" * 9, [[[[[[[[[]]]]]]]]], id="nested"),
    ],
)
def test_a_text_is_its_values(text: str, value: object) -> None:
    assert decode_yaml(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(b"a: [", "expected", id="not closed"),
        pytest.param(b"a:\n\t- b", "token", id="a tab"),
        pytest.param(b"\xff\xfe\xff", "UTF-16", id="half of UTF-16"),
        pytest.param(b"a: \xe9", "UTF-8", id="Latin-1"),
        pytest.param(b"a: 1\n---\nb: 2", "single document", id="two documents"),
        pytest.param(b"? [a]\n: b", "unhashable", id="a list as a key"),
        pytest.param(b"!!python/name:os.system", "constructor", id="a Python name"),
        pytest.param(b"!!timestamp soon", "constructor", id="a date that is none"),
        pytest.param(b"!!bool perhaps", "not of its tag's type: 'perhaps'", id="a boolean that is none"),
        pytest.param(b"!!int many", "many", id="a number that is none"),
        pytest.param(b"!!int ''", "not of its tag's type", id="a number without a digit"),
        pytest.param(b"a: 1" + b":1" * 200 + b".0", "too large", id="a number with more places than a float has"),
        pytest.param(b"a: *b", "alias b has no anchor", id="an alias without an anchor"),
        pytest.param(b"a: &b [*b]", "is inside it", id="an alias inside itself"),
        pytest.param(b"a: &b {<<: *b}", "is inside it", id="a merge with itself"),
        pytest.param("\n".join(["a0: &a0 [x]", *LEVELS]).encode(), "repeat more than 100,000", id="a bomb"),
        pytest.param("\n".join(["a0: &a0 {x: y}", *MERGES]).encode(), "repeat more than 100,000", id="merged bomb"),
        pytest.param(b"[" * 100_000, "more than 100 levels", id="deep lists"),
        pytest.param(b"- " * 100_000, "more than 100 levels", id="deep blocks"),
        pytest.param(b"{a: " * (DEEPEST + 1), "more than 100 levels", id="deep mappings"),
    ],
)
def test_a_bad_text_is_refused_in_one_line(text: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        decode_yaml(text)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=200) | st.text("[]{}&*a:!<-? \n'\"", max_size=200).map(str.encode))
def test_any_bytes_are_a_value_or_a_refusal(text: bytes) -> None:
    with suppress(ValueError):
        decode_yaml(text)


def test_without_libyaml_it_does_the_same() -> None:
    script = (
        "import yaml; del yaml.CSafeLoader; from sidecar.kubernetes.bounded_yaml import decode_yaml;"
        "assert decode_yaml(b'a: [b, 1, 2026-01-31]') == {'a': ['b', 1, '2026-01-31']}"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

"""Whether the rules of an HTTPRoute only redirect."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.gateway.redirects import only_redirects
from tests.dnsproxy.sources.gateway.objects import TO_BACKEND, TO_HTTPS

HEADERS = {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"set": [{"name": "a", "value": "b"}]}}


def judge(rules: Any) -> bool:
    return only_redirects(msgspec.Raw(msgspec.json.encode(rules)))


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param([TO_HTTPS], id="one rule"),
        pytest.param([TO_HTTPS] * 16, id="sixteen rules"),
        pytest.param([{"filters": [HEADERS, *TO_HTTPS["filters"]]}], id="with another filter"),
        pytest.param([TO_HTTPS | {"matches": [{"path": {"value": "/"}}]}], id="with a match"),
        pytest.param([{"filters": [None, {}, *TO_HTTPS["filters"]]}], id="gaps"),
    ],
)
def test_a_route_only_redirects_if_each_rule_does(rules: Any) -> None:
    assert judge(rules)


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param([TO_HTTPS, TO_BACKEND], id="one of two"),
        pytest.param([TO_BACKEND], id="none"),
        pytest.param([], id="no rule"),
        pytest.param(None, id="null"),
        pytest.param([None], id="a null rule"),
        pytest.param([TO_HTTPS, None], id="a null rule beside another"),
        pytest.param([{}], id="an empty rule"),
        pytest.param([{"filters": None}], id="null filters"),
        pytest.param([{"filters": []}], id="no filters"),
        pytest.param([{"filters": [HEADERS]}], id="another filter"),
        pytest.param([{"filters": [{"type": "requestredirect"}]}], id="another case"),
        pytest.param([{"filters": [{"requestRedirect": {"scheme": "https"}}]}], id="without a type"),
        pytest.param([{"filters": [{"type": None}]}], id="a null type"),
        pytest.param([{"backendRefs": [{"name": "app", **TO_HTTPS}]}], id="a filter of a backend"),
        pytest.param("RequestRedirect", id="rules a text"),
        pytest.param({"filters": []}, id="rules an object"),
        pytest.param([["x"]], id="a rule a list"),
        pytest.param([{"filters": {"type": "RequestRedirect"}}], id="filters an object"),
        pytest.param([{"filters": ["RequestRedirect"]}], id="a filter a text"),
        pytest.param([TO_HTTPS, {"filters": [{"type": 7}]}], id="a type a number"),
        pytest.param([TO_HTTPS, 7], id="a rule a number"),
    ],
)
def test_anything_else_is_no_route_that_only_redirects(rules: Any) -> None:
    assert not judge(rules)


@pytest.mark.parametrize(
    "text", [b"", b"[", b'[{"filters":', b"[" * 100_000, b"\xff", b'[{"filters":[{"type":"\xff"}]}]'],
    ids=["absent", "cut", "cut deeper", "deep", "no text", "no UTF-8"],
)  # fmt: skip
def test_what_is_no_json_is_none(text: bytes) -> None:
    assert not only_redirects(msgspec.Raw(text))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["RequestRedirect", ""]),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(["filters", "type"]), part, max_size=2),
    max_leaves=8,
)


@given(JSON)
def test_any_json_has_an_answer(rules: Any) -> None:
    assert judge(rules) in (True, False)

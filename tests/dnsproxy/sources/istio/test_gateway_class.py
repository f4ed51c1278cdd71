"""The class of an Istio Gateway, from a flag and from a selector."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.istio.gateway_class import format_class, parse_class

KEYS = st.text("abz019-./", min_size=1, max_size=9)
VALUES = st.text("abz019-._", max_size=9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("istio=ingressgateway", "istio=ingressgateway", id="one label"),
        pytest.param("istio=x,app=y", "app=y,istio=x", id="in the order of the keys"),
        pytest.param("istio=x , app=y", "app=y,istio=x", id="with spaces"),
        pytest.param("a=x,a-b=y", "a=x,a-b=y", id="a key that begins like another"),
        pytest.param("a-b=y,a=x", "a=x,a-b=y", id="the same in another order"),
        pytest.param("example.org/a=", "example.org/a=", id="empty value"),
    ],
)
def test_a_class_is_read_in_any_order_of_its_labels(text: str, expected: str) -> None:
    assert parse_class(text) == expected


@pytest.mark.parametrize("text", ["", "ingressgateway", "=x", ",", "a=b,", "a=b,,c=d", "a=b,a=c", "a=b,c"])
def test_what_is_no_selector_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="istio=ingressgateway"):
        parse_class(text)


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=5), st.randoms())
def test_any_selector_is_the_class_that_a_user_writes_for_it(selector: dict[str, str], random: Random) -> None:
    labels = [f"{key}={value}" for key, value in selector.items()]
    random.shuffle(labels)
    assert parse_class(",".join(labels)) == format_class(selector)

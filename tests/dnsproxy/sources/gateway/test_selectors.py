"""Label selectors as apimachinery reads them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.gateway import structs
from dnsproxy.sources.gateway.selectors import BadSelector, Selector, parse_selector

LABELS = {"team": "web", "kubernetes.io/metadata.name": "shop", "empty": ""}


def parse(selector: Any) -> Selector:
    return parse_selector(msgspec.convert(selector, structs.LabelSelector | None))


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param({}, True, id="empty takes all"),
        pytest.param({"matchLabels": None, "matchExpressions": None}, True, id="nulls take all"),
        pytest.param({"matchLabels": {"team": "web"}}, True, id="label"),
        pytest.param({"matchLabels": {"team": "Web"}}, False, id="case counts"),
        pytest.param({"matchLabels": {"team": "web", "absent": "x"}}, False, id="all labels must match"),
        pytest.param({"matchLabels": {"absent": ""}}, False, id="absent is not empty"),
        pytest.param({"matchLabels": {"empty": ""}}, True, id="empty value"),
        pytest.param(expression("team", "In", "web", "api"), True, id="In"),
        pytest.param(expression("team", "In", "api"), False, id="not In"),
        pytest.param(expression("absent", "In", "web"), False, id="In of an absent one"),
        pytest.param(expression("team", "NotIn", "web", "api"), False, id="NotIn"),
        pytest.param(expression("team", "NotIn", "api"), True, id="not NotIn"),
        pytest.param(expression("absent", "NotIn", "web"), True, id="NotIn takes what is absent"),
        pytest.param(expression("empty", "Exists"), True, id="Exists"),
        pytest.param(expression("absent", "Exists"), False, id="not Exists"),
        pytest.param(expression("absent", "DoesNotExist"), True, id="DoesNotExist"),
        pytest.param(expression("team", "DoesNotExist"), False, id="not DoesNotExist"),
        pytest.param({"matchLabels": {"team": "web"}} | expression("team", "NotIn", "web"), False, id="both must hold"),
    ],
)
def test_labels_are_taken_or_not(selector: Any, expected: bool) -> None:
    assert parse(selector).matches(LABELS) is expected


@pytest.mark.parametrize(
    ("selector", "named"),
    [
        pytest.param(None, "no selector", id="none at all"),
        pytest.param(expression("team", "in", "web"), "'in'", id="operator in lower case"),
        pytest.param(expression("team", "Gt", "1"), "'Gt'", id="operator of node selectors"),
        pytest.param(expression("team", "", "1"), "''", id="empty operator"),
        pytest.param(expression("team", "In"), "needs values", id="In nothing"),
        pytest.param(
            {"matchExpressions": [{"key": "k", "operator": "NotIn", "values": None}]}, "needs", id="NotIn null"
        ),
        pytest.param(expression("team", "Exists", "web"), "takes no values", id="Exists with values"),
        pytest.param(expression("team", "DoesNotExist", "web"), "takes no values", id="DoesNotExist with values"),
        pytest.param({"matchLabels": {"team": "web"}} | expression("a\nb", "In"), "needs", id="good beside bad"),
    ],
)
def test_a_selector_that_means_nothing_is_refused(selector: Any, named: str) -> None:
    with pytest.raises(BadSelector) as caught:
        parse(selector)
    assert named in str(caught.value)
    assert str(caught.value).isprintable()


labels = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"))


@given(labels, labels)
def test_match_labels_are_a_part_of_the_labels(wanted: dict[str, str], had: dict[str, str]) -> None:
    assert parse({"matchLabels": wanted}).matches(had) == (wanted.items() <= had.items())


@given(st.sampled_from("ab"), st.sets(st.sampled_from("xy"), min_size=1), labels)
def test_opposite_operators_take_what_the_other_leaves(key: str, values: set[str], had: dict[str, str]) -> None:
    assert parse(expression(key, "In", *values)).matches(had) != parse(expression(key, "NotIn", *values)).matches(had)
    assert parse(expression(key, "Exists")).matches(had) != parse(expression(key, "DoesNotExist")).matches(had)

"""Which namespaces are admitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from dnsproxy.sources.gateway import structs
from dnsproxy.sources.gateway.admission import NO_NAMESPACE, Admission, BadScope, parse_admission
from dnsproxy.sources.gateway.selectors import BadSelector

WEB = {"matchLabels": {"team": "web"}}


def parse(namespaces: Any, *, default: str = "Same") -> Admission:
    return parse_admission(msgspec.convert(namespaces, structs.Namespaces | None), default=default)


@pytest.mark.parametrize(
    ("namespaces", "namespace", "labels", "admitted"),
    [
        pytest.param({"from": "All"}, "shop", None, True, id="All, labels unknown"),
        pytest.param({"from": "Same"}, "infra", None, True, id="Same, its own"),
        pytest.param({"from": "Same"}, "shop", {"team": "web"}, False, id="Same, another"),
        pytest.param({"from": "Same", "selector": WEB}, "shop", {"team": "web"}, False, id="a selector beside Same"),
        pytest.param({"from": "None"}, "infra", {"team": "web"}, False, id="None, even its own"),
        pytest.param({"from": "Selector", "selector": WEB}, "shop", {"team": "web"}, True, id="Selector"),
        pytest.param({"from": "Selector", "selector": WEB}, "shop", {"team": "api"}, False, id="Selector, another"),
        pytest.param({"from": "Selector", "selector": WEB}, "infra", {}, False, id="Selector, not even its own"),
        pytest.param({"from": "Selector", "selector": WEB}, "shop", None, False, id="Selector, labels unknown"),
        pytest.param({"from": "Selector", "selector": {}}, "shop", None, False, id="an empty selector, labels unknown"),
        pytest.param({"from": "Selector", "selector": {}}, "shop", {}, True, id="an empty selector"),
        pytest.param({}, "infra", None, True, id="the default"),
        pytest.param(None, "shop", None, False, id="the default, another"),
        pytest.param({"from": None}, "infra", None, True, id="null is the default"),
        pytest.param({"from": ""}, "infra", None, True, id="empty is the default"),
    ],
)
def test_a_namespace_is_admitted_or_there_is_a_reason(
    namespaces: Any, namespace: str, labels: Mapping[str, str] | None, admitted: bool
) -> None:
    refusal = parse(namespaces).refusal(namespace, home="infra", labels=labels)
    assert (refusal is None) is admitted
    assert refusal is None or namespace in refusal


@pytest.mark.parametrize("namespaces", [None, {}, {"from": None}, {"from": "None"}])
def test_listener_sets_are_not_admitted_by_default(namespaces: Any) -> None:
    """Not even those of the Gateway's own namespace."""
    assert parse(namespaces, default="None").refusal("infra", home="infra", labels={}) is not None


@pytest.mark.parametrize("scope", ["all", "SAME", "Any", "*", "\n"])
def test_an_unknown_scope_is_refused(scope: str) -> None:
    with pytest.raises(BadScope) as caught:
        parse({"from": scope})
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("namespaces", [{"from": "Selector"}, {"from": "Selector", "selector": None}])
def test_a_missing_selector_is_refused(namespaces: Any) -> None:
    """Otherwise it would read like an empty one, which matches every namespace."""
    with pytest.raises(BadSelector):
        parse(namespaces)


def test_no_namespace_is_admitted_by_none() -> None:
    assert NO_NAMESPACE.refusal("infra", home="infra", labels={}) is not None

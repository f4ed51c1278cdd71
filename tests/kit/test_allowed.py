"""The reviews by which tests wait for rights."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.allowed import reviews

INGRESSES = {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": ["create", "get"]}
STATUS = {"apiGroups": [""], "resources": ["services/status"], "resourceNames": ["edge"], "verbs": ["patch"]}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(INGRESSES, ("networking.k8s.io", "ingresses", "", "create", ""), id="the-first-verb"),
        pytest.param(STATUS, ("", "services", "status", "patch", "edge"), id="a-subresource-of-one-object"),
    ],
)
def test_a_rule_is_asked_for_as_the_authorizer_will_be(rule: dict[str, Any], expected: tuple[str, ...]) -> None:
    (asked,) = reviews(("web", "home"), [rule], namespace="work")
    attributes = asked["resourceAttributes"]
    assert asked["user"] == "system:serviceaccount:home:web"
    assert attributes["namespace"] == "work"
    assert tuple(attributes[key] for key in ("group", "resource", "subresource", "verb", "name")) == expected


def test_a_path_of_the_api_server_is_no_resource() -> None:
    (asked,) = reviews(("web", "home"), [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}], namespace="")
    assert asked["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}

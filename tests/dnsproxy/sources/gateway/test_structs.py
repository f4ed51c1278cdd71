"""Objects as the API server sends them, valid and invalid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dnsproxy.sources.gateway import structs
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.protocol import Decoder

GATEWAY: dict[str, Any] = {"gatewayClassName": "public", "listeners": [{"name": "a", "protocol": "HTTP", "port": 80}]}
LISTENER_SET: dict[str, Any] = {"parentRef": {"name": "main"}, "listeners": GATEWAY["listeners"]}
ROUTE: dict[str, Any] = {"parentRefs": [{"name": "main"}], "hostnames": ["app.example.org"]}


def decode(kind: Any, *objects: dict[str, Any]) -> list[Any]:
    """The objects of a page, each with its own name."""
    items = [{"metadata": {"name": f"o{number}", "namespace": "web"}} | one for number, one in enumerate(objects)]
    body = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}
    decoder = Decoder(kind)
    return [entry.value for entry in decoder.decode_items(decoder.split_page(json.dumps(body).encode()).items)]


@pytest.mark.parametrize(
    ("kind", "one"),
    [
        pytest.param(
            structs.Gateway, {"spec": GATEWAY, "status": {"listeners": [{"attachedRoutes": 3}]}}, id="Gateway"
        ),
        pytest.param(structs.Gateway, {"spec": {"gatewayClassName": "x"}}, id="without listeners"),
        pytest.param(structs.Gateway, {"spec": GATEWAY | {"listeners": None}, "status": None}, id="nulls"),
        pytest.param(structs.Gateway, {"spec": GATEWAY | {"listeners": [None]}}, id="null listener"),
        pytest.param(
            structs.Gateway,
            {"spec": GATEWAY, "status": {"addresses": [None, {"value": "192.0.2.1"}]}},
            id="null address",
        ),
        pytest.param(
            structs.Gateway,
            {"spec": GATEWAY | {"allowedListeners": {"namespaces": {"from": None, "selector": {}}}}},
            id="null from",
        ),
        pytest.param(structs.ListenerSet, {"spec": LISTENER_SET}, id="ListenerSet"),
        pytest.param(
            structs.ListenerSet,
            {"spec": LISTENER_SET | {"listeners": [{"name": "a", "protocol": "HTTP"}]}},
            id="listener of an XListenerSet without port",
        ),
        pytest.param(structs.Route, {"spec": ROUTE}, id="route"),
        pytest.param(structs.Route, {}, id="route without spec"),
        pytest.param(structs.Route, {"spec": {"parentRefs": None, "hostnames": None}}, id="route of nulls"),
        pytest.param(structs.Route, {"spec": {"parentRefs": [None], "hostnames": [None]}}, id="nulls in lists"),
        pytest.param(
            structs.Route,
            {"spec": ROUTE | {"rules": [{"backendRefs": [{"name": 7}]}]}, "status": 7},
            id="what we don't read",
        ),
        pytest.param(structs.Route, {"spec": ROUTE | {"rules": "x"}}, id="rules a text"),
        pytest.param(structs.Route, {"spec": ROUTE | {"rules": [7, {"filters": {"type": []}}]}}, id="bad rules"),
        pytest.param(structs.Namespace, {"metadata": {"name": "web", "labels": {"a": "b"}}}, id="Namespace"),
        pytest.param(structs.Namespace, {"metadata": {"name": "web", "labels": None}, "spec": {}}, id="no labels"),
    ],
)
def test_what_the_specification_allows_is_read(kind: Any, one: dict[str, Any]) -> None:
    (value,) = decode(kind, one)
    assert isinstance(value, kind)


@pytest.mark.parametrize(
    ("kind", "bad", "good"),
    [
        pytest.param(structs.Gateway, {}, {"spec": GATEWAY}, id="no spec"),
        pytest.param(structs.Gateway, {"spec": []}, {"spec": GATEWAY}, id="spec is a list"),
        pytest.param(structs.Gateway, {"spec": {"listeners": []}}, {"spec": GATEWAY}, id="no class"),
        pytest.param(
            structs.Gateway, {"spec": GATEWAY | {"listeners": {}}}, {"spec": GATEWAY}, id="listeners an object"
        ),
        pytest.param(
            structs.Gateway, {"spec": GATEWAY | {"listeners": ["a"]}}, {"spec": GATEWAY}, id="listener a text"
        ),
        pytest.param(
            structs.Gateway, {"spec": GATEWAY | {"listeners": [{}]}}, {"spec": GATEWAY}, id="nameless listener"
        ),
        pytest.param(
            structs.Gateway,
            {"spec": GATEWAY | {"listeners": [{"name": "a", "protocol": "HTTP", "port": "80"}]}},
            {"spec": GATEWAY},
            id="port a text",
        ),
        pytest.param(
            structs.Gateway,
            {"spec": GATEWAY | {"listeners": [{"name": "a", "protocol": "HTTP", "hostname": ["a"]}]}},
            {"spec": GATEWAY},
            id="hostname a list",
        ),
        pytest.param(
            structs.Gateway, {"spec": GATEWAY, "status": {"addresses": "192.0.2.1"}}, {"spec": GATEWAY}, id="addresses"
        ),
        pytest.param(
            structs.Gateway,
            {"spec": GATEWAY | {"allowedListeners": {"namespaces": {"selector": {"matchLabels": ["a"]}}}}},
            {"spec": GATEWAY},
            id="labels a list",
        ),
        pytest.param(structs.ListenerSet, {"spec": {"listeners": []}}, {"spec": LISTENER_SET}, id="no parent"),
        pytest.param(
            structs.ListenerSet, {"spec": LISTENER_SET | {"parentRef": []}}, {"spec": LISTENER_SET}, id="parent a list"
        ),
        pytest.param(structs.Route, {"spec": None}, {"spec": ROUTE}, id="null spec"),
        pytest.param(structs.Route, {"spec": ROUTE | {"hostnames": "a"}}, {"spec": ROUTE}, id="hostnames a text"),
        pytest.param(structs.Route, {"spec": ROUTE | {"hostnames": [7]}}, {"spec": ROUTE}, id="hostname a number"),
        pytest.param(structs.Route, {"spec": ROUTE | {"parentRefs": [{}]}}, {"spec": ROUTE}, id="nameless parent"),
        pytest.param(
            structs.Route,
            {"spec": ROUTE | {"parentRefs": [{"name": "a", "port": 1.5}]}},
            {"spec": ROUTE},
            id="port 1.5",
        ),
        pytest.param(
            structs.Route, {"metadata": {"name": "x", "labels": ["a"]}}, {"spec": ROUTE}, id="labels of metadata a list"
        ),
        pytest.param(
            structs.Namespace,
            {"metadata": {"name": "x", "labels": {"a": 7}}},
            {"metadata": {"name": "y"}},
            id="label 7",
        ),
    ],
)
def test_an_object_of_another_shape_harms_only_itself(kind: Any, bad: dict[str, Any], good: dict[str, Any]) -> None:
    values = decode(kind, good, bad, good)
    assert [type(value) for value in values] == [kind, Unreadable, kind]

"""Objects as the API server sends them, valid and invalid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dnsproxy.sources.istio import structs
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.protocol import Decoder

SERVER = {"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["a.example.org"]}
GATEWAY: dict[str, Any] = {"selector": {"istio": "ingressgateway"}, "servers": [SERVER]}
SERVICE: dict[str, Any] = {"hosts": ["a.example.org"], "gateways": ["infra/main", "mesh"], "exportTo": ["*"]}


def decode(kind: Any, *objects: dict[str, Any]) -> list[Any]:
    """The objects of a page, each with its own name."""
    items = [{"metadata": {"name": f"o{number}", "namespace": "web"}} | one for number, one in enumerate(objects)]
    body = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}
    decoder = Decoder(kind)
    return [entry.value for entry in decoder.decode_items(decoder.split_page(json.dumps(body).encode()).items)]


@pytest.mark.parametrize(
    ("kind", "one"),
    [
        pytest.param(structs.Gateway, {"spec": GATEWAY}, id="Gateway"),
        pytest.param(structs.Gateway, {}, id="Gateway without spec"),
        pytest.param(structs.Gateway, {"spec": None}, id="Gateway with a null spec"),
        pytest.param(structs.Gateway, {"spec": {"selector": None, "servers": None}}, id="Gateway of nulls"),
        pytest.param(structs.Gateway, {"spec": {"servers": [None, {"hosts": None}, {"hosts": [None]}]}}, id="servers"),
        pytest.param(structs.Gateway, {"spec": {"servers": [{"port": 7, "tls": "x"}]}, "status": 7}, id="not read"),
        pytest.param(structs.VirtualService, {"spec": SERVICE}, id="VirtualService"),
        pytest.param(structs.VirtualService, {}, id="VirtualService without spec"),
        pytest.param(structs.VirtualService, {"spec": dict.fromkeys(SERVICE)}, id="VirtualService of nulls"),
        pytest.param(structs.VirtualService, {"spec": {key: [None] for key in SERVICE}}, id="nulls in lists"),
        pytest.param(structs.VirtualService, {"spec": SERVICE | {"http": 7}, "status": []}, id="routes are not read"),
    ],
)
def test_what_istio_allows_is_read(kind: Any, one: dict[str, Any]) -> None:
    (value,) = decode(kind, one)
    assert isinstance(value, kind)


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        pytest.param(structs.Gateway, {"spec": []}, id="spec a list"),
        pytest.param(structs.Gateway, {"spec": "x"}, id="spec a text"),
        pytest.param(structs.Gateway, {"spec": {"selector": []}}, id="selector a list"),
        pytest.param(structs.Gateway, {"spec": {"selector": {"a": 7}}}, id="label a number"),
        pytest.param(structs.Gateway, {"spec": {"servers": {}}}, id="servers an object"),
        pytest.param(structs.Gateway, {"spec": {"servers": ["a"]}}, id="server a text"),
        pytest.param(structs.Gateway, {"spec": {"servers": [{"hosts": "a"}]}}, id="hosts a text"),
        pytest.param(structs.Gateway, {"spec": {"servers": [{"hosts": [["a"]]}]}}, id="host a list"),
        pytest.param(structs.VirtualService, {"spec": 7}, id="spec a number"),
        pytest.param(structs.VirtualService, {"spec": {"hosts": {}}}, id="hosts an object"),
        pytest.param(structs.VirtualService, {"spec": {"hosts": [7]}}, id="host a number"),
        pytest.param(structs.VirtualService, {"spec": {"gateways": "mesh"}}, id="gateways a text"),
        pytest.param(structs.VirtualService, {"spec": {"gateways": [{}]}}, id="gateway an object"),
        pytest.param(structs.VirtualService, {"spec": {"exportTo": "."}}, id="exportTo a text"),
        pytest.param(structs.VirtualService, {"metadata": {"name": "x", "annotations": []}}, id="annotations a list"),
    ],
)
def test_an_object_of_another_shape_harms_only_itself(kind: Any, bad: dict[str, Any]) -> None:
    good = {"spec": GATEWAY if kind is structs.Gateway else SERVICE}
    values = decode(kind, good, bad, good)
    assert [type(value) for value in values] == [kind, Unreadable, kind]

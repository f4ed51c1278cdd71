"""Which version of a kind is followed, and what the API server's lists of versions and resources say."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.watched_kinds import (
    WatchedKind,
    choose_collections,
    groups_to_ask,
    parse_resources,
    parse_versions,
    version_paths,
)
from sidecar.kubernetes.errors import Garbled
from sidecar.kubernetes.objects import ObjectMeta

WATCHED: Final = ["get", "list", "watch"]
NAMED: Final = WatchedKind("Named", "example.org", ("v1", "v1beta1"), "nameds", ObjectMeta)
CORE: Final = WatchedKind("Core", "", ("v1",), "cores", ObjectMeta, optional=False)
ANY: Final = WatchedKind("Any", "example.net", (), "anys", ObjectMeta)
KINDS: Final = (NAMED, CORE, ANY)
OFFERED: Final = {"example.net": ("v2", "v1alpha1")}


def test_each_version_of_each_kind_is_asked_for_once() -> None:
    paths = version_paths((*KINDS, NAMED), OFFERED)
    assert paths == [
        "/apis/example.org/v1",
        "/apis/example.org/v1beta1",
        "/api/v1",
        "/apis/example.net/v2",
        "/apis/example.net/v1alpha1",
    ]
    assert groups_to_ask(KINDS) == ["example.net"]


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param(
            {"/apis/example.org/v1beta1": {"nameds"}}, {"Named": "/apis/example.org/v1beta1/nameds"}, id="old"
        ),
        pytest.param(
            {"/apis/example.org/v1beta1": {"nameds"}, "/apis/example.org/v1": {"nameds"}},
            {"Named": "/apis/example.org/v1/nameds"},
            id="the best of two",
        ),
        pytest.param({"/apis/example.org/v2": {"nameds"}}, {}, id="in a version to come"),
        pytest.param({"/apis/example.org/v1": {"named"}}, {}, id="another resource"),
        pytest.param({"/api/v1": {"cores"}}, {"Core": "/api/v1/cores"}, id="the core group"),
        pytest.param(
            {"/apis/example.net/v2": set(), "/apis/example.net/v1alpha1": {"anys"}},
            {"Any": "/apis/example.net/v1alpha1/anys"},
            id="of the versions that the server names, the first that has it",
        ),
    ],
)
def test_the_best_served_version_is_followed(served: dict[str, set[str]], expected: dict[str, str]) -> None:
    chosen = choose_collections(KINDS, served, OFFERED)
    assert {kind: one.path for kind, one in chosen.items()} == expected


def test_a_kind_without_versions_is_off_while_its_group_is_unknown() -> None:
    assert choose_collections([ANY], {"/apis/example.net/v2": {"anys"}}, {}) == {}


def test_only_discovery_decides_whether_a_kind_exists() -> None:
    served = {"/apis/example.org/v1": {"nameds"}, "/api/v1": {"cores"}}
    chosen = choose_collections(KINDS, served, OFFERED)
    assert all(one.discovered for one in chosen.values())
    assert {kind: one.optional for kind, one in chosen.items()} == {"Named": True, "Core": False}


def versions(*names: str, preferred: str | None = None) -> bytes:
    rows = [{"groupVersion": f"example.org/{name}", "version": name} for name in names]
    more = {"preferredVersion": {"groupVersion": f"example.org/{preferred}", "version": preferred}} if preferred else {}
    return json.dumps({"kind": "APIGroup", "name": "example.org", "versions": rows, **more}).encode()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(versions("v1"), ("v1",), id="one"),
        pytest.param(versions("v2", "v1", preferred="v1"), ("v1", "v2"), id="the preferred one first"),
        pytest.param(versions("v1", preferred="v3"), ("v3", "v1"), id="a preferred one that is not listed"),
        pytest.param(b'{"versions": null, "preferredVersion": null}', (), id="null"),
        pytest.param(b"{}", (), id="empty"),
    ],
)
def test_the_versions_of_a_group_are_read_in_the_order_of_the_server(body: bytes, expected: tuple[str, ...]) -> None:
    assert parse_versions(body) == expected


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"<html>", b'{"versions": {}}', b'{"versions": ["v1"]}'])
def test_any_other_document_than_a_group_is_garbled(body: bytes) -> None:
    with pytest.raises(Garbled):
        parse_versions(body)


def resources(*rows: Any) -> bytes:
    return json.dumps({"kind": "APIResourceList", "groupVersion": "example.org/v1", "resources": list(rows)}).encode()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(resources({"name": "gateways", "kind": "Gateway", "verbs": WATCHED}), {"gateways"}, id="one"),
        pytest.param(
            resources({"name": "gateways", "verbs": WATCHED}, {"name": "gateways/status", "verbs": ["get", "patch"]}),
            {"gateways"},
            id="with its status",
        ),
        pytest.param(resources({"name": "gateways", "verbs": ["list"]}), set(), id="not watchable"),
        pytest.param(resources({"name": "gateways", "verbs": None}), set(), id="null verbs"),
        pytest.param(resources({"name": "gateways"}), set(), id="no verbs"),
        pytest.param(resources(), set(), id="none"),
        pytest.param(b'{"resources": null}', set(), id="null"),
        pytest.param(b"{}", set(), id="empty"),
    ],
)
def test_resources_that_can_be_followed_are_found(body: bytes, expected: set[str]) -> None:
    assert parse_resources(body) == expected


def test_resources_in_no_namespace_can_be_left_out() -> None:
    rows = [{"name": name, "namespaced": name != "sites", "verbs": WATCHED} for name in ("sites", "gateways")]
    assert parse_resources(resources(*rows)) == {"sites", "gateways"}
    assert parse_resources(resources(*rows), namespaced=True) == {"gateways"}
    assert parse_resources(resources({"name": "a", "verbs": WATCHED}), namespaced=True) == {"a"}


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"null", b"<html>", b'{"resources": {}}', b'{"resources": [null]}', b'{"resources": [{"name": 7}]}',
     resources({"verbs": WATCHED}), resources({"name": "a", "verbs": "list"}), resources({"name": "a"})[:-3],
     b'{"resources": [{"name": "\xff"}]}', b'{"resources":' + b"[" * 100_000],
)  # fmt: skip
def test_any_other_document_than_a_list_of_resources_is_garbled(body: bytes) -> None:
    with pytest.raises(Garbled):
        parse_resources(body)


@given(st.binary())
def test_any_octets_are_a_list_of_resources_or_garbled(body: bytes) -> None:
    with suppress(Garbled):
        assert isinstance(parse_resources(body), frozenset)

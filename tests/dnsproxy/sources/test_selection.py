"""Which objects count: collections, names of namespaces, and the settings of a snapshot."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.ingress import INGRESSES
from dnsproxy.sources.selection import Selection, parse_namespace
from sidecar.kubernetes.selector import parse_annotation_selector, parse_selector

WEB = parse_selector("team=web,!internal")
PUBLIC = parse_annotation_selector("example.org/public")


def test_without_a_choice_a_collection_stays_as_it_is() -> None:
    assert Selection().of(INGRESSES) is INGRESSES
    assert Selection(("shop",)).of(INGRESSES) is INGRESSES


def test_the_selectors_are_added_to_a_collection() -> None:
    selected = Selection(labels=WEB, annotations=PUBLIC).of(INGRESSES)
    assert selected == replace(INGRESSES, label_selector="!internal,team=web", annotation_selector=PUBLIC)
    only = replace(INGRESSES, label_selector="a=b")
    assert Selection(labels=WEB).of(only) == replace(only, label_selector="a=b,!internal,team=web")
    assert Selection(annotations=PUBLIC).of(only) == replace(only, annotation_selector=PUBLIC)


def test_a_snapshot_has_the_choices_alone() -> None:
    assert Selection().snapshot_settings() == {}
    assert Selection(("shop", "blog"), WEB, PUBLIC).snapshot_settings() == {
        "namespaces": "blog,shop",
        "label selector": "!internal,team=web",
        "annotation filter": "example.org/public",
    }


def test_a_snapshot_does_not_depend_on_the_spelling_of_a_choice() -> None:
    one = Selection(("a", "b"), parse_selector("x in (a),y"))
    other = Selection(("b", "a"), parse_selector(" y , x==a "))
    assert one.snapshot_settings() == other.snapshot_settings()


@pytest.mark.parametrize("name", ["shop", "a", "0", "a-b", "x" * 63, " shop\n"])
def test_a_namespace_has_a_name(name: str) -> None:
    assert parse_namespace(name) == name.strip()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="empty"),
        pytest.param(" ", id="blank"),
        pytest.param("Shop", id="capitals"),
        pytest.param("-a", id="a hyphen first"),
        pytest.param("a-", id="a hyphen last"),
        pytest.param("a.b", id="a dot"),
        pytest.param("a/b", id="a path"),
        pytest.param("..", id="a path upwards"),
        pytest.param("a,b", id="two"),
        pytest.param("a b", id="two with a blank"),
        pytest.param("*", id="all"),
        pytest.param("x" * 64, id="64 characters"),
        pytest.param("ä", id="beyond ASCII"),
        pytest.param("a?watch=1", id="a query"),
    ],
)
def test_anything_else_is_no_namespace(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a namespace"):
        parse_namespace(name)


@given(st.text())
def test_a_namespace_is_safe_in_a_path(text: str) -> None:
    try:
        name = parse_namespace(text)
    except ValueError:
        return
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")

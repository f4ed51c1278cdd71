"""Which objects a selector over annotations leaves out, as JSON and through the decoder of pages and watches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.annotation_filter import AnnotationFilter
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from sidecar.kubernetes.protocol import FAULTS, Decoder, Entry
from sidecar.kubernetes.selector import parse_annotation_selector
from tests.kit.faulty_api import event

KEYS = ("a", "switchback.dev/ignore", 'quoted".example.org/x', "annotation_0", "metadata")


class Thing(msgspec.Struct):
    metadata: ObjectMeta
    spec: int = 0


def thing(annotations: Any, *, version: str = "5", **more: Any) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": "shop", "resourceVersion": version, "annotations": annotations}
    return {"metadata": metadata} | more


def left_out(text: str, item: object) -> ObjectMeta | None:
    return AnnotationFilter(parse_annotation_selector(text)).left_out(msgspec.Raw(json.dumps(item).encode()))


@pytest.mark.parametrize(
    ("text", "annotations", "counts"),
    [
        pytest.param("", {}, True, id="no condition"),
        pytest.param("a", {"a": ""}, True, id="there, and empty"),
        pytest.param("a", {"A": "1"}, False, id="case counts"),
        pytest.param("a", {}, False, id="none"),
        pytest.param("a", None, False, id="null"),
        pytest.param("!a", None, True, id="null has no key"),
        pytest.param("a", {"a": None}, False, id="a null value"),
        pytest.param("a=b,c=d", {"a": "b", "c": "d", "e": "f"}, True, id="two, with others beside"),
        pytest.param("a=b,c=d", {"a": "b"}, False, id="one of two"),
        pytest.param("example.org/a in (b/c,d)", {"example.org/a": "b/c"}, True, id="a slash in a value"),
        pytest.param("annotation_0=x", {"annotation_0": "x"}, True, id="a key like a field"),
        pytest.param("kubernetes.io/ingress.class!=x", {"kubernetes.io/ingress.class": "y"}, True, id="unequal"),
        pytest.param("a=ü", {"a": "ü"}, True, id="beyond ASCII"),
    ],
)
def test_an_object_counts_or_is_left_out(text: str, annotations: Mapping[str, str] | None, counts: bool) -> None:
    found = left_out(text, thing(annotations))
    assert (found is None) is counts
    if found is not None:
        assert (found.name, found.namespace, found.resource_version) == ("x", "shop", "5")


def test_an_object_without_annotations_is_left_out() -> None:
    assert left_out("a", {"metadata": {"name": "x"}}) is not None


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(None, id="null"),
        pytest.param([], id="a list"),
        pytest.param({"metadata": None}, id="no metadata"),
        pytest.param({"metadata": {}}, id="no name"),
        pytest.param(thing(5), id="annotations that are a number"),
        pytest.param(thing(["a"]), id="annotations that are a list"),
        pytest.param(thing({"a": 5}), id="a number for a value"),
        pytest.param(thing({"a": {}}), id="an object for a value"),
    ],
)
def test_anything_else_is_a_fault(item: object) -> None:
    with pytest.raises(FAULTS):
        left_out("a", item)


@given(st.dictionaries(st.sampled_from(KEYS), st.text()), st.lists(st.sampled_from(KEYS[:2]), max_size=3))
def test_the_json_counts_as_the_selector_says(annotations: dict[str, str], keys: list[str]) -> None:
    selector = parse_annotation_selector(",".join(keys))
    counts = AnnotationFilter(selector).left_out(msgspec.Raw(json.dumps(thing(annotations)).encode())) is None
    assert counts is selector.matches(annotations)


DECODER = Decoder(Thing, parse_annotation_selector("a=b"))


def page(*items: object) -> list[Entry[Thing]]:
    return DECODER.decode_items([msgspec.Raw(json.dumps(item).encode()) for item in items])


def test_in_a_page_an_object_that_is_left_out_is_absent() -> None:
    one, two = page(thing({"a": "b"}, spec=7), thing({"a": "c"}, version="6"))
    assert isinstance(one.value, Thing)
    assert one.value.spec == 7
    assert two == Entry("shop/x", "6", None)


def test_in_a_watch_an_object_that_is_left_out_is_absent_and_the_version_goes_on() -> None:
    batch = DECODER.decode_events([event(kind, thing({}, version="8")) for kind in ("ADDED", "MODIFIED")])
    assert batch.entries == [Entry("shop/x", "8", None)] * 2
    assert batch.version == "8"


def test_only_a_selected_object_can_be_unreadable() -> None:
    selected, other, broken = page(
        thing({"a": "b"}, spec="no number"), thing({}, spec="no number"), thing({"a": 5}, spec=1)
    )
    assert isinstance(selected.value, Unreadable)
    assert other.value is None
    # Whether it is selected cannot be known: its owner sees the reason.
    assert isinstance(broken.value, Unreadable)
    assert "annotations" in broken.value.reason

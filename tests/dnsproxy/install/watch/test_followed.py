"""Which collections are followed, and which changes matter."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dnsproxy.cluster_dns.requests import CONFIG_MAP, DEPLOYMENT, ENDPOINT_SLICE, INGRESS, SERVICE, Request
from dnsproxy.install.watch.followed import Differences, Watched, collection_of, followed
from sidecar.kubernetes.objects import ObjectMeta, Unreadable

OBJECT: dict[str, Any] = {
    "metadata": {"name": "coredns", "resourceVersion": "1", "annotations": {"a": "b"}, "managedFields": []},
    "data": {"Corefile": ". {\n}\n"},
    "spec": {"replicas": 2},
    "status": {"readyReplicas": 2},
}


def read(one: dict[str, Any]) -> Watched:
    return msgspec.json.decode(json.dumps(one), type=Watched)


def changed(**parts: Any) -> dict[str, Any]:
    return {**OBJECT, **parts}


def test_one_object_is_followed_by_its_name_and_a_list_by_its_labels() -> None:
    named = collection_of(Request(CONFIG_MAP, "kube-system", "coredns"))
    assert (named.path, named.field_selector) == ("/api/v1/namespaces/kube-system/configmaps", "metadata.name=coredns")
    listed = collection_of(Request(ENDPOINT_SLICE, "switchback", label_selector="a=b"))
    assert listed.path == "/apis/discovery.k8s.io/v1/namespaces/switchback/endpointslices"
    assert (listed.field_selector, listed.label_selector) == ("", "a=b")


def test_all_but_the_ingresses_are_followed_once() -> None:
    asked = [Request(SERVICE, "a", "b"), Request(INGRESS, ""), Request(DEPLOYMENT, "a"), Request(SERVICE, "a", "b")]
    assert followed(asked) == (asked[0], asked[2])


@pytest.mark.parametrize(
    ("after", "matters"),
    [
        pytest.param(OBJECT, False, id="the same"),
        pytest.param(changed(status={"readyReplicas": 1}), False, id="how it is going"),
        pytest.param(
            changed(metadata={**OBJECT["metadata"], "resourceVersion": "2", "managedFields": [{}]}),
            False,
            id="the API server's counting",
        ),
        pytest.param(changed(data={"Corefile": ""}), True, id="its contents"),
        pytest.param(changed(data=None), True, id="no contents"),
        pytest.param(changed(spec={"replicas": 3}), True, id="its wish"),
        pytest.param(changed(immutable=True), True, id="immutable"),
        pytest.param(changed(binaryData={"a": "AA=="}), True, id="octets"),
        pytest.param(changed(endpoints=[{"conditions": {"ready": False}}]), True, id="its pods"),
        pytest.param(changed(metadata={**OBJECT["metadata"], "annotations": {}}), True, id="its marks"),
    ],
)
def test_only_what_a_plan_rests_on_matters(after: dict[str, Any], matters: bool) -> None:
    differences = Differences()
    assert differences.take({"kube-system/coredns": read(OBJECT)})
    assert differences.take({"kube-system/coredns": read(after)}) is matters


def test_what_goes_comes_or_becomes_unreadable_matters_once() -> None:
    differences = Differences()
    unreadable = Unreadable(ObjectMeta("coredns"), "no map")
    told = [differences.take({"k": one}) for one in (None, read(OBJECT), None, None, unreadable, unreadable)]
    assert told == [False, True, True, False, True, False]


def test_all_of_a_batch_are_taken_in() -> None:
    differences = Differences()
    assert differences.take({"a": read(OBJECT), "b": read(OBJECT)})
    assert not differences.take({"b": read(OBJECT)})

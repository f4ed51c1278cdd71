"""The upstreams in a ConfigMap, as an API server returns it."""

from __future__ import annotations

import pytest

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.traces import ANNOTATION
from dnsproxy.cluster_dns.upstream_config import NoUpstreams, config_map_collection, read_routes
from dnsproxy.corefile.upstream_routes import format_routes
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from sidecar.kubernetes.structs.metadata import Metadata
from sidecar.kubernetes.structs.workload import ConfigMap

COREDNS, KUBE_DNS = ObjectRef("kube-system", "coredns"), ObjectRef("kube-system", "kube-dns")
COREFILE = ".:53 {\n forward . 192.0.2.1\n}\n"


def config_map(data: dict[str, str] | None, **annotations: str) -> ConfigMap:
    return ConfigMap(
        Metadata(name="any", annotations={key.replace("_", "/"): one for key, one in annotations.items()}), data
    )


@pytest.mark.parametrize(
    ("ref", "found", "expected"),
    [
        pytest.param(COREDNS, config_map({"Corefile": COREFILE}), ". 192.0.2.1", id="Corefile"),
        pytest.param(KUBE_DNS, config_map({"Corefile": COREFILE}), ". 192.0.2.1", id="Corefile in kube-dns"),
        pytest.param(KUBE_DNS, None, ". /etc/resolv.conf", id="no kube-dns"),
        pytest.param(KUBE_DNS, config_map(None), ". /etc/resolv.conf", id="kube-dns without data"),
        pytest.param(KUBE_DNS, config_map({"upstreamNameservers": '["192.0.2.1"]'}), ". 192.0.2.1", id="kube-dns"),
        pytest.param(
            KUBE_DNS,
            config_map({"stubDomains": '{"corp.test": ["10.0.0.5"]}', "upstreamNameservers": " "}),
            "corp.test. 10.0.0.5; . /etc/resolv.conf",
            id="stub domains",
        ),
    ],
)
def test_it_has_routes(ref: ObjectRef, found: ConfigMap | None, expected: str) -> None:
    assert format_routes(read_routes(ref, found)) == expected


def test_our_own_stub_domains_are_no_routes() -> None:
    metadata = Metadata(name="kube-dns", annotations={ANNOTATION: "example.org"})
    data = {"stubDomains": '{"corp.test": ["10.0.0.5"], "example.org": ["10.96.0.202"]}'}
    assert format_routes(read_routes(KUBE_DNS, ConfigMap(metadata, data))) == "corp.test. 10.0.0.5; . /etc/resolv.conf"


@pytest.mark.parametrize(
    ("ref", "found", "reason"),
    [
        pytest.param(COREDNS, None, "there is no such ConfigMap", id="absent"),
        pytest.param(COREDNS, config_map({"other": COREFILE}), "it has no key Corefile", id="another key"),
        pytest.param(COREDNS, config_map({"Corefile": ""}), "line 1: no server block serves .", id="empty"),
        pytest.param(COREDNS, config_map({"Corefile": ". {\n forward . 192.0.2.1 }"}), "line 2: ", id="not parsable"),
        pytest.param(
            COREDNS, Unreadable(ObjectMeta("coredns"), "data: a list"), "it is unreadable: data", id="unreadable"
        ),
        pytest.param(KUBE_DNS, config_map({"stubDomains": "[]"}), "stubDomains is not valid", id="stub domains"),
        pytest.param(
            KUBE_DNS, config_map({"upstreamNameservers": '{"a": 1}'}), "upstreamNameservers is not", id="shape"
        ),
        pytest.param(KUBE_DNS, config_map({"upstreamNameservers": "[" * 5000}), "upstreamNameservers is", id="deep"),
    ],
)
def test_anything_else_is_a_reason(ref: ObjectRef, found: ConfigMap | Unreadable | None, reason: str) -> None:
    with pytest.raises(NoUpstreams) as error:
        read_routes(ref, found)
    assert reason in str(error.value)


def test_one_object_is_asked_for() -> None:
    collection = config_map_collection(COREDNS)
    assert collection.path == "/api/v1/namespaces/kube-system/configmaps"
    assert collection.field_selector == "metadata.name=coredns"

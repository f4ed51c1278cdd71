"""The form of a Corefile for a trial; tests/peers/test_local_coredns.py has a real CoreDNS load it."""

from __future__ import annotations

import pytest

from dnsproxy.cluster_dns.found import FoundCorefile
from dnsproxy.cluster_dns.method_choice import Choice, Method, choose_method
from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.install.change.config_map import Edits
from dnsproxy.install.change.trial_corefile import after, make_trial
from tests.dnsproxy.install.change.test_planning import WAYS
from tests.kit.manifest_cluster import Manifest, discover, manifests, pick
from tests.kit.manifest_edits import plan, where_of

OUTSIDE = {"kubernetes", "health", "ready", "prometheus", "loop", "reload", "pprof", "etcd", "import", "trace"}
"""Plugins that open something, ask somebody, or need a cluster."""


def corefile_of(objects: list[Manifest], name: str = "") -> FoundCorefile:
    server = discover(objects, where_of(name)).asked_by_pods
    assert server is not None
    assert server.corefile is not None
    return server.corefile


def changed(name: str, method: Method) -> tuple[FoundCorefile, FoundCorefile, Edits, Choice]:
    objects = manifests(name)
    corefile = corefile_of(objects, name)
    edits = plan(objects, method=method, where=where_of(name))
    choice = choose_method(discover(objects, where_of(name)), method)
    return corefile, after(corefile, edits, choice), edits, choice


@pytest.mark.parametrize(
    ("name", "method"), [way for way in WAYS if way.values[1] is not Method.STUB_DOMAINS and "gke" not in str(way.id)]
)
def test_what_is_tried_has_the_change_and_touches_nothing_outside(name: str, method: Method) -> None:
    before, there, *_ = changed(name, method)
    for found, installed in ((before, False), (there, True)):
        trial = make_trial(found)
        text = trial.format({port: 10_000 + port for port in trial.ports})
        value = parse_corefile(text)
        assert ("10.96.0.53" in text) is installed
        for block in value.blocks:
            assert [word.text for one in block.named("bind") for word in one.words] == ["127.0.0.1"]
            assert {key.origin.port for key in block.keys} <= {10_000 + port for port in trial.ports}
            assert not {one.name for one in block.directives} & OUTSIDE
        assert value.imports == ()


def test_imported_files_stand_where_they_are_a_part_of() -> None:
    objects = manifests("k3s-2025")
    data = pick(objects, "ConfigMap", "coredns-custom")["data"]
    data["a.override"] = "log\n"
    trial = make_trial(corefile_of(objects))
    root, corp = parse_corefile(trial.format({53: 1053})).blocks
    assert [key.text for key in root.keys] == [".:1053"]
    assert root.named("log")
    assert [key.text for key in corp.keys] == ["corp.example.net.:1053"]


def test_blocks_of_other_transports_and_of_unknown_zones_are_left_out() -> None:
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] += "tls://.:853 {\n tls a b\n}\n{$ZONE} {\n}\n10.0.0.0/24 {\n}\nexample.org:1053 {\n log\n}\n"
    trial = make_trial(corefile_of(objects))
    assert trial.ports == [53, 1053]
    text = trial.format({53: 2053, 1053: 3053})
    assert [key.text for block in parse_corefile(text).blocks for key in block.keys] == [".:2053", "example.org.:3053"]


@pytest.mark.parametrize("text", [". {\n", "", "x { }"], ids=repr)
def test_what_is_no_corefile_is_not_tried(text: str) -> None:
    objects = manifests("kubeadm")
    found = corefile_of(objects)
    pick(objects, "ConfigMap", "coredns")["data"]["Corefile"] = text
    with pytest.raises(CorefileError):
        make_trial(corefile_of(objects))
    assert make_trial(found).ports == [53]

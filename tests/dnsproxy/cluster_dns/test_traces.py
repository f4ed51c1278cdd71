"""Everything of ours in a cluster is found by its marks, intact or damaged."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.cluster_dns.method_choice import Method
from dnsproxy.cluster_dns.traces import ANNOTATION, Trace, find_traces
from dnsproxy.corefile.rewrite_lines import Rewrite, format_rewrites
from dnsproxy.corefile.stanza import BEGIN, END
from dnsproxy.dns.names import Reach
from tests.dnsproxy.corefile.shapes import installed
from tests.kit.manifest_cluster import NAMES, Manifest, discover, manifests, pick


def traces(objects: list[Manifest]) -> tuple[Trace, ...]:
    return find_traces(discover(objects))


def seen(trace: Trace) -> tuple[Any, ...]:
    return trace.method.value, str(trace.target), trace.zones, tuple(map(str, trace.addresses)), trace.fault


def kubeadm(corefile: str) -> list[Manifest]:
    objects = manifests("kubeadm")
    pick(objects, "ConfigMap", "coredns")["data"]["Corefile"] = corefile
    return objects


def custom(name: str, **data: str) -> list[Manifest]:
    """A cluster with coredns-custom, keys written with _ for their dot."""
    objects = [one for one in manifests(name) if one["metadata"]["name"] != "coredns-custom"]
    keys = {key.replace("_", "."): text for key, text in data.items()}
    metadata = {"name": "coredns-custom", "namespace": "kube-system"}
    return [*objects, {"kind": "ConfigMap", "metadata": metadata, "data": keys}]


def marked(*lines: str) -> str:
    return "\n".join([BEGIN, *lines, END, ""])


@pytest.mark.parametrize("name", NAMES)
def test_a_cluster_as_it_was_delivered_has_no_trace(name: str) -> None:
    assert traces(manifests(name)) == ()


@pytest.mark.parametrize(
    ("addresses", "zones", "shown"),
    [
        (["10.96.0.53"], (".",), (".",)),
        (["10.96.0.53", "2001:db8::53"], (".",), (".",)),
        (["10.96.0.53:1053"], ("example.org", "Example.net"), ("example.org.", "example.net.")),
    ],
)
def test_a_stanza_in_the_corefile_is_found(
    addresses: list[str], zones: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    stock = pick(manifests("kubeadm"), "ConfigMap", "coredns")["data"]["Corefile"]
    (trace,) = traces(kubeadm(installed(stock, *addresses, zones=zones).new))
    endpoints = tuple(f"[{one}]:53" if one.count(":") > 1 else one if ":" in one else f"{one}:53" for one in addresses)
    assert set(trace.zones) == set(shown)
    assert seen(trace)[1:2] == ("Corefile in ConfigMap kube-system/coredns",)
    assert (trace.method, seen(trace)[3], trace.fault) == (Method.COREFILE, endpoints, "")


@pytest.mark.parametrize(
    ("corefile", "fault"),
    [
        (f". {{\n {BEGIN}\n forward . 10.96.0.53 192.0.2.1\n forward . 192.0.2.1\n}}\n", "a marker stands alone"),
        (f". {{\n {END}\n {BEGIN}\n forward . 192.0.2.1\n}}\n", "the wrong order"),
        (f". {{\n {BEGIN}\n log\n {END}\n forward . 192.0.2.1\n}}\n", "enclose more or less"),
        (f". {{\n {BEGIN}\n {END}\n forward . 192.0.2.1\n}}\n", "it has no address of dnsproxy"),
        (f". {{\n {BEGIN}\n forward . 192.0.2.1\n {END}\n forward . 192.0.2.1\n}}\n", "it has no address of dnsproxy"),
        (f". {{\n {BEGIN}\n forward . 10.96.0.53\n {END}\n", "never closed"),
        (f". {{\n {BEGIN}\n forward\n {END}\n}}\n", "names no zone"),
    ],
)
def test_a_damaged_stanza_is_told_with_its_fault(corefile: str, fault: str) -> None:
    (trace,) = traces(kubeadm(corefile))
    assert fault in trace.fault
    assert trace.method is Method.COREFILE


def test_a_block_of_ours_in_an_imported_file_is_found() -> None:
    text = marked("example.org:53 example.net:53 {", "  forward . 10.96.0.53 /etc/resolv.conf", "}")
    (trace,) = traces(custom("k3s", switchback_server=text, other_server="corp.example.com {\n}\n"))
    assert seen(trace) == (
        "import",
        "switchback.server in ConfigMap kube-system/coredns-custom",
        ("example.org.", "example.net."),
        ("10.96.0.53:53",),
        "",
    )


def test_lines_of_ours_in_an_imported_file_are_found() -> None:
    text = marked("forward . 10.96.0.53 /etc/resolv.conf {", "  policy sequential", "}")
    (trace,) = traces(custom("k3s-2025", switchback_override=text))
    assert seen(trace)[1:4] == (
        "switchback.override in ConfigMap kube-system/coredns-custom",
        (".",),
        ("10.96.0.53:53",),
    )


def test_a_damaged_file_of_ours_is_told_with_its_fault() -> None:
    (trace,) = traces(custom("k3s", switchback_server=marked("example.org {", "  forward . 10.96.0.53")))
    assert "never closed" in trace.fault
    (trace,) = traces(custom("k3s", switchback_server=marked()))
    assert trace.fault == "it has no address of dnsproxy"


LINES = format_rewrites([Rewrite("app.example.org", Reach.NAME, "switchback/relay")], "cluster.local")


def test_rewrite_lines_of_ours_are_found() -> None:
    (trace,) = traces(custom("cozystack", switchback_override=marked(*LINES), other_override="rewrite name a. b.\n"))
    assert seen(trace) == (
        "override-rewrites",
        "switchback.override in ConfigMap kube-system/coredns-custom",
        (),
        (),
        "",
    )
    assert trace.rewrites is not None
    assert trace.rewrites.rewrites == (Rewrite("app.example.org", Reach.NAME, "switchback/relay"),)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (LINES[:-1], "it has 0 rewrite lines that answer a probe, not one"),
        ((*LINES, "rewrite name a.example.org b.example.org"), "line 4: 'rewrite name a.example.org b.example.org'"),
        ((*LINES, "log"), "line 4: 'log' is not a line that dnsproxy writes"),
    ],
    ids=["no probe", "another rewrite", "another plugin"],
)
def test_rewrite_lines_that_were_edited_are_a_fault(lines: tuple[str, ...], fault: str) -> None:
    (trace,) = traces(custom("cozystack", switchback_override=marked(*lines)))
    assert (trace.method, trace.rewrites) == (Method.OVERRIDE_REWRITES, None)
    assert fault in trace.fault


def test_a_forward_of_ours_beside_a_rewrite_counts_as_the_stanza() -> None:
    (trace,) = traces(custom("k3s-2025", switchback_override=marked("forward . 10.96.0.53", *LINES)))
    assert (trace.method, trace.zones) == (Method.IMPORT, (".",))


def with_stubs(annotation: str | None, stub_domains: str) -> list[Manifest]:
    objects = manifests("gke")
    config_map = pick(objects, "ConfigMap", "kube-dns")
    config_map["data"]["stubDomains"] = stub_domains
    if annotation is not None:
        config_map["metadata"]["annotations"] = {ANNOTATION: annotation}
    return objects


STUBS = '{"corp.example.net": ["198.51.100.53"], "example.org": ["10.20.0.53"], "Example.NET": ["10.20.0.53:1053"]}'


def test_stub_domains_are_ours_where_the_annotation_names_them() -> None:
    assert traces(with_stubs(None, STUBS)) == ()
    (trace,) = traces(with_stubs("example.org Example.NET", STUBS))
    assert seen(trace) == (
        "stub-domains",
        "stubDomains in ConfigMap kube-system/kube-dns",
        ("example.org.", "example.net."),
        ("10.20.0.53:53", "10.20.0.53:1053"),
        "",
    )


@pytest.mark.parametrize(
    ("annotation", "stubs", "zones"),
    [
        ("", STUBS, ()),
        ("example.org gone.example.org", STUBS, ("example.org.",)),
        ("example.org", "{", ()),
        ("example.org", "{}", ()),
    ],
)
def test_an_annotation_that_names_what_is_not_there_is_a_fault(
    annotation: str, stubs: str, zones: tuple[str, ...]
) -> None:
    (trace,) = traces(with_stubs(annotation, stubs))
    assert trace.zones == zones
    assert trace.fault


def test_what_is_no_address_or_no_zone_in_a_stub_domain_is_left_as_it_is() -> None:
    (trace,) = traces(with_stubs("a..b", '{"a..b": ["dns.example.org", "10.20.0.53"]}'))
    assert (trace.zones, list(map(str, trace.addresses))) == (("a..b",), ["10.20.0.53:53"])


def test_traces_of_several_methods_are_all_found() -> None:
    objects = custom("k3s-2025", switchback_server=marked("example.org {", "  forward . 10.96.0.53", "}"))
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = installed(data["Corefile"]).new
    assert [trace.method for trace in traces(objects)] == [Method.COREFILE, Method.IMPORT]


def test_a_long_annotation_is_not_repeated_whole() -> None:
    objects = [*manifests("gke"), *()]
    config_map = pick(objects, "ConfigMap", "kube-dns")
    config_map["metadata"]["annotations"] = {ANNOTATION: "x" * 200_000}
    (trace,) = traces(objects)
    assert "its annotation names xxx" in trace.fault
    assert len(trace.fault) < 500

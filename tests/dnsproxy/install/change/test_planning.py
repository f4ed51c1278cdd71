"""The plan for every cluster of the corpus, and refused changes.

importing.py and stub_domains.py are tested here too; check_ready in tests/dnsproxy/cluster_dns/test_own_service.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dnsproxy.cluster_dns.method_choice import Method, choose_method
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.traces import find_traces
from dnsproxy.install.change.config_map import format_diffs
from tests.dnsproxy.corefile.shapes import corefiles
from tests.kit.manifest_cluster import NAMES, Manifest, discover, manifests, pick
from tests.kit.manifest_edits import plan, plan_out, play, wanted, where_of, without_versions

WAYS = [
    pytest.param(name, method, id=f"{name}-{method.value}")
    for name in NAMES
    for method in (Method.IMPORT, Method.COREFILE, Method.STUB_DOMAINS)
    if choose_method(discover(manifests(name), where_of(name)), method).method is method
]


def test_every_method_and_every_cluster_that_can_be_written_is_among_the_ways() -> None:
    assert {way.values[1] for way in WAYS} == {Method.IMPORT, Method.COREFILE, Method.STUB_DOMAINS}
    assert {way.values[0] for way in WAYS} == set(NAMES)


@pytest.mark.parametrize(("name", "method"), WAYS)
def test_an_install_is_found_is_the_same_twice_and_goes_without_a_trace(name: str, method: Method) -> None:
    before = manifests(name)
    where = where_of(name)
    edits = plan(before, method=method, where=where)
    assert edits.changed
    assert edits.method is method
    there = play(before, edits)
    (trace,) = find_traces(discover(there, where))
    assert (trace.method, trace.fault) == (method, "")
    assert {zone.rstrip(".") for zone in trace.zones} == {zone.rstrip(".") for zone in edits.zones}
    assert [str(address) for address in trace.addresses] == ["10.96.0.53:53"]
    again = plan(there, method=method, where=where)
    assert not again.changed, format_diffs(again)
    out = plan_out(there, where)
    assert out.refusals == ()
    assert without_versions(play(there, out)) == without_versions(before)
    assert not plan_out(before, where).changed


def test_a_cluster_that_forwards_nothing_is_installed_into_and_goes_without_a_trace() -> None:
    """An air gap."""
    before = manifests("kubeadm")
    data = pick(before, "ConfigMap", "coredns")["data"]
    data["Corefile"] = re.sub(r"(?s)    forward \. .*?\}\n", "", data["Corefile"])
    assert "forward" not in data["Corefile"]
    there = play(before, plan(before))
    (trace,) = find_traces(discover(there))
    assert (trace.fault, [str(address) for address in trace.addresses]) == ("", ["10.96.0.53:53"])
    assert not plan(there).changed
    out = plan_out(there)
    assert out.refusals == ()
    assert without_versions(play(there, out)) == without_versions(before)


@pytest.mark.parametrize(("name", "method"), WAYS)
def test_a_changed_address_and_other_zones_are_followed_and_still_go_without_a_trace(name: str, method: Method) -> None:
    before = manifests(name)
    where = where_of(name)
    there = play(before, plan(before, method=method, where=where))
    other = wanted("example.net", "a.example.org", addresses=["10.96.0.54", "2001:db8::53"])
    moved = play(there, plan(there, other, method=method, where=where))
    (trace,) = find_traces(discover(moved, where))
    assert {zone.rstrip(".") for zone in trace.zones} == {"example.net", "a.example.org"}
    assert [address.host for address in trace.addresses] == ["10.96.0.54", "2001:db8::53"]
    assert without_versions(play(moved, plan_out(moved, where))) == without_versions(before)


@pytest.mark.parametrize(
    ("first", "second"),
    [(Method.IMPORT, Method.COREFILE), (Method.COREFILE, Method.IMPORT)],
    ids=["import", "corefile"],
)
@pytest.mark.parametrize("name", ["aks", "coreweave", "doks", "k3s", "k3s-2025", "kapsule"])
def test_another_method_takes_the_place_of_the_first(name: str, first: Method, second: Method) -> None:
    before = manifests(name)
    there = play(before, plan(before, method=first))
    edits = plan(there, method=second)
    assert any("removes the stanza of another method" in note for note in edits.notes)
    moved = play(there, edits)
    assert [trace.method for trace in find_traces(discover(moved))] == [second]
    assert without_versions(play(moved, plan_out(moved))) == without_versions(before)


@given(corefiles(), st.sampled_from([(), (".",), ("example.net",), ("a.example.net", ".")]))
def test_any_corefile_that_takes_it_gives_it_back(text: str, zones: tuple[str, ...]) -> None:
    before = manifests("kubeadm")
    pick(before, "ConfigMap", "coredns")["data"]["Corefile"] = text
    try:
        edits = plan(before, wanted(*zones), method=Method.COREFILE)
    except ChangeRefused as refusal:
        assume("CoreDNS loads no block with two" not in str(refusal))
        raise
    there = play(before, edits)
    assert not plan(there, wanted(*zones), method=Method.COREFILE).changed
    assert without_versions(play(there, plan_out(there))) == without_versions(before)


STUBS = st.dictionaries(st.sampled_from(["corp.example.net", "a.test", "B.Test"]), st.just(["198.51.100.53"]))


@given(STUBS, st.sampled_from([None, "", " ", "\n"]), st.sampled_from([None, 2, "\t"]), st.booleans())
def test_stub_domains_come_back_as_they_were_written(
    stubs: dict[str, list[str]], blank: str | None, indent: int | str | None, there: bool
) -> None:
    before = manifests("gke")
    data = pick(before, "ConfigMap", "kube-dns")["data"]
    data.pop("stubDomains")
    data["upstreamNameservers"] = '["198.51.100.1"]'
    if there:
        data["stubDomains"] = json.dumps(stubs, indent=indent) + "\n"
    elif blank is not None:
        data["stubDomains"] = blank
    after = play(before, plan(before))
    assert (
        json.loads(pick(after, "ConfigMap", "kube-dns")["data"]["stubDomains"]).keys()
        >= (stubs if there else {}).keys()
    )
    assert without_versions(play(after, plan_out(after))) == without_versions(before)


def custom(**keys: str) -> Callable[[list[Manifest]], None]:
    """A coredns-custom with these keys; `_` stands for the dot."""

    def change(objects: list[Manifest]) -> None:
        there = [one for one in objects if one["metadata"]["name"] == "coredns-custom"]
        if not there:
            there = [{"kind": "ConfigMap", "metadata": {"name": "coredns-custom", "namespace": "kube-system"}}]
            objects.extend(there)
        there[0].setdefault("data", {}).update({key.replace("_", "."): text for key, text in keys.items()})

    return change


def corefile(old: str, new: str) -> Callable[[list[Manifest]], None]:
    """Another Corefile: a part of it, or all of it for an empty text, written differently."""

    def change(objects: list[Manifest]) -> None:
        data = pick(objects, "ConfigMap", "coredns")["data"]
        assert old in data["Corefile"]
        data["Corefile"] = data["Corefile"].replace(old, new) if old else new

    return change


def nothing(_: list[Manifest]) -> None:
    """The cluster as it is."""


BLOCK = "example.org {\n  forward . 198.51.100.53\n}\n"
REFUSED = [
    ("k3s", nothing, [], None, "zones have to be named", "--zone"),
    ("k3s", nothing, ["."], None, "zones have to be named", "--zone"),
    (
        "k3s",
        custom(a_server=BLOCK),
        ["example.org"],
        None,
        "a.server in ConfigMap kube-system/coredns-custom, line 1",
        "second",
    ),
    (
        "k3s",
        custom(a_server=f"\n{BLOCK}"),
        ["a.example.org"],
        None,
        "line 2: a.example.org is served by",
        "block of example.org",
    ),
    (
        "k3s",
        custom(a_server="Example.ORG.:53 {\n}\n"),
        ["example.org"],
        None,
        "is served by a server block already",
        "--zone",
    ),
    ("k3s", corefile(".:53 {", ".:53 example.org {"), ["example.org"], None, "is served by a server block", "--zone"),
    ("k3s", custom(a_server="example.net {\n"), ["example.org"], None, "a.server", "never closed"),
    (
        "k3s",
        custom(a_override="hosts {\n}\n"),
        ["example.org"],
        None,
        "a.override",
        "hosts is in this server block already",
    ),
    ("k3s", custom(a_override="cache\n"), ["."], Method.COREFILE, "cache is in this server block", "remove one"),
    (
        "k3s",
        custom(switchback_server="x {\n}\n"),
        ["example.org"],
        None,
        "exists and is not dnsproxy's",
        "rename",
    ),
    ("k3s", custom(switchback_server="# BEGIN switchback\n"), ["example.org"], None, "markers are damaged", "by hand"),
    ("k3s", nothing, ["cluster.local"], None, "the cluster's own names", "--zone"),
    ("k3s", nothing, ["local"], None, "the cluster's own names", "--zone"),
    ("k3s", nothing, ["10.in-addr.arpa"], None, "the cluster's own names", "--zone"),
    ("k3s", nothing, ["svc.cluster.local"], None, "the cluster's own names", "--zone"),
    (
        "k3s",
        corefile("forward . ", "forward example.org "),
        ["example.net"],
        None,
        "no forward serves example.net",
        "--zone",
    ),
    (
        "k3s",
        corefile("import /etc/coredns/custom/*.server", ""),
        ["example.org"],
        Method.IMPORT,
        "would have no effect",
        "after a",
    ),
    ("k3s", corefile("", ""), ["example.org"], Method.COREFILE, "no server block serves .", ""),
    ("kubeadm", corefile("", ". {\n"), [], None, "line 1: the { of this server block is never closed", ""),
    ("kubeadm", corefile("forward .", "#forward ."), [], None, "", ""),
    ("kubeadm", nothing, [], Method.IMPORT, "has no import that would take a file of ours", ""),
    ("kubeadm", nothing, [], Method.STUB_DOMAINS, "reads no stub domains", ""),
    ("k3s-2025", custom(a_override="forward . 192.0.2.9\n"), [], Method.COREFILE, "a.override", "before the stanza"),
    (
        "k3s-2025",
        custom(a_override="forward . 192.0.2.9\n"),
        [],
        Method.IMPORT,
        "zones have to be named",
        "--zone",
    ),
    (
        "k3s-2025",
        custom(z_override="forward example.org 192.0.2.9\n"),
        [],
        Method.IMPORT,
        "z.override",
        "--zone example.org",
    ),
    (
        "k3s-2025",
        custom(a_override="forward example.org 192.0.2.9\n"),
        ["a.example.org"],
        Method.IMPORT,
        "a.override",
        "before this",
    ),
    ("k3s-2025", nothing, ["corp.example.net"], Method.COREFILE, "corp.server", "never reaches the block of ."),
    ("k3s-2025", nothing, ["a.corp.example.net"], Method.COREFILE, "corp.server", "never reaches the block of ."),
    ("gke", nothing, [], None, "zones have to be named", "--zone"),
    ("gke", nothing, ["corp.example.net"], None, "belongs to the stub domain corp.example.net", "198.51.100.53"),
    ("gke", nothing, ["a.corp.example.net"], None, "belongs to the stub domain corp.example.net", "--zone"),
    ("gke", nothing, ["cluster.local"], None, "is served by a server block already", "--zone"),
    ("gke-kube-dns", nothing, ["local"], None, "the cluster's own names", "--zone"),
    ("rke2", nothing, [], None, "RKE2 renders its chart again", "--method print"),
    ("openshift", nothing, [], None, "the operator undoes edits at once", "--method print"),
]


@pytest.mark.parametrize(
    ("name", "change", "zones", "method", "reason", "way_out"),
    REFUSED,
    ids=[f"{n}-{row[0]}" for n, row in enumerate(REFUSED)],
)
def test_what_would_break_the_cluster_is_refused_with_the_reason_and_the_way_out(
    name: str,
    change: Callable[[list[Manifest]], None],
    zones: Sequence[str],
    method: Method | None,
    reason: str,
    way_out: str,
) -> None:
    objects = manifests(name)
    change(objects)
    with pytest.raises(ChangeRefused) as refused:
        plan(objects, wanted(*zones), method=method, where=where_of(name))
    assert reason in str(refused.value)
    assert way_out in str(refused.value)


@pytest.mark.parametrize("key", ["stubDomains", "upstreamNameservers"])
def test_unreadable_stub_domains_are_left_alone_and_the_key_is_named(key: str) -> None:
    objects = manifests("gke")
    pick(objects, "ConfigMap", "kube-dns")["data"][key] = "["
    with pytest.raises(ChangeRefused, match=f"has an invalid {key}, so nothing is added"):
        plan(objects, wanted("example.org"))


@pytest.mark.parametrize("address", ["10.43.0.10", "10.43.0.10:5353"])
def test_the_clusters_own_address_is_a_loop(address: str) -> None:
    with pytest.raises(ChangeRefused, match="is the cluster's DNS itself"):
        plan(manifests("k3s"), wanted("example.org", addresses=[address]))


def test_the_address_of_the_cache_on_the_nodes_is_a_loop_too() -> None:
    with pytest.raises(ChangeRefused, match=r"169\.254\.20\.10 is the cluster's DNS itself"):
        plan(manifests("kops-nodelocal"), wanted("example.org", addresses=["169.254.20.10"]))


def test_zones_that_go_different_ways_today_have_blocks_of_their_own() -> None:
    objects = manifests("k3s")
    corefile("forward . ", "forward example.net 198.51.100.9\n    forward . ")(objects)
    (change,) = plan(objects, wanted("example.org", "a.example.net", "example.com")).changes
    text = change.data[0].new or ""
    assert text.count("forward . 10.96.0.53 198.51.100.9 {") == 1
    assert "a.example.net:53 {" in text
    assert "example.com:53 example.org:53 {" in text


def test_a_zone_around_one_that_goes_elsewhere_needs_that_named_too() -> None:
    objects = manifests("k3s")
    corefile("forward . ", "forward a.example.net 198.51.100.9\n    forward . ")(objects)
    with pytest.raises(ChangeRefused, match=r"add --zone a\.example\.net"):
        plan(objects, wanted("example.net"))
    assert plan(objects, wanted("example.net", "a.example.net")).changed


def test_what_others_added_to_our_own_key_stays() -> None:
    before = manifests("aks")
    there = play(before, plan(before))
    data = pick(there, "ConfigMap", "coredns-custom")["data"]
    data["switchback.server"] = "# mine\n" + data["switchback.server"] + "b.test {\n  whoami\n}\n"
    assert not plan(there).changed
    left = play(there, plan_out(there))
    assert pick(left, "ConfigMap", "coredns-custom")["data"] == {"switchback.server": "# mine\nb.test {\n  whoami\n}\n"}

"""What is installed is compared with what an install would write now."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dnsproxy.cluster_dns.found import ServiceRef
from dnsproxy.cluster_dns.method_choice import Method, choose_method
from dnsproxy.cluster_dns.traces import find_traces
from dnsproxy.install.change.config_map import Wanted
from dnsproxy.install.change.drift import Drift, find_drift
from dnsproxy.install.report.printing import print_for
from tests.dnsproxy.cluster_dns.test_traces import custom, kubeadm, marked, with_stubs
from tests.dnsproxy.corefile.shapes import address
from tests.dnsproxy.install.change.test_planning import WAYS
from tests.dnsproxy.install.report.rendered import RENDERERS
from tests.kit.manifest_cluster import Manifest, discover, manifests, pick
from tests.kit.manifest_edits import plan, play, wanted, where_of

OWN = (address("10.96.0.53"), address("fd00::53"))


def drift_of(objects: list[Manifest], where: ServiceRef | None = None, *, own: bool = True, named: str = "") -> Drift:
    found = discover(objects, where)
    endpoints = tuple(map(address, named.split()))
    drift = find_drift(found, find_traces(found), own=OWN if own else (), named=endpoints)
    assert drift is not None
    return drift


def has_none(objects: list[Manifest], where: ServiceRef | None = None, *, own: bool = True, named: str = "") -> bool:
    found = discover(objects, where)
    endpoints = tuple(map(address, named.split()))
    return find_drift(found, find_traces(found), own=OWN if own else (), named=endpoints) is None


def installed(name: str = "kubeadm", *addresses: str, method: Method | None = None) -> list[Manifest]:
    """A cluster with what an install writes, as a real one has it."""
    before = manifests(name)
    want = wanted(addresses=addresses) if addresses else None
    return play(before, plan(before, want, method=method, where=where_of(name)))


def edited(change: Callable[[str], str], objects: list[Manifest] | None = None) -> list[Manifest]:
    objects = objects or installed()
    data = pick(objects, "ConfigMap", "coredns")["data"]
    before = data["Corefile"]
    data["Corefile"] = change(before)
    assert data["Corefile"] != before
    return objects


def in_original(old: str, new: str) -> Callable[[str], str]:
    """An edit behind our stanza."""

    def change(text: str) -> str:
        ours, end, theirs = text.partition("# END switchback")
        return ours + end + theirs.replace(old, new)

    return change


def in_ours(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        ours, end, theirs = text.partition("# END switchback")
        return ours.replace(old, new) + end + theirs

    return change


@pytest.mark.parametrize(("name", "method"), WAYS)
def test_what_was_just_installed_has_no_drift(name: str, method: Method) -> None:
    objects = installed(name, method=method)
    assert has_none(objects, where_of(name))
    assert has_none(objects, where_of(name), own=False)


def test_a_cluster_without_a_stanza_has_no_drift() -> None:
    assert has_none(manifests("kubeadm"))
    assert has_none([])


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(
    ("change", "lines"),
    [
        pytest.param(
            in_original("forward . /etc/resolv.conf", "forward . 192.0.2.1"),
            ["-    forward . 10.96.0.53 /etc/resolv.conf {", "+    forward . 10.96.0.53 192.0.2.1 {"],
            id="another upstream",
        ),
        pytest.param(
            in_original("forward . /etc/resolv.conf", "forward . 192.0.2.1 192.0.2.2"),
            ["+    forward . 10.96.0.53 192.0.2.1 192.0.2.2 {"],
            id="several upstreams",
        ),
        pytest.param(
            in_original("forward . /etc/resolv.conf", "forward . tls://192.0.2.1"),
            ["+    forward . 10.96.0.53 tls://192.0.2.1 {"],
            id="an upstream over TLS",
        ),
        pytest.param(
            in_original("max_concurrent 1000", "max_concurrent 9000"),
            ["-       max_concurrent 5000", "+       max_concurrent 9000"],
            id="an option of the original",
        ),
        pytest.param(in_ours("policy sequential", "policy random"), ["+       policy sequential"], id="our policy"),
        pytest.param(in_ours("prefer_udp", ""), ["+       prefer_udp"], id="an option of ours is gone"),
        pytest.param(
            in_ours("10.96.0.53 /etc/resolv.conf", "10.96.0.53 192.0.2.9 /etc/resolv.conf"),
            ["-    forward . 10.96.0.53 192.0.2.9 /etc/resolv.conf {"],
            id="an upstream between ours and theirs",
        ),
        pytest.param(
            in_ours("/etc/resolv.conf", "192.0.2.9"),
            ["+    forward . 10.96.0.53 /etc/resolv.conf {"],
            id="our fallback",
        ),
    ],
)
def test_an_edit_of_either_forward_is_drift_and_its_diff_is_that_of_an_install(
    change: Callable[[str], str], lines: list[str], own: bool
) -> None:
    drift = drift_of(edited(change), own=own or "192.0.2.9" in lines[0])
    assert (str(drift.target), drift.refusal) == ("Corefile in ConfigMap kube-system/coredns", "")
    assert set(lines) <= set(drift.diff.splitlines()), drift.diff


def test_an_old_upstream_is_not_an_address_of_dnsproxy() -> None:
    objects = edited(in_original("forward . /etc/resolv.conf", "forward . 192.0.2.2 192.0.2.3"))
    edited(in_ours("/etc/resolv.conf", "192.0.2.1 192.0.2.2"), objects)
    (trace,) = find_traces(discover(objects))
    assert [str(one) for one in trace.addresses] == ["10.96.0.53:53"]


@pytest.mark.parametrize("addresses", [("10.96.0.53",), ("10.96.0.53", "10.96.0.54")])
@pytest.mark.parametrize("name", ["kubeadm", "k3s"])
def test_an_upstream_that_was_removed_from_the_original_is_drift_and_no_address_of_dnsproxy(
    name: str, addresses: tuple[str, ...]
) -> None:
    before = manifests(name)
    data = pick(before, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace("forward . /etc/resolv.conf", "forward . 192.0.2.1 192.0.2.2")
    zones = () if name == "kubeadm" else ("example.org",)
    objects = play(before, plan(before, wanted(*zones, addresses=addresses)))
    assert has_none(objects, own=False)
    edited(lambda text: "192.0.2.2".join(text.rsplit("192.0.2.1 192.0.2.2", 1)), objects)
    (trace,) = find_traces(discover(objects))
    assert [one.host for one in trace.addresses] == list(addresses)
    assert drift_of(objects, own=False).diff


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(in_ours("    forward . 10.96.0.53", "  forward  .  10.96.0.53"), id="spaces"),
        pytest.param(in_ours("policy sequential", "policy sequential # a note"), id="a comment"),
        pytest.param(in_original("errors", "errors # a note"), id="a comment of others"),
        pytest.param(in_original("cache 30", "cache 60"), id="another plugin"),
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="line ends"),
    ],
)
def test_what_coredns_reads_alike_and_other_plugins_are_no_drift(change: Callable[[str], str]) -> None:
    objects = installed()
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = change(data["Corefile"])
    assert has_none(objects)


def test_both_addresses_of_the_service_are_drift_unless_a_user_names_both() -> None:
    objects = installed("kubeadm", "10.96.0.53", "fd00::53")
    assert "+    forward . 10.96.0.53 /etc/resolv.conf {" in drift_of(objects).diff.splitlines()
    assert has_none(objects, named="10.96.0.53 fd00::53")
    assert has_none(objects, own=False)


def test_an_address_that_is_not_the_services_was_given_by_a_user() -> None:
    assert has_none(installed("kubeadm", "192.0.2.7"))


def test_a_newer_coredns_that_takes_failover_is_drift() -> None:
    objects = installed()
    container = pick(objects, "Deployment", "coredns")["spec"]["template"]["spec"]["containers"][0]
    container["image"] = container["image"].rpartition(":")[0] + ":v1.14.7"
    assert "+       failover SERVFAIL REFUSED" in drift_of(objects).diff.splitlines()


@pytest.mark.parametrize(
    ("corefile", "reason"),
    [
        (f". {{\n {marked('forward . 10.96.0.53 192.0.2.1')}\n}}\n", "the server block of . has no forward"),
        (f". {{\n {marked('forward . 10.96.0.53 192.0.2.1')} import other\n forward\n}}\n", "names no zone"),
    ],
)
def test_a_stanza_whose_original_is_gone_or_unreadable_is_drift_with_the_refusal(corefile: str, reason: str) -> None:
    drift = drift_of(kubeadm(corefile))
    assert reason in drift.refusal
    assert drift.diff == ""


def test_a_changed_block_of_ours_in_an_imported_file_is_drift() -> None:
    objects = installed("k3s")
    data = pick(objects, "ConfigMap", "coredns-custom")["data"]
    assert has_none(objects)
    data["switchback.server"] = data["switchback.server"].replace("policy sequential", "policy random")
    assert "+        policy sequential" in drift_of(objects).diff.splitlines()


def test_a_stub_domain_with_another_server_is_drift() -> None:
    assert has_none(with_stubs("example.org", '{ "example.org" : ["10.96.0.53"] }'), own=False)
    assert drift_of(with_stubs("example.org", '{"example.org": ["10.96.0.53", "fd00::53"]}')).diff


def test_a_file_at_a_place_that_an_install_no_longer_writes_is_drift() -> None:
    text = marked("forward . 10.96.0.53 /etc/resolv.conf")
    drift = drift_of(custom("k3s", switchback_override=text))
    assert "zones have to be named" in drift.refusal


def test_a_damaged_stanza_is_left_to_its_fault() -> None:
    assert has_none(edited(lambda text: text.replace("# END", "# END of")))


@pytest.mark.parametrize("name", [name for name in RENDERERS if name != "openshift"])
@pytest.mark.parametrize("zones", [(), ("example.org",)], ids=["every name", "a zone"])
def test_a_corefile_that_an_owner_renders_from_a_printed_text_has_no_drift(name: str, zones: tuple[str, ...]) -> None:
    objects = manifests(name)
    found = discover(objects)
    server = found.asked_by_pods
    assert server is not None
    assert server.corefile is not None
    printed = print_for(found, choose_method(found, Method.PRINT), Wanted(OWN[:1], zones))
    config_map = pick(objects, "ConfigMap", server.corefile.source.name)
    config_map["data"][server.corefile.key] = RENDERERS[name](printed, server.corefile.text)
    assert has_none(objects)

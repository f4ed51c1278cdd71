"""The block and the forward that serve a zone, imported files included."""

from __future__ import annotations

import pytest

from dnsproxy.cluster_dns.method_choice import ConfigMapKey
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.routes import Routes, find_routes
from tests.dnsproxy.install.change.test_trial_corefile import corefile_of
from tests.kit.manifest_cluster import manifests, pick

FOLDER = "/etc/coredns/custom"


def routes(root: str, *, key: str = "switchback.override", **files: str) -> Routes:
    """The routes of k3s with this text in its block of `.` and these files, `_` for the dot."""
    objects = manifests("k3s-2025")
    text = f".:53 {{\n{root}\n}}\nimport {FOLDER}/*.server\n"
    pick(objects, "ConfigMap", "coredns")["data"]["Corefile"] = text
    custom = pick(objects, "ConfigMap", "coredns-custom")
    custom["data"] = {name.replace("_", "."): value for name, value in files.items()}
    found = corefile_of(objects)
    return find_routes(found, ConfigMapKey(found.source, key), f"{FOLDER}/{key}")


def zones(found: Routes) -> list[str]:
    return [route.forward.zone_text for route in found.forwards()]


def test_imported_forwards_are_asked_where_they_are_imported() -> None:
    found = routes(
        f"forward a.test 192.0.2.1\nimport {FOLDER}/*.override\nforward . 192.0.2.1",
        b_override="forward b.test 192.0.2.1\n",
        a_override="forward aa.test 192.0.2.1\nforward ab.test 192.0.2.1\n",
        c_other="forward c.test 192.0.2.1\n",
    )
    assert zones(found) == ["a.test", "aa.test", "ab.test", "b.test", "."]
    imported = [route.placed.imported for route in found.forwards()]
    assert imported == [False, True, True, True, False]
    indexes = {route.placed.index for route in found.forwards() if route.placed.imported}
    assert indexes == {found.forwards()[1].placed.index}


@pytest.mark.parametrize(
    ("key", "before"),
    [("0.override", ["a.test"]), ("b0.override", ["a.test", "b.test"]), ("z.override", ["a.test", "b.test", "c.test"])],
)
def test_our_own_file_has_its_turn_by_its_name(key: str, before: list[str]) -> None:
    found = routes(
        f"forward a.test 192.0.2.1\nimport {FOLDER}/*.override\nforward . 192.0.2.1",
        key=key,
        b_override="forward b.test 192.0.2.1\n",
        c_override="forward c.test 192.0.2.1\n",
    )
    assert [route.forward.zone_text for route in found.before_ours()] == before
    behind = [route.forward.zone_text for route in found.behind_ours()]
    assert before + behind == ["a.test", "b.test", "c.test", "."]


def test_what_is_ours_is_no_route() -> None:
    ours = "# BEGIN switchback\nforward . 10.96.0.53\n# END switchback\n"
    stanza = f"  {ours}  forward . 192.0.2.1\n  import {FOLDER}/*.override"
    found = routes(stanza, switchback_override=ours, x_server="# BEGIN switchback\nx.test {\n}\n# END switchback\n")
    assert [route.forward.upstreams for route in found.forwards()] == [("192.0.2.1",)]
    assert [served.zone for served in found.keys] == ["."]


def test_each_place_is_a_line_of_the_file_as_it_is() -> None:
    """The stanza counts in the Corefile, and in no file that it imports."""
    ours = "# BEGIN switchback\nforward . 10.96.0.53\n# END switchback\n"
    stanza = f"import {FOLDER}/*.override\n{ours}forward . 192.0.2.1"
    files = {"b_override": "".join(f"forward {name}.test 192.0.2.1\n" for name in "abcdefg")}
    places = [route.placed.place for route in routes(stanza, **files).forwards()]
    imported = [f"b.override in ConfigMap kube-system/coredns-custom, line {line}" for line in range(1, 8)]
    assert places == [*imported, "Corefile in ConfigMap kube-system/coredns, line 6"]


def test_keys_of_imported_blocks_count_on_the_same_port_and_transport() -> None:
    files = {"a_server": "a.test b.test:5353 tls://c.test {\n}\n", "b_server": "{$X} D.Test.:53 {\n}\n"}
    found = routes("forward . 192.0.2.1", **files)
    assert [(served.zone, served.imported) for served in found.keys] == [
        (".", False),
        ("a.test.", True),
        ("d.test.", True),
    ]
    assert found.keys[1].place == "a.server in ConfigMap kube-system/coredns-custom, line 1"


def test_files_that_import_files_are_followed_and_circles_end() -> None:
    found = routes(
        f"import {FOLDER}/*.override\nforward . 192.0.2.1",
        a_override="import b.more\n",
        b_more="forward b.test 192.0.2.1\nimport a.override\n",
    )
    assert zones(found)[-1] == "."
    assert zones(found)[0] == "b.test"
    assert len(zones(found)) < 32


@pytest.mark.parametrize(
    ("root", "files", "reason"),
    [
        ("forward . 192.0.2.1", {"a_server": "a.test {\n"}, "a.server in ConfigMap kube-system/coredns-custom, line 1"),
        ("forward .", {}, "names no zone or no upstream"),
        ("forward . 192.0.2.1\ncache\ncache", {}, "cache is in this server block already"),
        (f"import {FOLDER}/*.override", {"a_override": "log {\n"}, "a.override"),
        (f"import {FOLDER}/*.override", {"a_override": "log\n}\nexample.org {\n"}, "braces do not match"),
        ("}\n.:53 {", {}, "several server blocks serve ."),
        ("{", {}, "Corefile in ConfigMap kube-system/coredns, line"),
    ],
)
def test_what_coredns_would_not_load_is_refused_with_its_place(root: str, files: dict[str, str], reason: str) -> None:
    with pytest.raises(ChangeRefused) as refused:
        routes(root, **files).forwards()
    assert reason in str(refused.value)

"""The imports of a Corefile: the files they include, and where a file of ours would get queries."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from dnsproxy.cluster_dns.found import FoundCorefile, Hook
from dnsproxy.corefile.model import Scope
from tests.kit.manifest_cluster import Manifest, discover, faults_of, manifests, pick

CUSTOM = "/etc/coredns/custom"
FORWARD = "forward . /etc/resolv.conf"


def cluster(corefile: str, custom: Mapping[str, str] | None = None, **source: Any) -> list[Manifest]:
    """A k3s cluster with this Corefile, and coredns-custom with these keys; None: there is none."""
    objects = manifests("k3s")
    pick(objects, "ConfigMap", "coredns")["data"]["Corefile"] = corefile
    volume = pick(objects, "Deployment", "coredns")["spec"]["template"]["spec"]["volumes"][1]
    volume["configMap"] |= source
    if custom is not None:
        metadata = {"name": "coredns-custom", "namespace": "kube-system", "resourceVersion": "7"}
        objects.append({"kind": "ConfigMap", "metadata": metadata, "data": dict(custom)})
    return objects


def read(objects: list[Manifest]) -> FoundCorefile:
    found = discover(objects)
    assert found.faults == (), faults_of(found)
    assert found.server is not None
    assert found.server.corefile is not None
    return found.server.corefile


def hook(corefile: str, custom: Mapping[str, str] | None = None, **source: Any) -> Hook:
    (found,) = read(cluster(corefile, custom, **source)).hooks
    return found


def test_a_hook_between_the_blocks_takes_whole_blocks() -> None:
    found = hook(f".:53 {{\n {FORWARD}\n}}\nimport custom/*.server\n")
    assert (found.scope, found.path, found.line) == (Scope.BLOCKS, f"{CUSTOM}/*.server", 4)
    assert (found.trouble, found.takes_forward) == ("", True)
    assert found.key("switchback") == "switchback.server"
    assert found.source is not None
    assert (str(found.source), found.source.exists, found.source.optional) == (
        "kube-system/coredns-custom",
        False,
        True,
    )
    assert found.source.resource_version == ""


@pytest.mark.parametrize(
    ("lines", "takes_forward"),
    [
        ([FORWARD, "import custom/*.override"], False),
        (["import custom/*.override", FORWARD], True),
        (["forward . 192.0.2.1", "import custom/*.override", FORWARD], False),
        (["forward corp.example.org 192.0.2.1", "import custom/*.override", FORWARD], True),
        (["forward . 192.0.2.1 {", "except example.org", "}", "import custom/*.override", FORWARD], False),
        (["forward {$ZONE} 192.0.2.1", "import custom/*.override"], False),
        (["forward ..example.org 192.0.2.1", "import custom/*.override"], False),
        (["import custom/*.override"], True),
        (["(x)", "import custom/*.override"], True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_a_hook_among_plugins_is_asked_only_before_a_forward_that_takes_all(
    lines: list[str], takes_forward: bool
) -> None:
    if lines[0] == "(x)":
        text = f"(x) {{\n {FORWARD}\n}}\n. {{\n import custom/*.override\n import x\n}}\n"
    else:
        text = ".:53 {\n " + "\n ".join(lines) + "\n}\n"
    found = hook(text)
    assert (found.scope, found.takes_forward) == (Scope.ROOT_PLUGINS, takes_forward)


def test_a_forward_out_of_a_snippet_counts_where_it_is_imported() -> None:
    text = f"(x) {{\n {FORWARD}\n}}\n. {{\n import x\n import custom/*.override\n}}\n"
    assert not hook(text).takes_forward


@pytest.mark.parametrize(
    ("pattern", "trouble"),
    [
        ("custom/extra.server", "it names one file"),
        ("custom/a?.server", "it names one file"),
        ("custom/a?*.server", "its pattern is more than one *"),
        ("cust*/x.server", "its folder has a wildcard"),
        ("/srv/dns/*.server", "no ConfigMap is mounted at /srv/dns"),
        ("{$WHERE}/*.server", "an environment variable"),
        ("custom/deep/*.server", "shows ConfigMap coredns-custom with chosen keys only"),
        ("*.server", "shows ConfigMap coredns with chosen keys only"),
        ("custom/\\x*.server", "its pattern is more than one *"),
    ],
)
def test_a_hook_that_takes_no_file_of_ours_says_why(pattern: str, trouble: str) -> None:
    found = hook(f".:53 {{\n {FORWARD}\n}}\nimport {pattern}\n")
    assert trouble in found.trouble
    assert found.source is None


def test_a_hook_in_the_block_of_another_zone_is_not_ours() -> None:
    text = f".:53 {{\n {FORWARD}\n}}\ncorp.example.org {{\n import custom/*.override\n}}\n"
    found = hook(text)
    assert found.scope is Scope.OTHER
    assert "another zone" in found.trouble


def test_chosen_keys_take_no_other() -> None:
    items = [{"key": "a.server", "path": "a.server"}]
    found = hook(f".:53 {{\n {FORWARD}\n}}\nimport custom/*.server\n", {"a.server": "# a\n"}, items=items)
    assert "chosen keys only" in found.trouble


def test_an_immutable_config_map_takes_nothing() -> None:
    objects = cluster(f".:53 {{\n {FORWARD}\n}}\nimport custom/*.server\n", {})
    objects[-1]["immutable"] = True
    (found,) = read(objects).hooks
    assert found.trouble == "ConfigMap kube-system/coredns-custom is immutable"


def test_a_file_that_has_a_forward_for_all_leaves_no_room() -> None:
    text = f".:53 {{\n import custom/*.override\n {FORWARD}\n}}\n"
    assert hook(text, {"log.override": "log\n"}).trouble == ""
    assert hook(text, {"x.override": "forward corp.example.org 192.0.2.1\n"}).trouble == ""
    assert hook(text, {"x.override": "forward . 192.0.2.1\n"}).trouble == "x.override has a forward for . already"
    ours = "# BEGIN switchback: managed\nforward . 10.96.0.53 /etc/resolv.conf\n# END switchback\n"
    assert hook(text, {"switchback.override": ours}).trouble == ""


def test_imported_files_come_in_the_order_of_their_names() -> None:
    custom = {"b.server": "b.example.org {\n}\n", "a.server": "a.example.org {\n}\n", "note": "?", "c.serverx": "{"}
    found = read(cluster(f".:53 {{\n {FORWARD}\n}}\nimport custom/*.server\n", custom))
    assert [(file.path, file.key, file.scope) for file in found.files] == [
        (f"{CUSTOM}/a.server", "a.server", Scope.BLOCKS),
        (f"{CUSTOM}/b.server", "b.server", Scope.BLOCKS),
    ]
    assert str(found.files[0].source) == "kube-system/coredns-custom"
    assert found.files[0].source.resource_version == "7"


def test_imports_of_imported_files_are_followed_from_where_they_stand() -> None:
    custom = {"a.server": "import more.x\n", "more.x": "m.example.org {\n import deep.y\n}\n", "deep.y": "log\n"}
    found = read(cluster(f".:53 {{\n {FORWARD}\n}}\nimport custom/*.server\n", custom))
    assert [file.key for file in found.files] == ["a.server", "more.x", "deep.y"]
    assert [file.scope for file in found.files] == [Scope.BLOCKS, Scope.BLOCKS, Scope.OTHER]
    assert [one.pattern for one in found.hooks] == ["custom/*.server", "more.x", "deep.y"]


def test_a_snippet_is_no_file_wherever_it_is_imported() -> None:
    text = f"(common) {{\n log\n}}\n.:53 {{\n import common\n import custom/*.override\n {FORWARD}\n}}\n"
    found = read(cluster(text, {"a.override": "import common\n"}))
    assert [one.pattern for one in found.hooks] == ["custom/*.override"]


@pytest.mark.parametrize(
    "custom",
    [
        {"a.server": "import *.server\n"},
        {"a.server": "import b.server\n", "b.server": "import a.server\n"},
        {"a.server": "import ../Corefile\n"},
    ],
    ids=str,
)
def test_imports_that_go_round_end_in_a_fault(custom: Mapping[str, str]) -> None:
    found = discover(cluster(f".:53 {{\n {FORWARD}\n}}\nimport custom/*.server\n", custom))
    assert any(text.startswith("circular imports: ") for text in faults_of(found)), faults_of(found)


def test_imports_that_double_with_every_file_are_read_once() -> None:
    names = [f"f{number}.server" for number in range(40)]
    custom = {name: f"import {after}\nimport {after}\n" for name, after in pairwise(names)}
    custom[names[-1]] = "x.example.org {\n}\n"
    found = read(cluster(f".:53 {{\n {FORWARD}\n}}\nimport custom/f0.server\n", custom))
    assert len(found.files) == 40


def test_an_imported_file_that_is_no_corefile_is_a_fault_with_its_line() -> None:
    objects = cluster(f".:53 {{\n {FORWARD}\n}}\nimport custom/*.server\n", {"a.server": "\na.example.org {\n"})
    assert faults_of(discover(objects)) == [
        "a.server in ConfigMap kube-system/coredns-custom, line 2: the { of this server block is never closed"
    ]
    text = f".:53 {{\n import custom/*.override\n {FORWARD}\n}}\n"
    broken = discover(cluster(text, {"a.override": "log\n}\n"}))
    assert faults_of(broken) == [], "a brace that closes the root block is legal, and CoreDNS reads on"


def test_binary_data_is_not_read() -> None:
    objects = cluster(f".:53 {{\n {FORWARD}\n}}\nimport custom/*.server\n", {})
    objects[-1] |= {"data": None, "binaryData": {"a.server": "eA=="}}
    assert faults_of(discover(objects)) == [
        "ConfigMap kube-system/coredns-custom has a.server as binaryData, which is not read"
    ]


def test_a_single_file_that_is_mounted_into_the_folder_is_imported_too() -> None:
    objects = cluster(f".:53 {{\n {FORWARD}\n}}\nimport custom/*.server\n", {"a.server": "# a\n"})
    pod = pick(objects, "Deployment", "coredns")["spec"]["template"]["spec"]
    pod["containers"][0]["volumeMounts"].append({"name": "x", "mountPath": f"{CUSTOM}/b.server", "subPath": "b"})
    pod["volumes"].append({"name": "x", "configMap": {"name": "extra"}})
    metadata = {"name": "extra", "namespace": "kube-system"}
    objects.append({"kind": "ConfigMap", "metadata": metadata, "data": {"b": "# b\n", "c.server": "# c\n"}})
    assert [(file.key, str(file.source)) for file in read(objects).files] == [
        ("a.server", "kube-system/coredns-custom"),
        ("b", "kube-system/extra"),
    ]


def test_the_reload_plugin_may_come_from_an_import() -> None:
    text = f".:53 {{\n {FORWARD}\n import custom/*.override\n}}\n"
    assert not read(cluster(text, {"a.override": "log\n"})).reloads
    assert read(cluster(text, {"a.override": "reload 5s\n"})).reloads
    assert read(cluster(f".:53 {{\n {FORWARD}\n reload\n}}\n")).reloads


def test_the_port_of_the_root_block_is_told() -> None:
    assert read(cluster(f".:8053 {{\n {FORWARD}\n}}\n")).root_port == 8053
    assert read(cluster(f".:8053 {{\n {FORWARD}\n}}\n. {{\n {FORWARD}\n}}\n")).root_port == 53
    assert read(cluster("import custom/*.server\n")).root_port == 53


def test_a_long_import_is_not_repeated_whole() -> None:
    found = hook(f".:53 {{\n {FORWARD}\n}}\nimport {'x' * 200_000}/*.server\n")
    assert len(found.pattern) < 400
    assert len(found.trouble) < 500
    assert found.path == f"/etc/coredns/{'x' * 200_000}/*.server", "what is compared is whole"

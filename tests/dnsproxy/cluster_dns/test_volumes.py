from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dnsproxy.cluster_dns.volumes import Mount, mount_above, mounts_in
from sidecar.kubernetes.structs.metadata import Metadata
from sidecar.kubernetes.structs.workload import ConfigMap, Container, PodSpec


def mount(path: str, mounts: list[dict[str, Any]], *volumes: dict[str, Any]) -> Mount | None:
    pod, container = parts(mounts, *volumes)
    return mount_above(path, pod, container)


def parts(mounts: list[dict[str, Any]], *volumes: dict[str, Any]) -> tuple[PodSpec, Container]:
    container = msgspec.convert({"name": "dns", "volumeMounts": mounts}, Container)
    return msgspec.convert({"volumes": list(volumes)}, PodSpec), container


def config_map(*keys: str) -> ConfigMap:
    return ConfigMap(Metadata("a"), dict.fromkeys(keys, "x"))


def at(path: str, name: str = "v", **fields: Any) -> dict[str, Any]:
    return {"name": name, "mountPath": path, **fields}


A: dict[str, Any] = {"name": "v", "configMap": {"name": "a"}}
CHOSEN = {"name": "v", "configMap": {"name": "a", "items": [{"key": "Corefile", "path": "sub/./Corefile.base"}]}}


def keys(found: Mount | None, *keys: str) -> dict[str, str]:
    assert found is not None
    (backing,) = found.backings
    return dict(found.keys(backing, config_map(*keys)))


def test_every_key_is_a_file_below_the_mount() -> None:
    found = mount("/etc/coredns/Corefile", [at("/etc/coredns/")], A)
    assert keys(found, "Corefile", "x.server") == {
        "/etc/coredns/Corefile": "Corefile",
        "/etc/coredns/x.server": "x.server",
    }


def test_chosen_keys_have_paths_of_their_own() -> None:
    found = mount("/etc/coredns/sub/Corefile.base", [at("/etc/coredns")], CHOSEN)
    assert keys(found, "Corefile", "other") == {"/etc/coredns/sub/Corefile.base": "Corefile"}
    assert keys(found, "other") == {}


def test_a_sub_path_shows_one_file_or_one_folder() -> None:
    file = mount("/etc/coredns/Corefile", [at("/etc/coredns/Corefile", subPath="Corefile")], A)
    assert keys(file, "Corefile", "other") == {"/etc/coredns/Corefile": "Corefile"}
    folder = mount("/etc/dns/Corefile.base", [at("/etc/dns", subPath="sub")], CHOSEN)
    assert keys(folder, "Corefile") == {"/etc/dns/Corefile.base": "Corefile"}
    assert keys(mount("/etc/dns/x", [at("/etc/dns", subPath="other")], CHOSEN), "Corefile") == {}


def test_the_deepest_mount_has_the_path() -> None:
    mounts = [at("/etc"), at("/etc/coredns", "w"), at("/etc/coredns/custom/deep", "x")]
    volumes = [A, {"name": "w", "configMap": {"name": "b"}}, {"name": "x", "configMap": {"name": "c"}}]
    named = {path: found.backings[0].name for path in PATHS if (found := mount(path, mounts, *volumes))}
    assert named == {"/etc/Corefile": "a", "/etc/coredns/custom": "b", "/etc/coredns": "b", "/etc/corednsx": "a"}


PATHS = ["/etc/Corefile", "/etc/coredns/custom", "/etc/coredns", "/etc/corednsx", "/Corefile"]


def test_a_mount_at_the_root_is_above_all() -> None:
    assert keys(mount("/Corefile", [at("/")], A), "Corefile") == {"/Corefile": "Corefile"}


@pytest.mark.parametrize(
    ("volume", "others"),
    [
        ({"name": "v", "secret": {"secretName": "s"}}, ("a Secret",)),
        ({"name": "v", "hostPath": {"path": "/etc"}}, ("a folder of the node",)),
        ({"name": "v", "emptyDir": {}}, ("an emptyDir that another container fills",)),
        ({"name": "v", "csi": {}}, ("a volume of another kind",)),
        ({"name": "v", "projected": {"sources": None}}, ("a volume of another kind",)),
        ({"name": "v", "projected": {"sources": [{"secret": {}}]}}, ("a projected source other than a ConfigMap",)),
        ({"name": "v", "configMap": {}}, ()),
    ],
    ids=str,
)
def test_what_is_no_config_map_is_named(volume: dict[str, Any], others: tuple[str, ...]) -> None:
    found = mount("/etc/coredns/Corefile", [at("/etc/coredns")], volume)
    assert found is not None
    assert (found.backings, found.others) == ((), others)


def test_a_projected_volume_has_several_config_maps() -> None:
    sources = [
        {"configMap": {"name": "a", "items": [{"key": "Corefile", "path": "Corefile"}]}},
        {"serviceAccountToken": {"path": "token"}},
        {"configMap": {"name": "b", "optional": True}},
    ]
    found = mount("/etc/coredns", [at("/etc/coredns")], {"name": "v", "projected": {"sources": sources}})
    assert found is not None
    assert [(one.name, one.optional) for one in found.backings] == [("a", False), ("b", True)]
    assert [found.takes_keys(one, "/etc/coredns") for one in found.backings] == [False, True]


def test_a_sub_path_out_of_a_variable_is_not_known() -> None:
    found = mount("/etc/coredns/Corefile", [at("/etc/coredns", subPathExpr="$(NODE)")], A)
    assert found is not None
    assert (found.backings, found.others) == ((), ("a subPathExpr",))


def test_a_mount_of_no_volume_is_none() -> None:
    assert mount("/etc/coredns/Corefile", [at("/etc/coredns", "missing")], A) is None
    assert mount("/etc/coredns/Corefile", []) is None


def test_a_key_that_is_added_is_seen_where_every_key_is() -> None:
    whole = mount("/etc/c", [at("/etc/c")], A)
    chosen = mount("/etc/c", [at("/etc/c")], CHOSEN)
    part = mount("/etc/c", [at("/etc/c", subPath="x")], A)
    below = mount("/etc/c/deep", [at("/etc/c")], A)
    for found, folder, takes in ((whole, "/etc/c", True), (chosen, "/etc/c", False), (part, "/etc/c", False)):
        assert found is not None
        assert found.takes_keys(found.backings[0], folder) is takes
    assert below is not None
    assert not below.takes_keys(below.backings[0], "/etc/c/deep")


def test_single_files_are_mounted_into_a_folder_too() -> None:
    mounts = [at("/etc/c"), at("/etc/c/x.server", "w", subPath="x"), at("/etc/c/d/y.server", "w", subPath="y")]
    pod, container = parts(mounts, A, {"name": "w", "configMap": {"name": "b"}})
    assert [found.path for found in mounts_in("/etc/c", pod, container)] == ["/etc/c", "/etc/c/x.server"]
    assert mounts_in("/srv", pod, container) == []

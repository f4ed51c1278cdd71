"""Files in a container: those that a pattern of CoreDNS matches, and the place of a new one."""

from __future__ import annotations

import pytest

from dnsproxy.cluster_dns.pod_files import PodFiles
from dnsproxy.cluster_dns.requests import CONFIG_MAP, Request, Requests
from sidecar.kubernetes.structs.metadata import Metadata
from sidecar.kubernetes.structs.workload import (
    ConfigMap,
    ConfigMapSource,
    Container,
    KeyToPath,
    PodSpec,
    Projected,
    Projection,
    Volume,
    VolumeMount,
)

KEYS = ["a.server", "b.server", ".server", "a.servers", "a.b.server", "aserver", "Corefile", "..data"]


def files(config_map: ConfigMap | None, *, answered: bool = True) -> PodFiles:
    answers = {Request(CONFIG_MAP, "dns", "c"): config_map} if answered else {}
    container = Container("coredns", volume_mounts=(VolumeMount("v", "/etc/c"),))
    pod = PodSpec((container,), (Volume("v", ConfigMapSource("c")),))
    return PodFiles(Requests(answers), "Deployment dns/coredns", "dns", pod, container)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("/etc/c/*.server", [".server", "a.b.server", "a.server", "b.server"]),
        ("/etc/c/a*.server", ["a.b.server", "a.server"]),
        ("/etc/c/?.server", ["a.server", "b.server"]),
        ("/etc/c/a?*", ["a.b.server", "a.server", "a.servers", "aserver"]),
        ("/etc/c/a.server", ["a.server"]),
        ("/etc/c/\\a.server", ["a.server"]),
        ("/etc/c/a\\*.server", []),
        ("/etc/c/(a|b).server", []),
        ("/etc/c/*", [*sorted(KEYS)]),
        ("/etc/*/a.server", []),
        ("/etc/d/*.server", []),
        ("/etc/c", []),
    ],
)
def test_a_pattern_matches_as_gos_filepath_does(pattern: str, names: list[str]) -> None:
    found = files(ConfigMap(Metadata("c"), dict.fromkeys(KEYS, "#"))).match(pattern)
    assert [file.path for file in found] == [f"/etc/c/{name}" for name in names]


def test_what_was_not_read_yet_has_no_files_and_no_place() -> None:
    unread = files(None, answered=False)
    assert unread.match("/etc/c/*.server") == []
    assert unread.read("/etc/c/Corefile") is None
    assert unread.place_for("/etc/c/*.server") == (None, "ConfigMap c was not read")
    assert not unread.requests.faults


def test_a_config_map_that_is_gone_is_a_fault_and_still_a_place() -> None:
    gone = files(None)
    assert gone.match("/etc/c/*.server") == []
    source, trouble = gone.place_for("/etc/c/*.server")
    assert source is not None
    assert (str(source), source.exists, trouble) == ("dns/c", False, "")
    assert [str(fault) for fault in gone.requests.faults] == [
        "ConfigMap dns/c, which Deployment dns/coredns mounts, does not exist"
    ]


def projected(*sources: ConfigMapSource, **config_maps: dict[str, str]) -> PodFiles:
    """A container with one projected volume; the kubelet writes its sources in their order."""
    answers = {Request(CONFIG_MAP, "dns", name): ConfigMap(Metadata(name), data) for name, data in config_maps.items()}
    container = Container("coredns", volume_mounts=(VolumeMount("v", "/etc/c"),))
    volume = Volume("v", projected=Projected(tuple(Projection(source) for source in sources)))
    return PodFiles(Requests(answers), "Deployment dns/coredns", "dns", PodSpec((container,), (volume,)), container)


def test_of_two_projected_config_maps_with_one_key_the_last_is_the_one_that_the_container_sees() -> None:
    first, last = ConfigMapSource("first"), ConfigMapSource("last")
    files = projected(first, last, first={"Corefile": "old", "a.server": "one"}, last={"Corefile": "new"})
    file = files.read("/etc/c/Corefile")
    assert file is not None
    assert (str(file.source), file.text) == ("dns/last", "new")
    assert [(one.path, str(one.source), one.text) for one in files.match("/etc/c/*")] == [
        ("/etc/c/Corefile", "dns/last", "new"),
        ("/etc/c/a.server", "dns/first", "one"),
    ]
    assert str(files.place_for("/etc/c/*.server")[0]) == "dns/last"


def test_a_later_source_with_chosen_keys_hides_only_these() -> None:
    chosen = ConfigMapSource("last", items=(KeyToPath("theirs", "Corefile"),))
    files = projected(ConfigMapSource("first"), chosen, first={"Corefile": "old"}, last={"Corefile": "x"})
    file = files.read("/etc/c/Corefile")
    assert file is not None
    assert str(file.source) == "dns/first"
    assert str(files.place_for("/etc/c/*.server")[0]) == "dns/first"

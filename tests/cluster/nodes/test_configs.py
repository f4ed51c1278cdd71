"""The configuration files and command lines of a node's programs."""

from __future__ import annotations

import json
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.addresses import IPV4, IPV6, Addresses
from tests.cluster.nodes.commands import programs
from tests.cluster.nodes.configs import (
    MODES,
    Place,
    files,
    format_masquerade,
    format_proxy,
    format_public_dns,
)
from tests.cluster.nodes.node import PROGRAMS
from tests.cluster.nodes.registry import REGISTRY
from tests.kit.programs import program

FOLDER = "/folder"
FIRST = Place(FOLDER, 1, (IPV4,), cgroup="/group", token="secret")
SECOND = replace(FIRST, number=2, folder="/other", first_folder=FOLDER)
FIND = {name: f"/bin/{name}" for name in (*PROGRAMS, "python")}
FAMILIES = pytest.mark.parametrize("at", [(IPV4,), (IPV6,), (IPV4, IPV6)], ids=["IPv4", "IPv6", "dual"])
PLACES = pytest.mark.parametrize("place", [FIRST, SECOND], ids=["first", "second"])


@PLACES
@FAMILIES
def test_every_file_is_what_its_reader_reads(place: Place, at: tuple[Addresses, ...]) -> None:
    written = files(replace(place, at=at))
    tomllib.loads(written["containerd.toml"])
    json.loads(written["cni/10-pods.conflist"])
    for name in ("kubelet.yaml", "kube-proxy.yaml", "kubeconfig"):
        assert isinstance(yaml.safe_load(written[name]), dict)


@PLACES
def test_every_file_that_a_command_names_is_written(place: Place) -> None:
    made_by_themselves = {"certs", "etcd", "kubelet", "sa.pub", "sa.key"}
    words = [word.partition("=")[2] or word for command in programs(place, find=FIND).values() for word in command]
    named = {Path(word).relative_to(place.folder).parts[0] for word in words if word.startswith(f"{place.folder}/")}
    assert named - made_by_themselves <= set(files(place))


@pytest.mark.parametrize("mode", MODES)
def test_kube_proxy_gets_its_mode(mode: str) -> None:
    assert yaml.safe_load(format_proxy(replace(FIRST, mode=mode)))["mode"] == mode


def test_all_that_containerd_keeps_is_in_the_folder() -> None:
    written = files(FIRST)
    config = tomllib.loads(written["containerd.toml"])
    assert all(config[key].startswith(f"{FOLDER}/") for key in ("root", "state"))
    endpoint = yaml.safe_load(written["kubelet.yaml"])["containerRuntimeEndpoint"]
    assert config["grpc"]["address"] == endpoint.removeprefix("unix://")


@PLACES
def test_containerd_trusts_the_scenes_certificate_for_the_registry(place: Place) -> None:
    written = files(place)
    registry = tomllib.loads(written["containerd.toml"])["plugins"]["io.containerd.grpc.v1.cri"]["registry"]
    path = Path(registry["config_path"]).relative_to(place.folder) / REGISTRY / "hosts.toml"
    hosts = tomllib.loads(written[str(path)])
    assert hosts["host"][hosts["server"]]["ca"] == "/tls.crt"


@PLACES
def test_the_token_is_in_the_files_alone(place: Place) -> None:
    """Every user of the machine can read a command line."""
    commands = programs(place, find=FIND)
    assert not [name for name, command in commands.items() if any("secret" in word for word in command)]


@pytest.mark.parametrize(
    ("before", "after"), [("etcd", "kube-apiserver"), ("kube-apiserver", "kubelet"), ("containerd", "kubelet")]
)
def test_a_required_program_starts_first(before: str, after: str) -> None:
    order = list(programs(FIRST, find=FIND))
    assert order.index(before) < order.index(after)


def test_only_the_first_node_has_the_control_plane() -> None:
    first, second = (programs(place, find=FIND) for place in (FIRST, SECOND))
    assert "kube-apiserver" not in second
    assert second.keys() < first.keys()
    assert "tokens.csv" not in files(SECOND)


def kubeconfig(place: Place) -> dict[str, Any]:
    (cluster,) = yaml.safe_load(files(place)["kubeconfig"])["clusters"]
    found: dict[str, Any] = cluster["cluster"]
    return found


def test_both_nodes_ask_one_api_server_with_its_certificate() -> None:
    assert kubeconfig(FIRST) == kubeconfig(SECOND)
    assert kubeconfig(FIRST)["certificate-authority"] == f"{FOLDER}/certs/apiserver.crt"


def test_an_api_server_of_ipv6_has_brackets_in_its_url() -> None:
    assert kubeconfig(replace(FIRST, at=(IPV6,)))["server"] == "https://[2001:db8:7::2]:6443"


@FAMILIES
def test_each_pod_has_an_address_of_each_family_of_its_node(at: tuple[Addresses, ...]) -> None:
    bridge = json.loads(files(replace(SECOND, at=at))["cni/10-pods.conflist"])["plugins"][0]
    assert [subnet for (one,) in bridge["ipam"]["ranges"] for subnet in one.values()] == [one.pods_of(2) for one in at]
    assert len(bridge["ipam"]["routes"]) == len(at)


@pytest.mark.peer("nft")
@FAMILIES
def test_nft_accepts_the_masquerading(at: tuple[Addresses, ...]) -> None:
    rules = format_masquerade(replace(FIRST, at=at))
    command = ["unshare", "--map-root-user", "--net", program("nft"), "--check", "--file", "-"]
    done = subprocess.run(command, input=rules, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@FAMILIES
def test_the_public_dns_has_the_records_of_the_families(at: tuple[Addresses, ...]) -> None:
    text = format_public_dns(replace(FIRST, at=at))
    for one in (IPV4, IPV6):
        assert (f"60 IN {one.record} {one.public}" in text) is (one in at)

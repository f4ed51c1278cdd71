"""The configuration files of a node's programs."""

from __future__ import annotations

import ipaddress
import json
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.cluster import texts
from tests.cluster.node import PROGRAMS

FOLDER = "/folder"
FILES = texts.files(FOLDER, cgroup="/group", token="secret")
COMMANDS = texts.programs(FOLDER, find={name: f"/bin/{name}" for name in (*PROGRAMS, "python")})


def test_every_file_is_what_its_reader_reads() -> None:
    tomllib.loads(FILES["containerd.toml"])
    json.loads(FILES["cni/10-pods.conflist"])
    for name in ("kubelet.yaml", "kube-proxy.yaml", "kubeconfig"):
        assert isinstance(yaml.safe_load(FILES[name]), dict)


def test_every_file_that_a_command_names_is_written() -> None:
    made_by_themselves = {"certs", "etcd", "kubelet", "sa.pub", "sa.key"}
    words = [word.partition("=")[2] or word for command in COMMANDS.values() for word in command]
    named = {Path(word).relative_to(FOLDER).parts[0] for word in words if word.startswith(f"{FOLDER}/")}
    assert named - made_by_themselves <= set(FILES)


@pytest.mark.parametrize("mode", [texts.NFTABLES, texts.IPTABLES])
def test_kube_proxy_gets_its_mode(mode: str) -> None:
    assert yaml.safe_load(texts.format_proxy(FOLDER, mode=mode))["mode"] == mode


def test_all_that_containerd_keeps_is_in_the_folder() -> None:
    config = tomllib.loads(FILES["containerd.toml"])
    assert all(config[key].startswith(f"{FOLDER}/") for key in ("root", "state"))
    assert (
        config["grpc"]["address"] == yaml.safe_load(FILES["kubelet.yaml"])["containerRuntimeEndpoint"][len("unix://") :]
    )


def test_the_addresses_are_for_tests_and_apart() -> None:
    node, public = ipaddress.ip_address(texts.NODE_ADDRESS), ipaddress.ip_address(texts.PUBLIC_ADDRESS)
    benchmarks = ipaddress.ip_network("198.18.0.0/15")
    assert node in benchmarks
    assert public in benchmarks
    assert ipaddress.ip_address(texts.CLUSTER_DNS) in ipaddress.ip_network(texts.SERVICE_RANGE)
    assert not ipaddress.ip_network(texts.SERVICE_RANGE).overlaps(ipaddress.ip_network(texts.POD_RANGE))


def test_the_token_is_in_the_files_alone() -> None:
    """Every user of the machine can read a command line."""
    assert not [name for name, command in COMMANDS.items() if any("secret" in word for word in command)]


@pytest.mark.parametrize(
    ("before", "after"), [("etcd", "kube-apiserver"), ("kube-apiserver", "kubelet"), ("containerd", "kubelet")]
)
def test_a_required_program_starts_first(before: str, after: str) -> None:
    order = list(COMMANDS)
    assert order.index(before) < order.index(after)

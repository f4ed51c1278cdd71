"""The files and programs of a node on which Cilium connects the pods."""

from __future__ import annotations

import json
import tomllib

from tests.cluster.addresses import IPV4
from tests.cluster.nodes import cilium
from tests.cluster.nodes.commands import programs
from tests.cluster.nodes.configs import Place, format_containerd
from tests.cluster.nodes.node import PROGRAMS

FIND = {name: f"/bin/{name}" for name in (*PROGRAMS, *cilium.PROGRAMS, "python")}
PLACE = Place("/folder", 1, (IPV4,))
BARE = programs(PLACE, find=FIND)
COMMANDS = cilium.programs(PLACE, BARE, find=FIND)


def test_its_agent_takes_the_place_of_what_enforces_policies_otherwise() -> None:
    assert list(COMMANDS) == [name for name in BARE if name != "enforcer"] + ["cilium-agent"]
    assert "enforcer" in BARE


def test_alone_it_takes_the_place_of_kube_proxy_too() -> None:
    alone = cilium.programs(PLACE, BARE, find=FIND, alone=True)
    assert list(alone) == [name for name in COMMANDS if name != "kube-proxy"]
    assert "--kube-proxy-replacement=true" in alone["cilium-agent"]
    assert "--kube-proxy-replacement=false" in COMMANDS["cilium-agent"]


def test_the_controllers_give_the_node_a_range_that_the_agent_knows() -> None:
    added = set(COMMANDS["kube-controller-manager"]) - set(BARE["kube-controller-manager"])
    assert added == {"--allocate-node-cidrs", f"--cluster-cidr={IPV4.pods}"}
    assert f"--ipv4-native-routing-cidr={IPV4.pods}" in COMMANDS["cilium-agent"]


def test_containerd_runs_its_plugin_and_no_other() -> None:
    config = tomllib.loads(format_containerd("/folder", plugins="/folder/plugins"))
    assert config["plugins"]["io.containerd.grpc.v1.cri"]["cni"]["bin_dir"] == "/folder/plugins"
    plugins = json.loads(cilium.format_network("/folder"))["plugins"]
    assert [one["type"] for one in plugins] == ["cilium-cni"]


def test_its_agent_finds_the_compiler_before_another_of_that_name() -> None:
    (path,) = (word for word in COMMANDS["cilium-agent"] if word.startswith("PATH="))
    assert path.split(":")[0] == f"PATH=/folder/{cilium.COMPILERS}"

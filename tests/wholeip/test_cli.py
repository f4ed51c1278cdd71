"""The command lines of wholeip: the values that they refuse, all in one run, and what they print; options.py too."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
import trio
from click.testing import CliRunner, Result

from sidecar.values.errors import StartError
from tests.kit.faulty_api import failure
from tests.kit.live_api import LiveApi
from tests.kit.ports import free_ports
from tests.kit.wholeip_objects import ip
from tests.wholeip.agent.test_reconciler import LB, POD, SERVICES, make_api, put_service, put_slice
from wholeip.cli import main
from wholeip.options import own_name, parse_label_value, parse_namespace, parse_node_name
from wholeip.rules_command import print_rules
from wholeip.settings import ClusterSettings


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, arguments, env=environment)


@pytest.mark.parametrize(
    ("arguments", "environment", "lines"),
    [
        pytest.param(
            ["run", "--proxy-name", "a b", "--node-name", "Node", "--resync", "0", "--admin", "x"],
            {},
            [
                "--proxy-name: 'a b' cannot be the value of a label",
                "--node-name: 'Node' cannot be the name of a Node",
                "--resync: 0.0 is not in the range",
                "--admin: 'x' is not ADDR:PORT",
            ],
            id="four at once",
        ),
        pytest.param(
            ["run", "--cluster-network", "10.0.0.0/8", "--cluster-network", "x", "--protect", "192.0.2.1/24"],
            {},
            ["--cluster-network: 'x' is not a network", "--protect: '192.0.2.1/24' is not a network"],
            id="networks",
        ),
        pytest.param(
            ["run", "--keep-flows", "--end-connections"],
            {},
            ["--end-connections and --keep-flows: give one of them"],
            id="flows that are to stay and to end",
        ),
        pytest.param(
            ["rules", "--allow", "192.0.2.1/24"], {}, ["--allow: '192.0.2.1/24' is not a network"], id="allow"
        ),
        pytest.param(
            ["run"],
            {"WHOLEIP_PROTECT": "192.0.2.0/24 y", "WHOLEIP_NODE_NAME": "a;b", "WHOLEIP_END_FLOWS": "perhaps"},
            [
                "--node-name (from WHOLEIP_NODE_NAME): 'a;b' cannot be",
                "--protect (from WHOLEIP_PROTECT): 'y' is not a network",
                "--end-flows (from WHOLEIP_END_FLOWS): 'perhaps' is not a valid boolean",
            ],
            id="environment",
        ),
        pytest.param(
            ["run", "--endpoints", "all"],
            {"WHOLEIP_ADMIN_HOST": "a.example.org b:80"},
            [
                "--endpoints: 'all' is not one of 'any', 'referenced', 'verified'.",
                "--admin-host (from WHOLEIP_ADMIN_HOST): 'b:80' is not the name of a host; write it without a port",
            ],
            id="endpoints and names of the admin port",
        ),
        pytest.param(["rules", "--output", "xml"], {}, ["--output: 'xml' is not one of 'nft', 'json'."], id="output"),
        pytest.param(["status", "--admin", "off"], {}, ["--admin: 'off' is not ADDR:PORT"], id="no agent to ask"),
        pytest.param(["uninstall", "--dry"], {}, ["No such option '--dry'. Did you mean '--dry-run'?"], id="mistyped"),
        pytest.param(
            ["uninstall", "--context", "production", "--kubeconfig", "kubeconfig"],
            {},
            [
                "--kubeconfig: is for --every-node only; without it, this node's rules are removed",
                "--context: is for --every-node only",
            ],
            id="a cluster for one node",
        ),
        pytest.param(
            ["uninstall", "--every-node", "a/b"], {}, ["--every-node: 'a/b' cannot be the name"], id="no namespace"
        ),
        pytest.param(["instal"], {}, ["No such command 'instal'"], id="no such command"),
    ],
)
def test_bad_values_are_told_together_by_name(
    arguments: list[str], environment: dict[str, str], lines: list[str]
) -> None:
    result = run(*arguments, **environment)
    assert result.exit_code == 2
    printed = result.stderr.splitlines()
    assert len(printed) == len(lines)
    for line, expected in zip(printed, lines, strict=True):
        assert line.startswith("Error: ")
        assert expected in line


@pytest.mark.parametrize("command", ["run", "rules", "status", "uninstall"])
def test_help_names_each_flags_variable_and_shows_examples(command: str) -> None:
    text = " ".join(run(command, "--help").stdout.split())
    assert f"Examples: wholeip {command}" in text
    for option in main.commands[command].params:
        assert isinstance(option, click.Option)
        assert f"WHOLEIP_{(option.name or '').upper()}" in text
        assert option.opts[0] in text


@pytest.mark.parametrize("text", ["", "-a", "a-", "a b", "a/b", "a" * 64, "a\n", "x=y", "ä"])
def test_a_proxy_name_is_the_value_of_a_label(text: str) -> None:
    with pytest.raises(ValueError, match="label"):
        parse_label_value(text)
    assert parse_label_value("cozy-proxy") == "cozy-proxy"


@pytest.mark.parametrize("text", ["", "A", "-a", "a-", "a_b", "a b", "a\n", "a" * 254])
def test_a_node_name_is_that_of_an_object(text: str) -> None:
    with pytest.raises(ValueError, match="Node"):
        parse_node_name(text)
    assert parse_node_name("node-1.example.org") == "node-1.example.org"


@pytest.mark.parametrize("text", ["", "A", "-a", "a-", "a.b", "a b", "a/b", "a\n", "a" * 64])
def test_a_namespace_is_one_label(text: str) -> None:
    with pytest.raises(ValueError, match="Namespace"):
        parse_namespace(text)
    assert parse_namespace("switchback-wholeip") == "switchback-wholeip"


def test_without_a_name_the_node_is_called_like_its_host() -> None:
    assert own_name() == own_name().lower() != ""


def test_an_agent_that_does_not_answer_is_status_3() -> None:
    (port,) = free_ports(1)
    result = run("status", "--admin", f"127.0.0.1:{port}")
    assert result.exit_code == 3
    assert "is `wholeip run` running, and is this its --admin?" in result.stderr


@pytest.mark.parametrize("command", ["run", "rules"])
def test_a_cluster_that_nobody_described_is_status_3(command: str, tmp_path: Path) -> None:
    result = run(command, "--kubeconfig", str(tmp_path / "none"))
    assert result.exit_code == 3
    assert "none" in result.stderr
    assert result.stdout == ""


@asynccontextmanager
async def served(api: LiveApi, folder: Path) -> AsyncIterator[ClusterSettings]:
    """Settings for an API server on loopback."""
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, api.serve, 0, host="127.0.0.1"))
        url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(
            f"apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: k, cluster: {{server: '{url}'}}}}]\n"
            "contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {token: t}}]\n"
        )
        yield ClusterSettings(node_name="n1", kubeconfig=str(kubeconfig))
        nursery.cancel_scope.cancel()


async def test_rules_are_those_of_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    api = make_api()
    put_service(api)
    put_slice(api)
    put_service(api, "later", "192.0.2.2")
    async with served(api, tmp_path) as settings:
        assert await print_rules(settings, "nft") == 0
        printed = capsys.readouterr()
        assert await print_rules(settings, "json") == 0
    assert printed.out.startswith("add table inet switchback_wholeip\n")
    assert f"{LB} : {POD}" in printed.out
    why = "no pod is ready; there is no EndpointSlice with its label"
    assert printed.err.splitlines() == [
        f"Note: default/later: 192.0.2.2 (IPv4): {why} (no-endpoint)",
        "For node n1: 1 mappings of 2 Services.",
    ]
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["ruleset"] == printed.out
    assert [(ip(one["address"]), ip(one["endpoint"])) for one in document["mappings"]] == [(ip(LB), ip(POD))]
    assert [one["reason"] for one in document["reports"]] == ["no-endpoint"]


async def test_rules_without_a_right_to_nodes_say_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = make_api()
    api.faults = {"/api/v1/nodes": failure(403, "Forbidden")}
    async with served(api, tmp_path) as settings:
        assert await print_rules(settings, "nft") == 0
    printed = capsys.readouterr().err
    for part in ("nodes and their networks are unknown", "no Node n1", "set --cluster-network"):
        assert part in printed


async def test_rules_of_a_cluster_that_refuses_are_status_3(tmp_path: Path) -> None:
    api = make_api()
    api.faults = {SERVICES: failure(403, "Forbidden")}
    async with served(api, tmp_path) as settings:
        with pytest.raises(
            StartError, match=r"could not be asked: 403.*; ask for this right, or choose another --context$"
        ) as caught:
            await print_rules(settings, "nft")
    assert caught.value.status == 3

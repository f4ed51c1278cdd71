"""The configuration of the load balancer outside."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cluster.addresses import IPV4, IPV6
from tests.cluster.steps.balancer import format_haproxy
from tests.kit.programs import program

NODES = [IPV4.node(1), IPV6.in_url(IPV6.node(2))]
CONFIG = format_haproxy({80: 30080, 443: 30443}, NODES)


@pytest.mark.parametrize(("port", "node_port"), [(80, 30080), (443, 30443)])
def test_a_port_goes_to_its_node_port_with_the_header(port: int, node_port: int) -> None:
    listener = CONFIG.partition(f"listen port{port}\n")[2].partition("listen ")[0]
    # One bind for both would tell a client of IPv4 as ::ffff:192.0.2.1.
    assert f"bind :{port}\n  bind :::{port} v6only\n" in listener
    assert [f"{node}:{node_port} send-proxy " in listener for node in NODES] == [True, True]


def test_a_plain_port_has_no_header() -> None:
    config = format_haproxy({80: 30080, 443: 30443}, NODES, plain=[80])
    plain = [line for line in config.splitlines() if ":30080" in line]
    assert [line.split()[3:] for line in plain] == [["check", "inter", "1s", "fall", "2"]] * len(NODES)
    assert config.count(" send-proxy check-send-proxy check ") == len(NODES)


@pytest.mark.peer("haproxy")
def test_haproxy_accepts_it(tmp_path: Path) -> None:
    config = tmp_path / "haproxy.cfg"
    config.write_text(format_haproxy({80: 30080, 443: 30443}, NODES, plain=[80]))
    done = subprocess.run([program("haproxy"), "-c", "-f", str(config)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

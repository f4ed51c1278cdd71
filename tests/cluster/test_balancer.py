"""The configuration of the load balancer outside."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cluster.balancer import ADDRESSES, format_haproxy
from tests.cluster.texts import NODE_ADDRESS
from tests.kit.programs import program

CONFIG = format_haproxy({80: 30080, 443: 30443})


@pytest.mark.parametrize(("port", "node_port"), [(80, 30080), (443, 30443)])
def test_a_port_goes_to_its_node_port_with_the_header(port: int, node_port: int) -> None:
    listener = CONFIG.partition(f"listen port{port}\n")[2].partition("listen ")[0]
    assert f"bind :{port}\n" in listener
    assert f"server node {NODE_ADDRESS}:{node_port} send-proxy\n" in listener


def test_services_have_different_addresses() -> None:
    assert len(set(ADDRESSES.values())) == len(ADDRESSES)


@pytest.mark.peer("haproxy")
def test_haproxy_accepts_it(tmp_path: Path) -> None:
    config = tmp_path / "haproxy.cfg"
    config.write_text(CONFIG)
    done = subprocess.run([program("haproxy"), "-c", "-f", str(config)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

"""The destination of a client, with and without a redirect.

Accepting is tested in test_relay.py.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.relay.listener import original_destination
from sidecar.values.endpoints import Endpoint
from tests.conftest import refuse


@pytest.mark.peer("unshare", "nft", "ip")
def test_the_header_states_what_the_client_dialled_before_the_redirect() -> None:
    inside = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*inside, "true"], check=False, capture_output=True).returncode:
        refuse("a network namespace of one's own is not permitted here")
    scene = subprocess.run(
        [*inside, sys.executable, "-m", "tests.peers.redirect_scene"],
        check=True,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert json.loads(scene.stdout.splitlines()[-1]) == {
        "IPv4": "127.0.0.1 9000",
        "IPv6": "::1 9000",
        "IPv4 on a listener for both": "127.0.0.1 9000",
        "IPv6 on a listener for both": "::1 9000",
        "not redirected": "127.0.0.1 listening port",
        "not asked for": "127.0.0.1 listening port",
    }


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_without_connection_tracking_it_is_the_sockets_own_address(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.bind((host, 0))
        listener.listen()
        port = listener.getsockname()[1]
        with socket.create_connection((host, port)), listener.accept()[0] as accepted:
            assert original_destination(accepted) == Endpoint(host, port)

"""A scene in its own network namespace: redirected clients of a relay. The last line of output is its result.

unshare --map-root-user --net python -m tests.peers.redirect_scene
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import trio

from tests.kit.relaying import relaying

DIALLED = 9000
RULES = """\
table inet scene {{
    chain output {{
        type nat hook output priority -100
        tcp dport {dialled} redirect to :{port}
    }}
}}
"""


def prepare(port: int) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    rules = RULES.format(dialled=DIALLED, port=port)
    subprocess.run(["nft", "-f", "-"], input=rules.encode(), check=True)


async def stated(host: str, listen: str, port: int, **settings: object) -> str:
    """The destination in the header of a client that connects to a port of a host."""
    async with relaying(listen, **settings) as world:
        prepare(world.endpoint.port)
        dialled = port or world.endpoint.port
        with socket.create_connection((host, dialled)):
            backend, header = await world.accept()
            backend.close()
        subprocess.run(["nft", "flush", "ruleset"], check=True)
        assert header.destination is not None
        same = header.destination.port == world.endpoint.port
        return f"{header.destination.host} {'listening port' if same else header.destination.port}"


async def play() -> None:
    on, off = {"original_destination": True}, {"original_destination": False}
    rows = {
        "IPv4": await stated("127.0.0.1", "127.0.0.1", DIALLED, **on),
        "IPv6": await stated("::1", "::1", DIALLED, **on),
        "IPv4 on a listener for both": await stated("127.0.0.1", "::", DIALLED, **on),
        "IPv6 on a listener for both": await stated("::1", "::", DIALLED, **on),
        "not redirected": await stated("127.0.0.1", "127.0.0.1", 0, **on),
        "not asked for": await stated("127.0.0.1", "127.0.0.1", DIALLED, **off),
    }
    sys.stdout.write(f"{json.dumps(rows)}\n")


if __name__ == "__main__":
    trio.run(play)

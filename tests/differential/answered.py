"""Answered names: what a real `dnsproxy serve` on an API server answers, beside the verdicts of the pure core."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.differential.claimed import RELAY, Claimed
from tests.differential.sets import ObjectSet
from tests.differential.universe import probes
from tests.kit.apiserver import ApiServer
from tests.kit.messages import query
from tests.kit.polling import poll_until
from tests.kit.scraping import is_ready
from tests.kit.serve_inside import addresses_in
from tests.kit.serve_process import serving

_SECONDS: Final = 60
_DEAD: Final = "127.0.0.1:9"


def expect_answers(
    server: ApiServer, folder: Path, sets: Sequence[ObjectSet], claimed: Claimed, flags: Iterable[str]
) -> None:
    """A server with these flags answers exactly the names that the pure core has."""
    names = [name for one in sets for name in probes(one.zone)]
    where = ("--kubeconfig", str(server.kubeconfig), "--upstream", _DEAD, "--target", RELAY, "--ownership", "off")
    with serving(folder, *where, *flags) as ours:
        poll_until(lambda: is_ready(ours.admin), "dnsproxy is ready", seconds=_SECONDS)
        answered = _answered(ours.port, names)
    assert answered == {name for name in names if claimed.winner(name) is not None}


def _answered(port: int, names: Iterable[str]) -> set[str]:
    """The names with the relay's address; the others are forwarded to a dead upstream."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(_SECONDS)
        client.connect(("127.0.0.1", port))
        return {name for name in names if addresses_in(_reply(client, name)) == [RELAY]}


def _reply(client: socket.socket, name: str) -> bytes:
    client.send(query(name))
    return client.recv(4096)

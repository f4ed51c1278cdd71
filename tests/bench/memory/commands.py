"""The commands that run for months, as started with one name, route or Service, and what they may take.

The law: a goal is that of the process at rest, on its own; what objects of a cluster add is `make bench-sync`. The
agent of wholeip writes rules into the kernel, and has a network of its own.
"""

from __future__ import annotations

import http.client
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.memory.report import CPU, RESIDENT
from tests.bench.memory.still_api import still_api
from tests.kit.messages import query
from tests.kit.networks import one_network
from tests.kit.processes import StartFailed, is_listening
from tests.kit.wholeip_objects import READY, WHOLE, service_manifest, slice_manifest

_NAME: Final = "app.example.org"
_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class MeasuredCommand:
    """One of them."""

    name: str
    words: Callable[[int, int], Sequence[str]]
    """Its arguments, from the port that it serves and that of its admin pages."""
    answers: Callable[[int, int], bool]
    """Whether it serves, from the same ports."""
    goals: Mapping[str, float]
    surroundings: Callable[[Path], AbstractContextManager[Sequence[str]]] = lambda _: nullcontext(())
    """What it needs around it, with files in a folder; gives further arguments."""


def _dnsproxy(port: int, admin: int) -> Sequence[str]:
    names = ("--host", f"{_NAME}=192.0.2.1")
    return ("dnsproxy", "serve", *names, "--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}")


def _proxy(port: int, admin: int) -> Sequence[str]:
    # Nothing listens behind it; the relay starts without its backend.
    return ("proxy", "--route", f"127.0.0.1:{port}=127.0.0.1:1", "--admin", f"127.0.0.1:{admin}")


def _wholeip(_: int, admin: int) -> Sequence[str]:
    return ("wholeip", "run", "--node-name", "node-1", "--endpoints", "referenced", "--admin", f"127.0.0.1:{admin}")


@contextmanager
def _node(folder: Path) -> Iterator[Sequence[str]]:
    """A network with an API server that has one Service. Raises StartFailed without root."""
    if os.geteuid() != 0:
        raise StartFailed("it needs root, for a network of its own")
    objects = {
        "/api/v1/services": [service_manifest("vm", "198.51.100.9", annotations=WHOLE)],
        "/apis/discovery.k8s.io/v1/endpointslices": [slice_manifest("vm", ("192.0.2.10", READY), node="node-1")],
    }
    with one_network() as network, network.entered(), still_api(objects, folder) as kubeconfig:
        yield ("--kubeconfig", str(kubeconfig))


def is_ready(_: int, admin: int) -> bool:
    """Whether a program's admin port says so."""
    asking = http.client.HTTPConnection("127.0.0.1", admin, timeout=1)
    try:
        asking.request("GET", "/readyz")
        return asking.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        asking.close()


def has_answered(port: int) -> bool:
    """Whether a DNS server answers within a moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, suppress(OSError):
        asking.settimeout(_SECONDS)
        asking.connect(("127.0.0.1", port))
        asking.send(query(_NAME))
        return bool(asking.recv(512))
    return False


COMMANDS: Final = (
    MeasuredCommand("dnsproxy serve", _dnsproxy, lambda port, _: has_answered(port), {RESIDENT: 36.0, CPU: 0.35}),
    MeasuredCommand("proxy", _proxy, lambda port, _: is_listening(port), {RESIDENT: 28.0}),
    MeasuredCommand("wholeip run", _wholeip, is_ready, {RESIDENT: 36.0}, _node),
)

"""The clients: how each is started in a pod, and asked.

The law: one process for each client and pod. It keeps what it learns between lookups, as in production.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.clients.pods import Pod
from tests.clients.resolved import LIBRARIES, NSS, STUB, VERSION, resolved_in
from tests.conftest import refuse
from tests.kit.mounts import MountNamespace
from tests.kit.programs import peers_cache, program

PROGRAMS: Final = Path(__file__).with_name("programs")
_SECONDS: Final = 100.0
"""More than any resolver waits for one name with all its search domains."""
_C: Final = ("c/lookup.c",)


@dataclass(frozen=True)
class Answer:
    """What a client made of a name."""

    outcome: str
    addresses: tuple[str, ...]
    seconds: float
    detail: str


@dataclass(frozen=True)
class Session:
    """A running client."""

    process: subprocess.Popen[str]
    version: str

    def ask(self, family: str, name: str) -> Answer:
        """The outcome of a lookup of addresses; `family` is 4, 6 or any."""
        assert self.process.stdin
        self.process.stdin.write(f"{family} {name}\n")
        self.process.stdin.flush()
        said = read_line(self.process)
        return Answer(said["outcome"], tuple(sorted(said["addresses"])), said["seconds"], said.get("detail", ""))


@dataclass(frozen=True)
class Client:
    """A resolver, and the program that uses it."""

    name: str
    peers: tuple[str, ...]
    command: Callable[[], list[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Callable[[Pod, str], AbstractContextManager[MountNamespace]] = Pod.files
    version: str = ""
    """That of the resolver, if the program does not know it."""


def built(name: str, *sources: str) -> Callable[[], list[str]]:
    """A program that scripts/peers-clients.sh built of these very sources."""

    def command() -> list[str]:
        digest = hashlib.sha256(b"".join((PROGRAMS / source).read_bytes() for source in sources)).hexdigest()
        path = peers_cache() / f"{name}-v{digest[:12]}" / name
        if not path.exists():
            refuse(f"missing peer: {name} of the present source (`make peers` brings it)")
        return [str(path)]

    return command


def script(peer: str, source: str) -> Callable[[], list[str]]:
    """A program that needs no compiler before its start."""
    return lambda: [program(peer), str(PROGRAMS / source)]


_GO: Final = built("lookup-go", "go/go.mod", "go/main.go")
_GLIBC: Final = built("lookup-glibc", *_C)
_RESOLVED: Final = ("lookup-glibc", "systemd-resolved")
_RUST: Final = built("lookup-hickory", "rust/Cargo.lock", "rust/Cargo.toml", "rust/src/main.rs")

CLIENTS: Final = (
    Client("glibc", ("lookup-glibc",), _GLIBC),
    Client("musl", ("lookup-musl",), built("lookup-musl", *_C)),
    Client("musl before 1.2.4", ("lookup-musl-old",), built("lookup-musl-old", *_C)),
    Client("Go", ("lookup-go",), _GO, {"GODEBUG": "netdns=go"}),
    Client("Go with cgo", ("lookup-go",), _GO, {"GODEBUG": "netdns=cgo"}),
    Client("Java", ("javac", "java"), script("java", "java/Lookup.java")),
    Client("Node, dns.resolve (c-ares)", ("node",), script("node", "node/cares.js")),
    Client("Node, dns.lookup", ("node",), script("node", "node/getaddrinfo.js")),
    Client("Python", (), lambda: [sys.executable, str(PROGRAMS / "python/lookup.py")]),
    Client("Rust, hickory-resolver", ("lookup-hickory",), _RUST),
    Client("systemd-resolved, stub", ("lookup-glibc", "systemd-resolved"), _GLIBC, {}, resolved_in(STUB), VERSION),
    Client(
        "systemd-resolved, nss-resolve",
        ("lookup-glibc", "systemd-resolved"),
        _GLIBC,
        LIBRARIES,
        resolved_in(NSS),
        VERSION,
    ),
)


@contextmanager
def running(client: Client, pod: Pod) -> Iterator[Session]:
    """The client in a pod, until the end of the block."""
    folder = re.sub("[^a-z0-9]+", "-", client.name.lower())
    with client.files(pod, folder) as mounts, _started(client, pod, mounts) as process:
        told = read_line(process)["version"]
        yield Session(process, client.version or told)


@contextmanager
def _started(client: Client, pod: Pod, mounts: MountNamespace) -> Iterator[subprocess.Popen[str]]:
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(pod.folder), **client.environment}
    process = subprocess.Popen(
        pod.command(mounts, *client.command()),
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line of a program, as JSON. Fails if it ends, or says nothing for too long."""
    assert process.stdout
    too_late = threading.Timer(_SECONDS, process.kill)
    too_late.start()
    try:
        line = process.stdout.readline()
    finally:
        too_late.cancel()
        too_late.join()
    assert line, f"{process.args!r} ended, or gave no answer"
    said: dict[str, Any] = json.loads(line)
    return said

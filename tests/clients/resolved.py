"""systemd-resolved in a pod, from the files of its Debian package, which is not installed.

The law: its /run and its /etc are its own, as are those of the client that asks it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from tests.clients.pods import SEARCH, Pod
from tests.kit.mounts import MountNamespace
from tests.kit.processes import end_process, wait_for
from tests.kit.programs import find_program

_USER: Final = 991
_ACCOUNT: Final = "systemd-resolve"
STUB: Final[Mapping[str, str]] = {
    "resolv_conf": f"nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch {' '.join(SEARCH)}\n"
}
"""Files of a client that asks the stub over DNS; this resolv.conf is what systemd-resolved writes."""
NSS: Final[Mapping[str, str]] = {
    "nsswitch_conf": "passwd: files\ngroup: files\nhosts: resolve [!UNAVAIL=return] files dns\n"
}
"""Files of a client that asks with nss-resolve."""
_CONFIG: Final = """[Resolve]
DNS={nameserver}
Domains={domains}
DNSStubListener={stub}
LLMNR=no
MulticastDNS=no
"""
_ROOT: Final = Path(find_program("systemd-resolved") or "/nowhere-v0/nowhere")
VERSION: Final = _ROOT.parent.name.rpartition("-v")[2]


def _library_path() -> str:
    folders = [f"{path}:{path}/systemd" for path in sorted(map(str, _ROOT.glob("usr/lib/*-linux-gnu")))]
    return ":".join(folders)


LIBRARIES: Final[Mapping[str, str]] = {"LD_LIBRARY_PATH": _library_path()}
"""The environment of systemd-resolved, and of a client that asks with nss-resolve."""


def resolved_in(changes: Mapping[str, str]) -> Callable[[Pod, str], AbstractContextManager[MountNamespace]]:
    """The files of a client in a pod where systemd-resolved runs; `changes` is STUB or NSS."""

    @contextmanager
    def files(pod: Pod, name: str) -> Iterator[MountNamespace]:
        # A pod has one stub listener, and may have two of these clients.
        stub = "yes" if changes is STUB else "no"
        config = _CONFIG.format(nameserver=pod.nameserver, domains=" ".join(SEARCH), stub=stub)
        accounts = {
            "passwd": _with(Path("/etc/passwd"), f"{_ACCOUNT}:x:{_USER}:{_USER}::/:/usr/sbin/nologin\n"),
            "group": _with(Path("/etc/group"), f"{_ACCOUNT}:x:{_USER}:\n"),
        }
        with pod.files(name, **accounts, **changes) as mounts, _running(pod, mounts, pod.folder / name, config):
            yield mounts

    return files


def _with(path: Path, line: str) -> str:
    text = path.read_text(encoding="utf-8")
    return text if f"{_ACCOUNT}:" in text else text + line


@contextmanager
def _running(pod: Pod, mounts: MountNamespace, folder: Path, config: str) -> Iterator[None]:
    made = folder / "resolved.conf"
    made.write_text(config, encoding="utf-8")
    prepare = (
        "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/resolve /run/systemd/resolved.conf.d /run/dbus"
        f" && chown {_ACCOUNT}:{_ACCOUNT} /run/systemd/resolve && cp {made} /run/systemd/resolved.conf.d/test.conf"
    )
    done = mounts.run("sh", "-c", prepare)
    assert done.returncode == 0, done.stderr
    log = folder / "resolved.log"
    daemon = str(_ROOT / "lib/systemd/systemd-resolved")
    with log.open("wb") as output:
        process = subprocess.Popen(
            pod.command(mounts, daemon), env={**os.environ, **LIBRARIES}, stdout=output, stderr=output
        )
    try:
        socket = f"/proc/{process.pid}/root/run/systemd/resolve/io.systemd.Resolve"
        wait_for(lambda: Path(socket).exists(), process=process, log=log)
        yield
    finally:
        end_process(process)

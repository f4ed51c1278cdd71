"""A network of the benchmark's own: loopback alone, with a congestion control that paces nothing.

The law: BBR, where a system has it by default, paces each connection with timers that cost more than the relaying, and
whose bursts differ from run to run. Loopback loses nothing and has no bandwidth to find, so reno sends as cubic would.
It is set in a network namespace of ours, which ends with us; nothing of the computer is changed.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.kit.programs import find_program

_CONGESTION: Final = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_CONTROL: Final = "reno"
_INSIDE: Final = "BENCH_OWN_NETWORK"
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def enter_own_network(module: str) -> None:
    """Begin this program anew in a namespace, unless it is in one already or the system does not permit it."""
    if os.environ.get(_INSIDE):
        _prepare()
        return
    unshare = find_program("unshare")
    if unshare is None:
        return
    command = [unshare, "--net"] if os.geteuid() == 0 else [unshare, "--net", "--map-root-user"]
    if subprocess.run([*command, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        os.environ[_INSIDE] = "1"
        sys.stdout.flush()
        os.execv(unshare, [*command, sys.executable, "-m", module, *sys.argv[1:]])  # noqa: S606  # no shell is wanted


def describe_network() -> str:
    """What connections here are controlled by."""
    own = "in a network of its own" if os.environ.get(_INSIDE) else "in the network of this computer"
    return f"{own}, {_CONGESTION.read_text().strip()}"


def _prepare() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))
    _CONGESTION.write_text(_CONTROL)

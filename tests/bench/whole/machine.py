"""The machine and the programs of a run, as they describe themselves.

The law: no name of a host, a user or a folder.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sysconfig
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from docs.speed.run import Machine
from tests.kit.launched import ROOT
from tests.kit.programs import find_program

_VERSION: Final = re.compile(r"\d+\.\d+[\w.]*")
_ASK_SECONDS: Final = 10
_KIB_PER_GB: Final = 1e6 / 1.024
_SYSTEM_PREFIX: Final = "/usr"
_PROGRAMS: Final = {
    "NSD": ("nsd", "-v"),
    "Unbound": ("unbound", "-V"),
    "dnsmasq": ("dnsmasq", "--version"),
    "CoreDNS": ("coredns", "-version"),
    "BIND": ("named", "-v"),
    "haproxy": ("haproxy", "-v"),
    "nginx": ("nginx", "-v"),
    "Go": ("go", "version"),
    "kube-apiserver": ("kube-apiserver", "--version"),
    "etcd": ("etcd", "--version"),
    "nftables": ("nft", "--version"),
    "dnsperf": ("dnsperf", "-h"),
    "wrk": ("wrk", "-v"),
    "iperf3": ("iperf3", "--version"),
}


def read_machine(beside: str) -> Machine:
    """The machine on which we run."""
    return Machine(
        processors=len(os.sched_getaffinity(0)),
        model=parse_model(_read("/proc/cpuinfo")),
        memory_gb=parse_memory_gb(_read("/proc/meminfo")),
        kernel=parse_version(platform.release()),
        system=parse_system(_read("/etc/os-release")),
        beside=beside,
        load=round(os.getloadavg()[0], 1),
    )


def read_programs() -> Mapping[str, str]:
    """Versions of Python and of what is measured beside ours; a program that is not installed is absent."""
    found = {"Python": describe_python(), "trio": version("trio")}
    for name, (program, argument) in _PROGRAMS.items():
        path = find_program(program)
        said = path and _ask(path, argument)
        if said:
            found[name] = parse_version(said)
    return found


def describe_python() -> str:
    """Its version, and how it was built: a third of what ours costs depends on it."""
    asked = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    # Debian optimises its own, and removes from the flags what would say it.
    optimised = asked or sysconfig.get_config_var("prefix") == _SYSTEM_PREFIX
    name = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{name}, {'optimised' if optimised else 'not optimised (no --enable-optimizations)'}"


def read_commit() -> str:
    """The short hash of the work tree, with `-dirty` if it was changed."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def parse_model(text: str) -> str:
    """The processor in /proc/cpuinfo."""
    found = re.search(r"^model name\s*: *(.+)$", text, re.MULTILINE)
    return " ".join(found[1].split()) if found else platform.machine()


def parse_memory_gb(text: str) -> float:
    """All memory in /proc/meminfo; 0 if it is not there."""
    found = re.search(r"^MemTotal:\s*(\d+) kB$", text, re.MULTILINE)
    return round(int(found[1]) / _KIB_PER_GB, 1) if found else 0.0


def parse_system(text: str) -> str:
    """The distribution in /etc/os-release."""
    found = re.search(r'^PRETTY_NAME="?([^"\n]+)"?$', text, re.MULTILINE)
    return found[1] if found else "unknown"


def parse_version(text: str) -> str:
    """The first version in what a program prints; its first line, if there is none."""
    found = _VERSION.search(text)
    return found[0].rstrip(".") if found else text.strip().partition("\n")[0][:40]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _ask(path: str, argument: str) -> str:
    try:
        asked = subprocess.run([path, argument], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout + asked.stderr

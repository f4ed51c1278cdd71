"""The datagrams that the kernel dropped because the socket that they were for was full."""

from __future__ import annotations

from pathlib import Path


def dropped_datagrams() -> int:
    """RcvbufErrors of this thread's network since it was made (proc_pid_net(5), snmp)."""
    lines = Path("/proc/thread-self/net/snmp").read_text().splitlines()
    names, figures = (line.split() for line in lines if line.startswith("Udp:"))
    return int(figures[names.index("RcvbufErrors")])

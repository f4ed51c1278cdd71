"""Checks the sysctls without which a node forwards no packets, whatever the rules are.

The law: nothing is changed here, because a node's settings belong to its owner; the result says what to change. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

FORWARDING: Final = {4: "net/ipv4/ip_forward", 6: "net/ipv6/conf/all/forwarding"}
"""By family, as paths below /proc/sys."""
_ON: Final = frozenset({"1", "2"})


def read_sysctl(name: str, root: Path = Path("/proc/sys")) -> str | None:
    """The value of a sysctl, or None if it does not exist or cannot be read."""
    try:
        return (root / name).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


def advise(families: Iterable[int], read: Callable[[str], str | None] = read_sysctl) -> Iterator[str]:
    """What to change for mappings of these families (4, 6). An unreadable sysctl counts as right."""
    for family in families:
        value = read(FORWARDING[family])
        if value is not None and value not in _ON:
            name = FORWARDING[family].replace("/", ".")
            yield f"this node forwards no IPv{family} packets: set {name}=1 (it is {value})"

"""What hairpin-proxy and ouroboros write into a Corefile.

The law: pure. Each function gives exactly the text that the program would write, from the facts of its sources, which
are named; none of their code is here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

HAIRPIN: Final = "hairpin-proxy.hairpin-proxy.svc.cluster.local"
"""The target of hairpin-proxy's rewrites, without a final dot."""
HAIRPIN_MARK: Final = "# Added by hairpin-proxy"
OUROBOROS: Final = "ouroboros-proxy.ouroboros.svc.cluster.local."
BEGIN, END = "# === BEGIN ouroboros (do not edit by hand) ===", "# === END ouroboros ==="
_ROOT: Final = re.compile(r"\s*\.:53\s*\{\s*")


def with_hairpin_lines(corefile: str, hosts: Sequence[str]) -> str:
    """hairpin-proxy v0.2.1, src/main.rb: its lines come first in the root block; outer white space goes.

    It writes nothing if only outer white space would change, and fails without a root block of its form.
    """
    kept = without_hairpin_lines(corefile.strip()).split("\n")
    (place, *_) = [number for number, line in enumerate(kept) if line.strip().startswith(".:53 {")]
    added = [f"    rewrite name {host} {HAIRPIN} {HAIRPIN_MARK}" for host in sorted(set(hosts))]
    text = "\n".join([*kept[: place + 1], *added, *kept[place + 1 :]])
    return corefile if text.strip() == corefile.strip() else text


def without_hairpin_lines(corefile: str) -> str:
    """What a person leaves who deletes its lines."""
    return "\n".join(line for line in corefile.split("\n") if not line.strip().endswith(HAIRPIN_MARK))


def with_ouroboros_block(corefile: str, hosts: Sequence[str]) -> str:
    """Ouroboros v0.8.1, internal/coredns/corefile.go: its block stays in its place; a new one ends the root block."""
    lines = corefile.split("\n")
    start, stop = _root_block(lines)
    inside = range(start + 1, stop)
    markers = [number for number in inside if lines[number].strip() in (BEGIN, END)]
    last = next((lines[number] for number in reversed(inside) if lines[number].strip()), "    ")
    indent = last[: len(last) - len(last.lstrip(" \t"))]
    rewrites = [f"rewrite name {host} {OUROBOROS}" for host in sorted(set(hosts))]
    block = [indent + line for line in (BEGIN, *rewrites, END)] if hosts else []
    first, after = (markers[0], markers[-1] + 1) if markers else (stop, stop)
    return "\n".join([*lines[:first], *block, *lines[after:]])


def _root_block(lines: Sequence[str]) -> tuple[int, int]:
    """The numbers of the first and the last line of the root block; braces in comments do not count."""
    start = next(number for number, line in enumerate(lines) if _ROOT.fullmatch(line))
    depth = 1
    for number in range(start + 1, len(lines)):
        bare = lines[number].partition("#")[0]
        depth += bare.count("{") - bare.count("}")
        if not depth:
            return start, number
    raise ValueError("the root block does not end")


def without_ouroboros_block(corefile: str) -> str:
    """What its hook leaves: sed deletes from one marker to the other."""
    return re.sub(rf"(?m)^.*{re.escape(BEGIN)}\n(?:.*\n)*?.*{re.escape(END)}\n", "", corefile)


def ouroboros_key(hosts: Sequence[str]) -> str:
    """Ouroboros v0.8.1, internal/coredns/import_reconciler.go: its key `ouroboros.override` of `coredns-custom`."""
    return "".join(f"rewrite name {host} {OUROBOROS}\n" for host in sorted(set(hosts)))

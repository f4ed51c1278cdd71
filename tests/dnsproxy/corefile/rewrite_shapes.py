"""Rewrites to test with, whose lines are kept whole: a change of them is seen, and a real CoreDNS loads them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dnsproxy.corefile.rewrite_lines import Rewrite
from dnsproxy.dns.names import Reach
from tests.dnsproxy.corefile.shapes import FOLDER

RELAY: Final = "switchback/relay"
LONGEST: Final = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])

REWRITES: Final = {
    "nothing": (),
    "names": (
        Rewrite("shop.example.org", Reach.NAME, RELAY),
        Rewrite("app.example.org", Reach.NAME, RELAY),
        Rewrite("example.net", Reach.NAME, "ingress/controller-2"),
        Rewrite("xn--bcher-kva.example", Reach.NAME, RELAY),
        Rewrite("under_score.example.org", Reach.NAME, RELAY),
        Rewrite(LONGEST, Reach.NAME, RELAY),
    ),
    "wildcards": (
        Rewrite("app.example.org", Reach.NAME, RELAY),
        Rewrite("own.example.org", Reach.NAME),
        Rewrite("*.example.org", Reach.ONE_LABEL, RELAY),
        Rewrite("*.example.org", Reach.ANY_LABELS, "ingress/controller-2"),
        Rewrite("*.team.example.org", Reach.ANY_LABELS),
        Rewrite("*.one.team.example.org", Reach.ONE_LABEL, RELAY),
        Rewrite("*.example.net", Reach.ONE_LABEL),
    ),
}
"""By the name of the golden file."""


def golden_of(name: str) -> Path:
    return FOLDER / "rewrites" / f"{name}.override"

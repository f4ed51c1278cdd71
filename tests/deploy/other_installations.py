"""How hairpin-proxy and ouroboros are installed, by the names of their objects, and what their controllers write.

The law: each has the objects of one version (tests/deploy/migrating), which says where they are from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.kit.other_tools import (
    with_hairpin_lines,
    with_ouroboros_block,
    without_hairpin_lines,
    without_ouroboros_block,
)

HERE: Final = Path(__file__).parent / "migrating"


@dataclass(frozen=True)
class Theirs:
    """The other tool."""

    page: str
    install: str
    proxy: str
    """Its proxy's Service."""
    controller: str
    account: str
    write: Callable[[str, Sequence[str]], str]
    take_out: Callable[[str], str]
    """What the guide's edit leaves."""


TOOLS: Final = [
    pytest.param(
        Theirs(
            page="hairpin-proxy.md",
            install=f"kubectl apply -f {HERE / 'hairpin-proxy.yaml'}",
            proxy="hairpin-proxy/hairpin-proxy",
            controller="hairpin-proxy/hairpin-proxy-controller",
            account="hairpin-proxy-controller-sa",
            write=with_hairpin_lines,
            take_out=without_hairpin_lines,
        ),
        id="hairpin-proxy",
    ),
    pytest.param(
        Theirs(
            page="ouroboros.md",
            install=f"helm install ouroboros {HERE / 'ouroboros'} -n ouroboros --create-namespace",
            proxy="ouroboros/ouroboros-proxy",
            controller="ouroboros/ouroboros",
            account="ouroboros",
            write=with_ouroboros_block,
            take_out=without_ouroboros_block,
        ),
        id="ouroboros",
    ),
]

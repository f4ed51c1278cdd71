"""What the clients saw, as docs/clients.json keeps it for the guide.

The law: outcomes are compared, versions are only shown. `UPDATE_GOLDENS=1` writes what was seen; read the diff.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.kit.launched import ROOT

FILE: Final = ROOT / "docs" / "clients.json"
THROUGH_COREDNS: Final = "through CoreDNS"
DIRECT: Final = "asked directly"

Cells = Mapping[str, str]
"""The outcome of each case."""


def check(client: str, version: str, way: str, seen: Cells, path: Path = FILE) -> None:
    """Compare what a client saw with the guide, or write it there: `way` is one of the two above."""
    recorded: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    row = recorded[way].get(client, {})
    if os.environ.get("UPDATE_GOLDENS") == "1":
        recorded["versions"][client] = version
        recorded[way][client] = {**row, **seen}
        path.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
        return
    expected = {case: row.get(case) for case in seen}
    assert seen == expected, f"{client} sees something else than docs/clients.json has"

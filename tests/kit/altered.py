"""Programs of ours with other values of their constants: times of seconds that a busy machine needs to be longer.

The law: every process of the program has the values from its start, and its code is unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tests.kit.launched import ROOT


def altered(folder: Path, constants: Mapping[str, float]) -> dict[str, str]:
    """The environment of such a program, by the dotted names of the constants; `folder` gets a module for it."""
    lines = []
    for name, value in constants.items():
        module, _, constant = name.rpartition(".")
        lines += [f"import {module}", f"assert {name} != {value}", f"{module}.{constant} = {value}"]
    inside = folder / "altered"
    inside.mkdir()
    # Python imports a module of this name at every start.
    (inside / "sitecustomize.py").write_text("\n".join(lines) + "\n")
    return {"PYTHONPATH": os.pathsep.join([str(inside), str(ROOT)])}

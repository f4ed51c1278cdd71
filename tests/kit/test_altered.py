from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.kit.altered import altered

SHOW = """
import subprocess, sys
from proxy.backends import hold_back
print(hold_back.HOLD)
if "again" not in sys.argv:
    subprocess.run([sys.executable, "-c", sys.argv[1], "", "again"], check=True)
"""


def test_a_program_and_its_children_have_the_other_value(tmp_path: Path) -> None:
    environment = {**os.environ, **altered(tmp_path, {"proxy.backends.hold_back.HOLD": 12.5})}
    command = [sys.executable, "-u", "-c", SHOW, SHOW]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (["12.5", "12.5"], "")

"""The Install block of README, and the shell in which its lines are played.

The law: a line is run as README has it, in a checkout; every line that is no comment is played. Only the programs are
the tests' own: `buildah` has their storage and base image, and `ctr`, `kubectl` and `helm` run inside a node. The line
that imports the image is run for each node, as its comment says. The lines in comments are for kind, k3d, minikube and
k3s, which cannot run here: test_readme.py holds their form alone.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from docs.fences import find_fences
from tests.cluster.nodes.node import Node, NodeFailed
from tests.deploy.image import BASE, PROJECT, build_options, buildah_command, make_base
from tests.kit.programs import program

README: Final = PROJECT / "README.md"
_SECONDS: Final = 600
_COMMENT: Final = re.compile(r"\s+# .*$")


def install_block(page: str) -> list[str]:
    """The lines of the first block below `## Install`."""
    section = page.partition("\n## Install\n")[2].partition("\n## ")[0]
    return next(fence.body for fence in find_fences(section) if fence.language == "sh").splitlines()


BLOCK: Final = install_block(README.read_text(encoding="utf-8"))
BUILD, IMPORT, *INSTALL, TEST = [_COMMENT.sub("", line) for line in BLOCK if not line.startswith("#")]
"""The lines in their order; INSTALL are those between the nodes' line and that of the chart's test."""
ELSEWHERE: Final = [_COMMENT.sub("", line.removeprefix("# ")) for line in BLOCK if line.startswith("#")]
"""What takes the place of IMPORT in other clusters."""


def build(checkout: Path, folder: Path) -> None:
    """Play BUILD; `folder` is for files that only the build sees. Raises NodeFailed."""
    make_base()
    options = shlex.join([*build_options(folder), f"--build-arg=BASE={BASE}"])
    script = (
        f'[ "$1" != build ] || {{ shift; set -- build {options} "$@"; }}\nexec {shlex.join(buildah_command())} "$@"\n'
    )
    play(BUILD, checkout, {"buildah": script}, more={"BUILDER": "buildah"})


def play_in(node: Node, line: str, checkout: Path) -> str:
    """Play a line with the programs of a node; its output. Raises NodeFailed."""
    commands = {
        "ctr": [program("ctr"), f"--address={node.folder}/containerd.sock"],
        "kubectl": [program("kubectl")],
        # IMPORT needs no Helm, and the other scenes none at all.
        **({"helm": [program("helm")]} if line.startswith("helm ") else {}),
    }
    # Another mount namespace has another working folder.
    into = shlex.join(node.inside("sh", "-c", 'cd "$0" && exec "$@"'))
    scripts = {name: f'exec {into} "$PWD" {shlex.join(command)} "$@"\n' for name, command in commands.items()}
    return play(line, checkout, scripts, more={"KUBECONFIG": f"{node.folder}/kubeconfig"})


def play(line: str, checkout: Path, scripts: Mapping[str, str], *, more: Mapping[str, str]) -> str:
    """Run a line in a checkout, with these programs first on the PATH. Returns all output. Raises NodeFailed."""
    with TemporaryDirectory(prefix="switchback-programs-") as folder:
        for name, script in scripts.items():
            (Path(folder) / name).write_text(f"#!/bin/sh\n{script}", encoding="utf-8")
            (Path(folder) / name).chmod(0o755)
        environment = {**os.environ, **more, "PATH": f"{folder}:{os.environ.get('PATH', os.defpath)}"}
        return _run(["sh", "-c", line], checkout, environment)


def _run(command: Sequence[str], checkout: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=checkout,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        timeout=_SECONDS,
    )
    if done.returncode != 0:
        raise NodeFailed(f"README: `{command[-1]}` ended with status {done.returncode}: {done.stdout[-4000:]}")
    return done.stdout

"""An image of a program of this machine, under the name by which a manifest asks for it.

The law: nothing is pulled; containerd has the image before the first pod.
"""

from __future__ import annotations

from pathlib import Path

from tests.cluster.nodes.images import make_image, save
from tests.cluster.stage import Stage
from tests.kit.programs import program


def bring_image(stage: Stage, name: str, of: str) -> None:
    """Build the image of one static program, its entry point, and import it on every node."""
    make_image(name, base="scratch", files={Path(program(of)): f"/{of}"}, entrypoint=[f"/{of}"])
    archive = save(name, stage.folder / f"{of}.tar")
    for node in stage.nodes:
        node.import_image(archive)

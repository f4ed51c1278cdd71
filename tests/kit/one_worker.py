"""Test files that share a server of the whole session, or images: one worker takes them all, one file after another.

The law: on each other worker the server would start again, and stay, idle, until the session ends; images would be
built again.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

_SHARED: Final = {
    "doctor_stage": re.compile(r"kit\.doctor_stage\.stage\b"),
    "operate_stage": re.compile(r"kit\.operate_stage\.stage\b"),
    "apiserver": re.compile(r"\bapiserver: ApiServer\b"),
    "deploy": re.compile(r"\b(?:bare|applied|api_server): ApiServer\b"),
    "image_dist": re.compile(r"\bimage_dist: Path\b"),
}
"""How a file asks for each such server: by the import of its stage, or by a fixture of its folder."""


@functools.cache
def shared_server(file: Path) -> str | None:
    """The server that the tests of a file share with those of other files; None: they share none."""
    text = file.read_text(encoding="utf-8")
    return next((name for name, asked in _SHARED.items() if asked.search(text)), None)


class OneWorkerEach(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """As `--dist=loadfile` in the order of the tests, but the files of one server are one unit of work."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        # Otherwise the files with the most tests come first, and not those that take long.
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return shared_server(self.config.rootpath / file) or file

"""The style, the script and the icon of every page, as the admin port serves them.

The law: they are part of the program, nothing is loaded from another server, and a browser may keep them (ETag).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sidecar.admin.answers import Answer, Route

_TYPES: Final = {
    "style.css": "text/css; charset=utf-8",
    "script.js": "text/javascript; charset=utf-8",
    "stream.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def asset_routes() -> Mapping[str, Route]:
    """The resources, for serve_admin. The files are read now, so that a missing file fails at the start."""
    answers = {f"/{name}": _answer(name, content_type) for name, content_type in _TYPES.items()}
    return {path: functools.partial(_show, answer) for path, answer in answers.items()}


def _answer(name: str, content_type: str) -> Answer:
    octets = (Path(__file__).parent / name).read_bytes()
    return Answer(200, octets, content_type, {"ETag": f'"{hashlib.sha256(octets).hexdigest()[:16]}"'})


def _show(answer: Answer, _: Mapping[str, str]) -> Answer:
    return answer

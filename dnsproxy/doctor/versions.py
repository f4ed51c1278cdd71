"""Versions: the first numbers of what images and servers call themselves.

The law: what does not tell its version is None, never guessed; a pre-release counts as before its release. Pure.
"""

from __future__ import annotations

import re
from typing import Final

Version = tuple[int, int, int]

_VERSION: Final = re.compile(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?![\d])(-(?:alpha|beta|rc|pre)[\w.]*)?", re.ASCII)


def parse_version(text: str) -> Version | None:
    """`v1.34.4+k3s1`, `1.18.0`, `v1.30`; None for what is no version. A pre-release is the patch before: -1 for .0."""
    found = _VERSION.match(text.strip())
    if found is None:
        return None
    patch = int(found[3] or 0)
    return int(found[1]), int(found[2]), patch - 1 if found[4] else patch


def format_version(version: Version) -> str:
    """`1.18.0`."""
    return ".".join(str(max(number, 0)) for number in version)

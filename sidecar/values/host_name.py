"""The name of a host, as the Host header of HTTP states it.

The law: a name is compared in one form, in small letters and without a final dot. Pure.
"""

from __future__ import annotations

import re
from typing import Final

from sidecar.values.text import quoted

_NAME: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?")


def parse_host_name(text: str) -> str:
    """The name in its one form. Raises ValueError."""
    name = text.strip().lower().removesuffix(".")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{quoted(text)} is not the name of a host; write it without a port")
    return name

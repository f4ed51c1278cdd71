"""The build that runs, as every program states it: version, revision and Python.

The law: what was not recorded is `unknown`, never guessed, and git is never asked at run time. The version is that of
the installed distribution. The revision is the commit from which `git archive` unpacked the sources, as for a release,
or the REVISION of an image's build.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from typing import Final

DISTRIBUTION: Final = "switchback-dns"
"""The name under which packages are installed."""
UNKNOWN: Final = "unknown"
_REVISION: Final = "$Format:%H$"
"""As it is here, in a checkout; .gitattributes and the Dockerfile say what replaces it."""
_SHOWN: Final = 12
"""Characters of a revision for people."""


@dataclass(frozen=True, slots=True)
class Build:
    """What a program was built from, and what runs it; as text for people, with a short revision."""

    version: str
    revision: str
    """The commit, 40 hexadecimal digits; or `unknown`."""
    python: str
    """Such as 3.13.5."""

    def __str__(self) -> str:
        return f"{self.version}, revision {self.revision[:_SHOWN]}"

    def differs(self, other: Build) -> bool:
        """Whether the versions or the revisions are known to differ; the Python does not count."""
        pairs = ((self.version, other.version), (self.revision, other.revision))
        return any(one != another and UNKNOWN not in (one, another) for one, another in pairs)

    def labels(self) -> dict[str, str]:
        """The fields by name: for a log line, a metric and JSON."""
        return asdict(self)


@cache
def own_build() -> Build:
    """That of this process."""
    return Build(
        next(_installed_versions(), UNKNOWN),
        UNKNOWN if _REVISION.startswith("$") else _REVISION,
        ".".join(map(str, sys.version_info[:3])),
    )


def _installed_versions() -> Iterator[str]:
    """From the name of the distribution's folder, which PEP 427 fixes: importlib.metadata takes 0.6 MB to read it."""
    prefix, suffix = f"{DISTRIBUTION.replace('-', '_')}-", ".dist-info"
    for folder in sys.path:
        with suppress(OSError):
            for name in os.listdir(folder or "."):
                if name.startswith(prefix) and name.endswith(suffix):
                    yield name.removeprefix(prefix).removesuffix(suffix)

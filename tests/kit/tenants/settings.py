"""The settings of the two columns: those that deploy/ ships, and those of its component `strict`.

The law: read from the rendered manifests; only the addresses of this machine are replaced.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tests.deploy.manifests import DEPLOY, Manifest, compose, find, render, settings_of

DEFAULT: Final = "default"
STRICT: Final = "strict"
COLUMNS: Final = (DEFAULT, STRICT)

_COMPONENTS: Final = {DEFAULT: (), STRICT: ("strict",)}
_OF_THIS_MACHINE: Final = frozenset({"LISTEN", "ADMIN", "SNAPSHOT", "UPSTREAM_CONFIGMAP", "LAMEDUCK"})


@cache
def manifests(column: str) -> Sequence[Manifest]:
    """The rendered objects: the installation, and `strict`."""
    with tempfile.TemporaryDirectory(prefix="switchback-") as folder:
        wanted = [DEPLOY / "components" / name for name in _COMPONENTS[column]]
        return render(compose(Path(folder), with_components=wanted))


def settings(column: str) -> Mapping[str, str]:
    """The variables of `dnsproxy serve` in a column, without those that name a port, file or server."""
    rendered = manifests(column)
    shipped = settings_of(rendered, find(rendered, "Deployment", "dnsproxy")["spec"]["template"])
    return {key: value for key, value in shipped.items() if key.removeprefix("DNSPROXY_") not in _OF_THIS_MACHINE}

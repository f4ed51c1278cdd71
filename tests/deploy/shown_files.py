"""Files that a page shows, each in a YAML block whose first line names it: `# my-cluster/kustomization.yaml`.

The law: they are written as they are shown, except for the real path of deploy/.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from tests.deploy.manifests import DEPLOY

PAGES: Final = DEPLOY.parent / "docs" / "pages"
_SHOWN: Final = re.compile(r"```yaml\n# (?P<place>my-cluster/\S+\.yaml)\n(?P<text>.*?)```", re.DOTALL)
_DEPLOY: Final = re.compile(r"(\.\./)+deploy(?=[]/,\s])")


def write_shown(page: Path, folder: Path) -> Path:
    """Write every file that a page shows below a folder. Returns `my-cluster` in it."""
    for shown in _SHOWN.finditer(page.read_text(encoding="utf-8")):
        file = folder / shown["place"]
        file.parent.mkdir(parents=True, exist_ok=True)
        deploy = os.path.relpath(DEPLOY, file.parent.resolve())
        file.write_text(_DEPLOY.sub(deploy, shown["text"]), encoding="utf-8")
    return folder / "my-cluster"

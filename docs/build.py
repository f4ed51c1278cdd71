"""`python -m docs.build FOLDER`: build the guide as a site in FOLDER/site. A broken link is an error.

The law: pages and generated parts are combined in FOLDER, which is emptied first; nothing else is written.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from docs.fences import without_modes
from docs.generated import fill_in
from docs.speed.page import format_page
from docs.speed.tables import read_recorded

HERE: Final = Path(__file__).parent


def stage(folder: Path) -> None:
    """Write the pages in the form that the site's builder expects."""
    pages = folder / "pages"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "pages", pages)
    for page in pages.rglob("*.md"):
        page.write_text(without_modes(fill_in(page.read_text())))
    (pages / "bench.html").write_text(format_page(read_recorded()))
    shutil.copy(HERE / "zensical.toml", folder)


def build(folder: Path) -> int:
    """Build the staged pages. Returns the exit status."""
    program = Path(sys.executable).with_name("zensical")
    command = [str(program), "build", "--strict", "--clean"]
    return subprocess.run(command, cwd=folder, check=False, env={**os.environ, "NO_COLOR": "1"}).returncode


def main() -> int:
    """Stage and build."""
    folder = Path(sys.argv[1]).resolve()
    if folder.exists() and not (folder / "zensical.toml").exists() and any(folder.iterdir()):
        sys.stderr.write(f"{folder} contains other files, which would be deleted\n")
        return 2
    stage(folder)
    return build(folder)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m docs.build FOLDER`: build the guide as a site in FOLDER/site. A broken link is an error.

The law: pages and generated parts are combined in FOLDER, which is emptied first; nothing else is written. The site
works from a server and as files.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from docs.fences import without_modes
from docs.generated import fill_in
from docs.speed.page import format_page
from docs.speed.tables import read_recorded

HERE: Final = Path(__file__).parent
_STAGED: Final = ".staged"
"""A file by which a folder of an earlier build is known; no other folder is emptied."""
_PICTURE: Final = re.compile(r"!\[[^\]]*\]\(pictures/[\w-]+\.svg")
_HEADING_OR_ROW: Final = re.compile(
    r"^### (?P<heading>.+)|^\| `(?P<name>[^`]+)`\{#(?P<anchor>[^}]+)\} \| (?P<text>.*) \|$", re.MULTILINE
)
_CODE: Final = re.compile(r"(?<!</span>)(?P<start><code[^>]*>)(?P<text>[^<]+)(?=</code>)")
"""Code in a line of text; the builder puts an empty span before that of a block."""
_BREAKPOINT: Final = re.compile(r"\b76\.(?=25em|234375em)")
"""The theme shows its navigation from 76.25 em, which is 1,220 pixels; here from 72.25 em, below 1,200."""


def stage(folder: Path) -> None:
    """Write the pages in the form that the site's builder expects."""
    pages = folder / "pages"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "pages", pages)
    for page in pages.rglob("*.md"):
        page.write_text(_PICTURE.sub(_for_both_schemes, without_modes(fill_in(page.read_text()))))
    (pages / "bench.html").write_text(format_page(read_recorded(), back="speed.html"))
    shutil.copy(HERE / "zensical.toml", folder)
    (folder / _STAGED).touch()


def _for_both_schemes(picture: re.Match[str]) -> str:
    """The picture once for each scheme: the theme hides one, and the fragment selects the picture's colours."""
    return f"{picture[0]}#only-light){picture[0]}#only-dark"


def build(folder: Path) -> int:
    """Build the staged pages. Returns the exit status."""
    program = Path(sys.executable).with_name("zensical")
    command = [str(program), "build", "--strict", "--clean"]
    status = subprocess.run(command, cwd=folder, check=False, env={**os.environ, "NO_COLOR": "1"}).returncode
    if status == 0:
        _finish(folder / "pages", folder / "site")
    return status


def _finish(pages: Path, site: Path) -> None:
    """What the builder has no setting for."""
    # Its links work at the root of a server only.
    (site / "404.html").unlink()
    for file in (site / "assets").rglob("*.min.*"):
        file.write_text(_BREAKPOINT.sub("72.", file.read_text()))
    index = json.loads((site / "search.json").read_text())
    paths = {item["location"]: item["path"] for item in index["items"]}
    for page in sorted(pages.glob("*.md")):
        built = site / f"{page.stem}.html"
        built.write_text(_CODE.sub(_breakable, built.read_text()))
        index["items"] += _find_rows(page.read_text(), location=built.name, path=paths[built.name])
    text = json.dumps(index, separators=(",", ":"))
    (site / "search.json").write_text(text)
    # Opened as a file, a page may load scripts only.
    (site / "search.js").write_text(f"var __index = {text}")


def _breakable(code: re.Match[str]) -> str:
    """Names wrap after these characters; otherwise they would wrap between any two, or make their column wide."""
    return code["start"] + re.sub(r"(?<=\w)[_|:,=/]+(?=[\w\[{])", r"\g<0><wbr>", code["text"])


def _find_rows(page: str, *, location: str, path: list[str]) -> Iterator[dict[str, Any]]:
    """An item of the search index for each flag and metric: the builder's own items are whole sections."""
    heading = ""
    for found in _HEADING_OR_ROW.finditer(page):
        if found["heading"]:
            heading = found["heading"]
            continue
        command = [heading] if found["name"].startswith("-") and heading != path[-1] else []
        text = " ".join(found["text"].replace("`", "").replace(r"\|", "|").replace(" | ", " ").split())
        yield {
            "location": f"{location}#{found['anchor']}",
            "level": 3,
            "title": html.escape(found["name"], quote=False),
            "text": f"<p>{html.escape(text, quote=False)}</p>",
            "path": [*path, *command],
            "tags": [],
        }


def main() -> int:
    """Stage and build."""
    if len(sys.argv) != 2:  # noqa: PLR2004  # the program and FOLDER
        sys.stderr.write("usage: python -m docs.build FOLDER\n")
        return 2
    folder = Path(sys.argv[1]).resolve()
    if folder.exists() and not (folder / _STAGED).exists() and (not folder.is_dir() or any(folder.iterdir())):
        sys.stderr.write(f"{folder} contains other files, which would be deleted\n")
        return 2
    stage(folder)
    return build(folder)


if __name__ == "__main__":
    sys.exit(main())

"""README and CONTRIBUTING: short, and every file, command and make target that they name is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from docs.generated import PROGRAMS, ROOT
from tests.docs.test_commands import ours, parse

PAGES = ("README.md", "CONTRIBUTING.md")
TEXT = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
LINKS = [
    pytest.param(page, link, id=f"{page}: {link}")
    for page in PAGES
    for link in dict.fromkeys(re.findall(r"\]\((?!https?:|#)([^)]+)\)", TEXT[page]))
]
COMMANDS = [
    pytest.param(command, id=f"{page}: {command}")
    for page in PAGES
    for command in re.findall(r"`((?:dnsproxy|proxy|wholeip) [a-z][^`]*)`", TEXT[page])
]
MAKES = sorted({name for page in PAGES for name in re.findall(r"(?:`|^)make ([a-z-]+)", TEXT[page], re.MULTILINE)})


def test_a_stranger_reads_the_readme_in_a_minute() -> None:
    assert len(TEXT["README.md"].splitlines()) <= 150


@pytest.mark.parametrize(("page", "link"), LINKS)
def test_what_a_page_links_to_is_there(page: str, link: str) -> None:
    assert (ROOT / page).parent.joinpath(link).exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_a_page_names_is_one_of_ours(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ours(command)
    assert words == shlex.split(command)
    parse(PROGRAMS[words[0]], words)


@pytest.mark.parametrize("target", MAKES)
def test_a_target_that_a_page_names_is_in_the_makefile(target: str) -> None:
    assert target in TARGETS


def test_the_pages_name_enough() -> None:
    """Patterns that find nothing would make the tests above empty."""
    assert len(LINKS) > 20
    assert len(COMMANDS) >= 3
    assert {"demo", "test", "docs", "bench"} <= set(MAKES)

"""README and CONTRIBUTING: short, and every file, command and make target that they name is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from docs.generated import PROGRAMS, ROOT
from tests.docs.test_commands import ours, parse
from tests.kit.rows import failing

PAGES = ("README.md", "CONTRIBUTING.md")
TEXT = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
LINKS = [
    (page, link) for page in PAGES for link in dict.fromkeys(re.findall(r"\]\((?!https?:|#)([^)]+)\)", TEXT[page]))
]
COMMANDS = [
    command for page in PAGES for command in re.findall(r"`((?:dnsproxy|proxy|wholeip) [a-z][^`]*)`", TEXT[page])
]
MAKES = sorted({name for page in PAGES for name in re.findall(r"(?:`|^)make ([a-z-]+)", TEXT[page], re.MULTILINE)})


def test_a_stranger_reads_the_readme_in_a_minute() -> None:
    assert len(TEXT["README.md"].splitlines()) <= 150


def test_what_a_page_links_to_is_there() -> None:
    assert [(page, link) for page, link in LINKS if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_a_command_that_a_page_names_is_one_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(command: str) -> None:
        words = ours(command)
        assert words == shlex.split(command)
        parse(PROGRAMS[words[0]], words)

    monkeypatch.chdir(tmp_path)
    assert failing(check, COMMANDS) == []


def test_a_target_that_a_page_names_is_in_the_makefile() -> None:
    assert set(MAKES) - TARGETS == set()


def test_the_pages_name_enough() -> None:
    """Patterns that find nothing would make the tests above empty."""
    assert len(LINKS) > 20
    assert len(COMMANDS) >= 3
    assert {"demo", "test", "docs", "bench"} <= set(MAKES)

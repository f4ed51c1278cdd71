"""Sections of the changelog."""

from __future__ import annotations

import pytest

from release.changelog import sections
from tests.release.clones import PROJECT, VERSION

TEXT = """\
# Changelog

## Unreleased

- Newer.

## 0.2.0 (2026-11-26)

- Two.

### Fixed

- More of two.

## [0.1.0] - 2026-01-01

- One. ## 0.0.1 is no heading here.
"""


def test_each_section_is_found_by_its_version() -> None:
    assert sections(TEXT) == {
        "Unreleased": "- Newer.",
        "0.2.0": "- Two.\n\n### Fixed\n\n- More of two.",
        "0.1.0": "- One. ## 0.0.1 is no heading here.",
    }


@pytest.mark.parametrize(
    "text",
    ["", "# Changelog\n", "### 0.1.0\n- One\n", " ## 0.1.0\n", "##0.1.0\n", "text ## 0.1.0\n"],
    ids=["empty", "no section", "third level", "indented", "no blank", "inside a line"],
)
def test_other_lines_begin_no_section(text: str) -> None:
    assert sections(text) == {}


def test_an_empty_section_is_empty() -> None:
    assert sections("## Unreleased\n\n## 0.1.0\n- One\n") == {"Unreleased": "", "0.1.0": "- One"}


def test_a_second_section_of_one_version_names_its_line() -> None:
    with pytest.raises(ValueError, match=r"CHANGELOG.md:4: a second section 0\.1\.0"):
        sections("## 0.1.0\n- One\n\n## 0.1.0 (again)\n")


def test_our_own_changelog_has_a_section_of_the_version_that_a_user_reads_to_its_end() -> None:
    found = sections((PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert list(found)[:2] == ["Unreleased", VERSION]
    assert 5 < len(found[VERSION].splitlines()) < 60

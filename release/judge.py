"""Decides whether a release may be built from a repository's state, and says what to do if not.

The law: every reason is reported, not only the first. A snapshot needs neither tag nor section of the changelog; it
needs a clean work tree too, because its files name a commit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from release.artefacts import CHECKSUMS, artefacts
from release.changelog import UNRELEASED, sections
from release.image_name import ImageName

# What is a version for Python (PEP 440), for Helm (SemVer) and a tag of an image, all three.
_VERSION: Final = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)")
_SHOWN: Final = 5


@dataclass(frozen=True)
class Repository:
    """The state of a repository."""

    version: str
    """Of pyproject.toml."""
    commit: str
    """HEAD, forty hexadecimal digits."""
    time: int
    """Of the commit, in seconds: SOURCE_DATE_EPOCH of everything that is built."""
    tags: Sequence[str]
    """The tags of HEAD."""
    changed: Sequence[str]
    """Paths that differ from HEAD, or that git does not know and does not ignore."""
    changelog: str
    default_image: str | None
    """`[tool.switchback] image` of pyproject.toml."""
    default_downloads: str | None = None
    """`[tool.switchback] downloads` of pyproject.toml."""


def refusals(
    repository: Repository,
    *,
    snapshot: bool,
    image: ImageName,
    image_given: bool,
    in_dist: Sequence[str],
    downloads: str = "",
    downloads_given: bool = True,
) -> list[str]:
    """Why nothing may be built, one line for each reason; empty if it may."""
    version, reasons = repository.version, []
    if not _VERSION.fullmatch(version):
        reasons.append(f"pyproject.toml: version {version!r} is not MAJOR.MINOR.PATCH, as Helm and PyPI both need")
    if repository.changed:
        reasons.append(
            f"the work tree is not clean: {_some(repository.changed)}; commit, or `git stash --include-untracked`"
        )
    foreign = sorted(set(in_dist) - {one.name for one in artefacts(version)} - {CHECKSUMS})
    if foreign:
        reasons.append(
            f"--dist has files that are not of {version}: {_some(foreign)}; remove them, or name another folder"
        )
    reasons += _changelog_reasons(repository, snapshot=snapshot)
    if snapshot:
        return reasons
    if f"v{version}" not in repository.tags:
        has = f"has the tag {_some(repository.tags)}" if repository.tags else "has no tag"
        reasons.append(
            f"HEAD {has}, and pyproject.toml has the version {version}: check out the tag v{version}, or make it with "
            f"`git tag -a v{version} -m v{version}`, or build with --snapshot"
        )
    if image.is_example and not image_given:
        reasons.append(
            f"{image} is an example, and every manifest would name it: give the real name with --image (make release "
            "IMAGE=...), or put it into pyproject.toml, [tool.switchback]"
        )
    if not downloads_given and "//example." in downloads:
        reasons.append(
            f"{downloads} is an example, and kubectl's plugin would be fetched from there: give the real address with "
            "--downloads, or put it into pyproject.toml, [tool.switchback]"
        )
    return reasons


def _changelog_reasons(repository: Repository, *, snapshot: bool) -> list[str]:
    version = repository.version
    try:
        found = sections(repository.changelog)
    except ValueError as error:
        return [str(error)]
    if snapshot:
        missing = version not in found and UNRELEASED not in found
        return [f"CHANGELOG.md has neither a section {version} nor {UNRELEASED}"] if missing else []
    if version not in found:
        return [
            f"CHANGELOG.md has no section {version}: rename `## {UNRELEASED}` to `## {version}`, and write a new, "
            f"empty `## {UNRELEASED}` above it"
        ]
    reasons = [] if found[version] else [f"CHANGELOG.md: the section {version} is empty"]
    if found.get(UNRELEASED):
        reasons.append(
            f"CHANGELOG.md: {UNRELEASED} is not empty, and a release has all that its commit has: move it to {version}"
        )
    return reasons


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")

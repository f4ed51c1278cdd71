"""The commands that publish a release, one for each kind.

The law: nothing here runs them. Each is one line for a shell, in the order in which to run them: images before the
manifests that name them, and the page of the release last.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from release.artefacts import (
    CHECKSUMS,
    NOTES,
    REPOSITORIES,
    Kind,
    artefacts,
    chart_name,
    image_name,
    sdist_name,
    wheel_name,
)
from release.image_name import ImageName


@dataclass(frozen=True)
class Push:
    """One command."""

    what: str
    where: str
    command: tuple[str, ...]

    @property
    def line(self) -> str:
        """The command for a shell."""
        return shlex.join(self.command)


def pushes(version: str, *, dist: str, image: ImageName, kinds: Iterable[Kind]) -> tuple[Push, ...]:
    """The commands for the files of these kinds in `dist`."""
    wanted = frozenset(kinds)
    found = []
    if Kind.IMAGES in wanted:
        found += [_image_push(version, repository, dist=dist, image=image) for repository in REPOSITORIES]
    if Kind.CHART in wanted:
        found.append(Push("chart", image.charts, ("helm", "push", f"{dist}/{chart_name(version)}", image.charts)))
    if Kind.WHEEL in wanted:
        files = (f"{dist}/{wheel_name(version)}", f"{dist}/{sdist_name(version)}")
        found.append(
            Push("wheel and sdist", "the package index; UV_PUBLISH_URL names another", ("uv", "publish", *files))
        )
    if wanted == frozenset(Kind):
        found.append(_page_push(version, dist=dist))
    return tuple(found)


def _image_push(version: str, repository: str, *, dist: str, image: ImageName) -> Push:
    """--all copies both platforms; with --preserve-digests a registry that would change the image is an error."""
    target = f"{image.beside(repository)}:{version}"
    source = f"oci-archive:{dist}/{image_name(repository, version)}:{version}"
    command = ("skopeo", "copy", "--all", "--preserve-digests", source, f"docker://{target}")
    return Push(f"image {repository}", target, command)


def _page_push(version: str, *, dist: str) -> Push:
    """All files with SHA256SUMS, so that `sha256sum -c` finds each; the notes are the page's text, and a file too."""
    files = [f"{dist}/{one.name}" for one in artefacts(version)] + [f"{dist}/{CHECKSUMS}"]
    words = (
        "gh",
        "release",
        "create",
        f"v{version}",
        "--verify-tag",
        "--title",
        version,
        "--notes-file",
        f"{dist}/{NOTES}",
    )
    return Push("files", f"the forge's page of v{version}", (*words, *files))

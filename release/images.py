"""The images of a release: for each target of the Dockerfile one OCI archive, with an index for amd64 and arm64.

The law: nothing is pushed, and nothing is emulated. What the archive holds depends on the sources, the version, the
commit's time and the base alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from release.buildah import Buildah

PLATFORMS: Final = ("linux/amd64", "linux/arm64")
TARGETS: Final[Mapping[str, str]] = {"programs": "switchback", "with-nftables": "switchback-nftables"}
"""The Dockerfile's targets, and the repository of each: the last part of the image's name in a registry."""


@dataclass(frozen=True)
class ImageRelease:
    """One image as it is in `dist`."""

    file: Path
    """The OCI archive, for `skopeo copy --all --preserve-digests oci-archive:FILE docker://IMAGE:TAG`."""
    repository: str
    """switchback or switchback-nftables."""
    digest: str
    """Of the index, `sha256:...`: what a registry has after that command, and what manifests name."""
    platforms: Mapping[str, str] = field(default_factory=dict)
    """The digest of each platform's own manifest: {"linux/amd64": "sha256:..."}."""


def build_images(
    *,
    source: Path,
    dist: Path,
    version: str,
    revision: str,
    epoch: int,
    base: Mapping[str, str] | None = None,
    buildah: Buildah | None = None,
) -> dict[str, ImageRelease]:
    """Build both targets for both platforms, and write their archives into `dist`. Takes minutes.

    Args:
        source: a folder with the release's sources alone, for example of `git archive`; the Dockerfile is in it.
        dist: gets switchback-VERSION-image.oci.tar and switchback-nftables-VERSION-image.oci.tar.
        version: of the image's label, without a v in front.
        revision: the commit, for the label.
        epoch: the commit's time in seconds (SOURCE_DATE_EPOCH): the time of each file and of the image.
        base: the base image of each platform, by platform: {"linux/amd64": "localhost/base:1", "linux/arm64": ...},
            of one distribution with one version of Python. None means the Dockerfile's own base, which has both.
        buildah: how buildah is called, if not plainly: another storage, options such as `--volume` for each build.

    Returns:
        The images by target: {"programs": ..., "with-nftables": ...}.

    Raises:
        BuildFailed: buildah is missing, or failed; the message has the end of its output.
    """
    raise NotImplementedError

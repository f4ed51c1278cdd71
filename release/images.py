"""The images of a release: for each target of the Dockerfile one OCI archive, with an index for amd64 and arm64.

The law: nothing is pushed, and nothing is emulated. Two runs give the same octets on one machine, if the sources, the
version, the commit's time and the base are the same:

- switchback-VERSION-image.oci.tar depends on nothing else, because the lock file has the hash of every package. Another
  version of buildah may compress layers to other octets; their contents, `rootfs` in the configuration, stay the same.
- switchback-nftables-VERSION-image.oci.tar has nft and its libraries besides, from the package sources of the base: the
  newest version of that day. Two runs differ if Debian published another one in between.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from release.buildah import Buildah, BuildFailed
from release.oci import pack

PLATFORMS: Final = ("linux/amd64", "linux/arm64")
TARGETS: Final[Mapping[str, str]] = {"programs": "switchback", "with-nftables": "switchback-nftables"}
"""The Dockerfile's targets, and the repository of each: the last part of the image's name in a registry."""
_MACHINES: Final = {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}

BASE_FLAG: Final = "--base"
BASE_HELP: Final = (
    "The base image of a platform, as linux/amd64=NAME; give it for linux/amd64 and for linux/arm64. Both need one "
    "version of Python and one of Debian. By default the Dockerfile's own base, which has both and comes from a public "
    "registry."
)
"""For the help of the command that has the flag."""


@dataclass(frozen=True)
class ImageRelease:
    """One image as it is in `dist`."""

    file: Path
    """The OCI archive, for `skopeo copy --all --preserve-digests oci-archive:FILE docker://IMAGE:TAG`."""
    repository: str
    """switchback or switchback-nftables."""
    digest: str
    """Of the index, `sha256:...`: what a registry has after that command, and what manifests name."""
    platforms: Mapping[str, str]
    """The digest of each platform's own manifest: {"linux/amd64": "sha256:...", ...}."""


class BadBase(ValueError):
    """The flag for the base is wrong; the message says how it is written."""


def parse_base(words: Sequence[str]) -> dict[str, str] | None:
    """The values of the flag, `linux/amd64=NAME`, by platform; None if there is none. Raises BadBase."""
    found: dict[str, str] = {}
    for word in words:
        wanted, _, name = word.partition("=")
        if wanted not in PLATFORMS or not name or name.startswith("-"):
            raise BadBase(f"{BASE_FLAG} {word}: write {' or '.join(f'{one}=NAME' for one in PLATFORMS)}")
        if wanted in found:
            raise BadBase(f"{BASE_FLAG} {word}: {wanted} has the base {found[wanted]} already")
        found[wanted] = name
    missing = [one for one in PLATFORMS if one not in found]
    if found and missing:
        raise BadBase(f"{BASE_FLAG}: {missing[0]} has no base; add {BASE_FLAG} {missing[0]}=NAME")
    return found or None


def build_images(
    *,
    source: Path,
    dist: Path,
    version: str,
    revision: str,
    epoch: int,
    base: Mapping[str, str] | None = None,
    buildah: Buildah | None = None,
    targets: Iterable[str] = TARGETS,
) -> dict[str, ImageRelease]:
    """Build the targets for both platforms, and write their archives into `dist`. Takes minutes.

    Args:
        source: a folder with the release's sources alone, for example of `git archive`; the Dockerfile is in it.
        dist: gets switchback-VERSION-image.oci.tar and switchback-nftables-VERSION-image.oci.tar.
        version: of the image's label, without a v in front.
        revision: the commit, for the label.
        epoch: the commit's time in seconds (SOURCE_DATE_EPOCH): the time of each file and of the image.
        base: the base image of each platform, by platform: {"linux/amd64": "localhost/base:1", "linux/arm64": ...},
            of one distribution with one version of Python. None means the Dockerfile's own base, which has both.
        buildah: how buildah is called, if not plainly: another storage, options such as `--volume` for each build.
        targets: of the Dockerfile; both unless named.

    Returns:
        The images by target: {"programs": ..., "with-nftables": ...}.

    Raises:
        BuildFailed: buildah is missing, or failed; the message has the end of its output.
        Damaged: an image is not what buildah said.
    """
    builder = buildah or Buildah()
    dist.mkdir(parents=True, exist_ok=True)
    labels = {"VERSION": version, "REVISION": revision}
    made = {}
    for target in targets:
        repository = TARGETS[target]
        file = dist / f"{repository}-{version}-image.oci.tar"
        with TemporaryDirectory(prefix="switchback-image-") as folder:
            layout = Path(folder) / "layout"
            for wanted in PLATFORMS:
                arguments = {**labels, **builder_arguments(wanted, machine=platform.machine(), base=base)}
                with _built(builder, source, target=target, wanted=wanted, arguments=arguments, epoch=epoch) as image:
                    builder.run("push", "--quiet", "--format=oci", image, f"oci:{layout}:{wanted.replace('/', '-')}")
            packed = pack(layout, file, name=f"localhost/{repository}:{version}", tag=version, epoch=epoch)
        made[target] = ImageRelease(file, repository, packed.digest, packed.platforms)
    return made


def builder_arguments(wanted: str, *, machine: str, base: Mapping[str, str] | None) -> dict[str, str]:
    """The build arguments for a platform on a machine (x86_64, aarch64): where the first stages run, and the bases.

    Raises BuildFailed for another machine: no stage could run there.
    """
    here = _MACHINES.get(machine)
    if here is None:
        raise BuildFailed(f"images are built on {' and '.join(_MACHINES)}; this machine is {machine}")
    # Older versions of buildah do not know this argument by themselves.
    arguments = {"BUILDPLATFORM": here}
    if base is not None:
        arguments |= {"BASE": base[wanted], "BUILD_BASE": base[here]}
    return arguments


def working_name(target: str, wanted: str) -> str:
    """The name of an image in buildah's storage while this process builds a release; another one has other names."""
    return f"localhost/switchback-release-{os.getpid()}:{target}-{wanted.replace('/', '-')}"


@contextmanager
def _built(
    buildah: Buildah, source: Path, *, target: str, wanted: str, arguments: Mapping[str, str], epoch: int
) -> Iterator[str]:
    """The image's name in buildah's storage until the end of the block."""
    name = working_name(target, wanted)
    words = [f"--build-arg={key}={value}" for key, value in arguments.items()]
    # The label would have buildah's version.
    words += ["--identity-label=false", f"--timestamp={epoch}", f"--platform={wanted}", f"--target={target}"]
    buildah.run("bud", "--quiet", *buildah.options, *words, f"--tag={name}", str(source))
    try:
        yield name
    finally:
        # Not --force: of another run with an equal image it would take the name too.
        buildah.run("rmi", name)

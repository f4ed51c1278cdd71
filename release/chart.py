"""Builds switchback-VERSION.tgz: the chart of deploy/chart with the image by digest.

The law: helm packs it, and what helm packed is then packed again with the commit's time, in the order of names: helm
writes the hour of the run. Its default values install the image of this release and no other.
"""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from release.artefacts import REPOSITORIES
from release.commands import failed, peer_program, run
from release.image_name import ImageName
from release.pinned import NotPinned, check_manifests
from release.values import BadValues, set_images

_BLOCKS: Final = dict(zip(REPOSITORIES, ("image", "nftablesImage"), strict=True))
"""The block of values.yaml for each image."""


def build_chart(
    source: Path, target: Path, *, work: Path, version: str, image: ImageName, digests: Mapping[str, str], epoch: int
) -> None:
    """Write the chart; `digests` of the images by repository. Raises StartError."""
    chart = source / "deploy" / "chart"
    if not (chart / "Chart.yaml").exists():
        raise failed("deploy/chart/Chart.yaml is missing in the commit; leave the chart out with --only")
    copy = work / "switchback"
    # Its manifests are links to those of deploy/.
    shutil.copytree(chart, copy)
    values = copy / "values.yaml"
    images = {block: (str(image.beside(name)), digests[name]) for name, block in _BLOCKS.items()}
    try:
        text = set_images(values.read_text(encoding="utf-8"), images)
    except (BadValues, OSError) as error:
        raise failed(f"deploy/chart: {error}") from error
    values.write_text(text, encoding="utf-8")
    readme = copy / "README.md"
    published = f" {image.charts}/switchback --version {version}"
    readme.write_text(readme.read_text(encoding="utf-8").replace(" deploy/chart", published), encoding="utf-8")
    helm, home = peer_program("helm"), {name: str(work / "helm") for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME")}
    versions = ("--version", version, "--app-version", version)
    run(helm, "package", str(copy), *versions, "--destination", str(work), epoch=epoch, more=home)
    packed = work / f"switchback-{version}.tgz"
    if not packed.exists():
        raise failed("deploy/chart/Chart.yaml: the chart's name is not switchback")
    objects = run(helm, "template", "switchback", str(packed), "--namespace", "switchback", more=home)
    _check(objects, image, digests[REPOSITORIES[0]])
    target.write_bytes(normalise(packed.read_bytes(), epoch=epoch))


def normalise(archive: bytes, *, epoch: int) -> bytes:
    """The same files as a .tgz that depends on nothing but their names, contents and `epoch`."""
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as old,
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=epoch) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as new,
    ):
        for entry in sorted(old, key=lambda one: one.name):
            plain = tarfile.TarInfo(entry.name)
            plain.size, plain.mtime, plain.mode = entry.size, epoch, 0o644
            new.addfile(plain, old.extractfile(entry))
    return packed.getvalue()


def _check(objects: str, image: ImageName, digest: str) -> None:
    try:
        check_manifests(objects, image=f"{image}@{digest}", namespace_first=False)
    except NotPinned as error:
        raise failed(f"deploy/chart with its default values: {error}") from error

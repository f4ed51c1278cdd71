"""Carries out a plan: builds each file in a folder of its own, and moves it into `dist` when it is complete.

The law: one step for each kind, in the order of the plan; the manifests' digests are read from the archives in `dist`,
so they are those of the files that are pushed. A step that cannot build its file is an error, never a gap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from release.artefacts import (
    CHECKSUMS,
    NOTES,
    PLUGIN,
    README,
    REPOSITORIES,
    ZIPAPP,
    Kind,
    artefacts,
    chart_name,
    image_name,
    image_sbom_name,
    manifest_name,
    plugin_name,
    wheel_sbom_name,
)
from release.buildah import Buildah, BuildFailed
from release.chart import build_chart
from release.checksums import format_checksums
from release.commands import failed
from release.images import build_images
from release.manifest import build_manifest
from release.notes import format_notes, format_readme
from release.oci import Damaged
from release.plan import Plan
from release.plugin import format_plugin, pack_plugin
from release.repository import unpack_sources, write_image_name
from release.sbom.archive import BadArchive, index_digest, read_contents
from release.sbom.bom import Package, format_bom
from release.sbom.lock import BadLock, needed_by
from release.wheel import build_wheel
from release.zipapp import build_zipapp
from sidecar.values.build import DISTRIBUTION

_LICENCE: Final = "Apache-2.0"


@dataclass(frozen=True)
class Building:
    """One run's folders and settings."""

    plan: Plan
    repository: Path
    dist: Path
    changelog: str
    bases: Mapping[str, str] | None
    buildah: Buildah | None
    progress: Callable[[str], None]
    """Is called with the name of each step."""


def build(run: Building) -> dict[str, str]:
    """Build everything of the plan. Returns the SHA-256 of each file of the release in `dist`. Raises StartError."""
    plan = run.plan
    run.dist.mkdir(parents=True, exist_ok=True)
    # Of an earlier run; without it a run that fails leaves no folder that looks complete.
    (run.dist / CHECKSUMS).unlink(missing_ok=True)
    with TemporaryDirectory(prefix=".building-", dir=run.dist) as folder:
        work = Path(folder)
        source = work / "source"
        unpack_sources(run.repository, plan.commit, source)
        write_image_name(source, image=str(plan.image), version=plan.version)
        if plan.kinds & {Kind.WHEEL, Kind.ZIPAPP}:
            _python_files(run, source, work)
        if Kind.IMAGES in plan.kinds:
            _images(run, source, work)
        _texts(run, source, work)
    return _checksums(run)


def _python_files(run: Building, source: Path, work: Path) -> None:
    plan, out = run.plan, work / "wheel"
    run.progress("wheel and source archive")
    wheel, sdist = build_wheel(source, out, version=plan.version, epoch=plan.time)
    if Kind.ZIPAPP in plan.kinds:
        run.progress(f"{ZIPAPP}: packages for each Python and processor")
        folder = work / "zipapp"
        folder.mkdir()
        build_zipapp(source, wheel, out / ZIPAPP, work=folder, epoch=plan.time)
        _keep(run, *_plugin(plan, out, licence=(source / "LICENSE").read_bytes()), out / ZIPAPP)
    if Kind.WHEEL in plan.kinds:
        sbom = out / wheel_sbom_name(plan.version)
        sbom.write_text(_wheel_sbom(plan, wheel, (source / "uv.lock").read_text(encoding="utf-8")), encoding="utf-8")
        _keep(run, wheel, sdist, sbom)


def _plugin(plan: Plan, out: Path, *, licence: bytes) -> Sequence[Path]:
    """The archive of kubectl's plugin, and its manifest."""
    archive, manifest = out / plugin_name(plan.version), out / PLUGIN
    archive.write_bytes(pack_plugin((out / ZIPAPP).read_bytes(), licence, epoch=plan.time))
    uri = f"{plan.downloads}/v{plan.version}/{archive.name}"
    manifest.write_text(format_plugin(plan.version, uri=uri, sha256=_digest(archive)), encoding="utf-8")
    return archive, manifest


def _wheel_sbom(plan: Plan, wheel: Path, lock: str) -> str:
    try:
        locked = needed_by(DISTRIBUTION, lock)
    except BadLock as error:
        raise failed(str(error)) from error
    own = next(one for one in locked if one.name == DISTRIBUTION)
    return format_bom(
        Package("pypi", DISTRIBUTION, plan.version, needs=own.needs, licence=_LICENCE),
        digest=_digest(wheel),
        packages=[Package("pypi", one.name, one.version, needs=one.needs) for one in locked if one is not own],
        time=plan.time,
    )


def _images(run: Building, source: Path, work: Path) -> None:
    plan, out = run.plan, work / "images"
    run.progress("images for amd64 and arm64 (minutes)")
    try:
        build_images(
            source=source,
            dist=out,
            version=plan.version,
            revision=plan.commit,
            epoch=plan.time,
            base=run.bases,
            buildah=run.buildah,
        )
    except (BuildFailed, Damaged) as error:
        raise failed(f"images: {error}") from error
    for repository in REPOSITORIES:
        archive = out / image_name(repository, plan.version)
        run.progress(f"what is in {archive.name}")
        _keep(run, *_image_sboms(run, repository, archive), archive)


def _image_sboms(run: Building, repository: str, archive: Path) -> Sequence[Path]:
    plan, written = run.plan, []
    try:
        contents = read_contents(archive)
    except BadArchive as error:
        raise failed(str(error)) from error
    where = plan.image.beside(repository)
    for one in contents:
        if not one.has_debian_packages:
            run.progress(
                f"warning: the base for {one.architecture} has no dpkg status, so no document lists its packages"
            )
        name = str(where).rpartition("/")[2]
        place = (("arch", one.architecture), ("repository_url", str(where)), ("tag", plan.version))
        text = format_bom(
            Package("oci", name, one.digest, licence=_LICENCE, qualifiers=place),
            digest=one.digest.removeprefix("sha256:"),
            packages=one.packages,
            time=plan.time,
        )
        file = archive.with_name(image_sbom_name(repository, plan.version, one.architecture))
        file.write_text(text, encoding="utf-8")
        written.append(file)
    return written


def _texts(run: Building, source: Path, work: Path) -> None:
    """The files that name the images."""
    plan = run.plan
    if not any(kind.needs_images for kind in plan.kinds):
        return
    digests = {repository: _image_digest(run, repository) for repository in REPOSITORIES}
    out = work / "texts"
    out.mkdir()
    if Kind.MANIFEST in plan.kinds:
        run.progress("manifest")
        file = out / manifest_name(plan.version)
        build_manifest(source, file, version=plan.version, image=plan.image, digest=digests[REPOSITORIES[0]])
        _keep(run, file)
    if Kind.CHART in plan.kinds:
        run.progress("chart")
        file, folder = out / chart_name(plan.version), work / "chart"
        folder.mkdir()
        build_chart(source, file, work=folder, version=plan.version, image=plan.image, digests=digests, epoch=plan.time)
        _keep(run, file)
    if Kind.NOTES in plan.kinds:
        run.progress("notes")
        (out / NOTES).write_text(format_notes(plan, changelog=run.changelog, digests=digests), encoding="utf-8")
        (out / README).write_text(_readme(plan, source), encoding="utf-8")
        _keep(run, out / NOTES, out / README)


def _readme(plan: Plan, source: Path) -> str:
    try:
        return format_readme(plan, (source / README).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise failed(str(error)) from error


def _image_digest(run: Building, repository: str) -> str:
    archive = run.dist / image_name(repository, run.plan.version)
    if not archive.exists():
        raise failed(
            f"{archive} is missing, and the manifest, the chart and the notes need its digest: build the images too"
        )
    try:
        return index_digest(archive)
    except BadArchive as error:
        raise failed(str(error)) from error


def _keep(run: Building, *files: Path) -> None:
    for file in files:
        file.replace(run.dist / file.name)


def _checksums(run: Building) -> dict[str, str]:
    """Write SHA256SUMS about all files of this release that are there, those of earlier runs too."""
    run.progress("checksums")
    present = [run.dist / one.name for one in artefacts(run.plan.version) if (run.dist / one.name).exists()]
    digests = {file.name: _digest(file) for file in present}
    (run.dist / CHECKSUMS).write_text(format_checksums(digests), encoding="utf-8")
    return digests


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()

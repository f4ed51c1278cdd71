"""The archives of the images are the same twice, and a registry that was given one has what the release names."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from release.buildah import Buildah
from release.images import PLATFORMS, TARGETS, ImageRelease, build_images, working_name
from tests.conftest import refuse
from tests.deploy.containers import output
from tests.deploy.image import (
    BASE,
    BASE_ARM64,
    Image,
    build_options,
    buildah,
    buildah_command,
    copy_sources,
    has_image,
    make_base,
    make_base_arm64,
)
from tests.kit.oci_registry import digest_in, registry, skopeo

BASES = {"linux/amd64": BASE, "linux/arm64": BASE_ARM64}
EPOCH = 1_700_000_000
REVISION = "0123456789abcdef0123456789abcdef01234567"
peers = pytest.mark.peer("buildah", "debian-base", "debian-base-arm64", "skopeo", "docker-registry")
# Four images are built for each run: a minute on an idle machine.
slow = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.geteuid() != 0:
        refuse("building an image without a daemon needs root")
    return copy_sources(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def released(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ImageRelease]:
    make_base()
    make_base_arm64()
    return build(tmp_path_factory.mktemp("released"), source=sources)


def build(folder: Path, *, source: Path) -> dict[str, ImageRelease]:
    return build_images(
        source=source,
        dist=folder / "dist",
        version="1.2.3",
        revision=REVISION,
        epoch=EPOCH,
        base=BASES,
        buildah=Buildah(buildah_command(), build_options(folder)),
    )


@peers
@slow
def test_each_target_has_an_archive_for_both_platforms(released: Mapping[str, ImageRelease]) -> None:
    assert {target: one.file.name for target, one in released.items()} == {
        "programs": "switchback-1.2.3-image.oci.tar",
        "with-nftables": "switchback-nftables-1.2.3-image.oci.tar",
    }
    for one in released.values():
        assert set(one.platforms) == set(PLATFORMS)
        index = blob(one.file, one.digest)
        assert [listed["digest"] for listed in index["manifests"]] == [one.platforms[name] for name in PLATFORMS]
    assert len({one.digest for one in released.values()}) == len(TARGETS)


@peers
@slow
def test_an_image_says_its_version_and_has_the_commits_time(released: Mapping[str, ImageRelease]) -> None:
    for one in released.values():
        for platform, digest in one.platforms.items():
            config = blob(one.file, blob(one.file, digest)["config"]["digest"])
            labels = config["config"]["Labels"]
            assert labels["org.opencontainers.image.version"] == "1.2.3"
            assert labels["org.opencontainers.image.revision"] == REVISION
            assert config["created"] == "2023-11-14T22:13:20Z"
            assert f"{config['os']}/{config['architecture']}" == platform


@peers
@slow
def test_two_runs_give_the_same_octets(released: Mapping[str, ImageRelease], sources: Path, tmp_path: Path) -> None:
    again = build(tmp_path, source=sources)
    assert {target: one.digest for target, one in again.items()} == {
        target: one.digest for target, one in released.items()
    }
    for target, one in again.items():
        assert one.file.read_bytes() == released[target].file.read_bytes(), target


@peers
@slow
def test_no_image_stays_in_buildahs_storage(released: Mapping[str, ImageRelease]) -> None:
    names = [working_name(target, wanted) for target, one in released.items() for wanted in one.platforms]
    assert len(set(names)) == len(TARGETS) * len(PLATFORMS)
    assert [name for name in names if has_image(name)] == []


@peers
@slow
@pytest.mark.parametrize("target", TARGETS)
def test_a_registry_has_the_digest_that_the_release_names(
    released: Mapping[str, ImageRelease], target: str, tmp_path: Path
) -> None:
    one = released[target]
    with pushed(one, tmp_path) as (port, image):
        assert digest_in(port, one.repository, "1.2.3") == one.digest
        assert digest_in(port, one.repository, "none") is None
        for platform, digest in one.platforms.items():
            assert digest_in(port, one.repository, digest) == digest
            pulled, architecture = tmp_path / digest, platform.partition("/")[2]
            choice = ["--override-os=linux", f"--override-arch={architecture}"]
            skopeo(*choice, "copy", "--src-tls-verify=false", f"docker://{image}@{one.digest}", f"dir:{pulled}")
            config = json.loads((pulled / "manifest.json").read_text())["config"]["digest"].removeprefix("sha256:")
            assert json.loads((pulled / config).read_text())["architecture"] == architecture


@peers
@slow
def test_an_image_that_was_pulled_by_digest_runs(released: Mapping[str, ImageRelease], tmp_path: Path) -> None:
    one = released["programs"]
    with pushed(one, tmp_path) as (_, image):
        pulled = Image(f"{image}@{one.digest}")
        buildah("pull", "--quiet", "--tls-verify=false", pulled.name)
        try:
            with pulled.container() as container:
                assert "Usage:" in output(container, "dnsproxy", "--help")
        finally:
            pulled.remove()


@contextmanager
def pushed(one: ImageRelease, folder: Path) -> Iterator[tuple[int, str]]:
    """The port of a registry that was given the archive as the release's notes say, and the image's name there."""
    with registry(folder) as port:
        image = f"127.0.0.1:{port}/{one.repository}"
        words = ["copy", "--all", "--preserve-digests", "--dest-tls-verify=false"]
        skopeo(*words, f"oci-archive:{one.file}", f"docker://{image}:1.2.3")
        yield port, image


def blob(archive: Path, digest: str) -> Any:
    with tarfile.open(archive) as tar:
        file = tar.extractfile(f"blobs/{digest.replace(':', '/')}")
        assert file is not None
        return json.loads(file.read())

"""The images of one release, built once for every test that reads them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.deploy.containers import refuse_without_root
from tests.deploy.image import BASE, BASE_ARM64, build_options, buildah_command, make_base, make_base_arm64
from tests.release.clones import IMAGE, PROJECT, VERSION, make_clone, release


@pytest.fixture(scope="session")
def image_bases() -> Mapping[str, str]:
    """By platform."""
    refuse_without_root()
    make_base()
    make_base_arm64()
    return {"linux/amd64": BASE, "linux/arm64": BASE_ARM64}


@pytest.fixture(scope="session")
def image_clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose Dockerfile has another version: an image has the release's only if the build was told."""
    text = (PROJECT / "Dockerfile").read_text()
    assert f"ARG VERSION={VERSION}" in text
    more = {"Dockerfile": text.replace(f"ARG VERSION={VERSION}", "ARG VERSION=none")}
    return make_clone(tmp_path_factory.mktemp("clone") / "repository", more=more)


@pytest.fixture(scope="session")
def image_dist(image_clone: Path, image_bases: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command made of it: both images for both platforms, a minute on an idle machine."""
    folder = tmp_path_factory.mktemp("images")
    words = ["--image", IMAGE, "--only", "images,manifest,notes", "--buildah", shlex.join(buildah_command())]
    words += [f"--base={platform}={base}" for platform, base in image_bases.items()]
    words += [f"--buildah-option={one}" for one in build_options(folder)]
    done = release(image_clone, folder / "dist", *words)
    assert done.returncode == 0, done.stderr
    return folder / "dist"

"""A release with the real images, for both platforms: the same twice, and a registry gets what the release names.

What the images are themselves: tests/deploy/test_image*.py.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.artefacts import ARCHITECTURES, REPOSITORIES, image_name, image_sbom_name
from release.buildah import Buildah
from release.images import PLATFORMS, TARGETS, ImageRelease, build_images, working_name
from release.repository import unpack_sources, write_image_name
from tests.deploy.containers import output, refuse_without_root
from tests.deploy.image import (
    BASE,
    BASE_ARM64,
    Image,
    build_options,
    buildah,
    buildah_command,
    has_image,
    make_base,
    make_base_arm64,
)
from tests.kit.oci_registry import digest_in, registry, skopeo
from tests.kit.programs import program
from tests.release.clones import EPOCH, IMAGE, PROJECT, VERSION, git, make_clone, release
from tests.release.sbom.test_bom import is_valid

# Each of two runs builds four images: a minute on an idle machine.
pytestmark = [
    pytest.mark.peer("buildah", "debian-base", "debian-base-arm64", "docker-registry", "kubectl", "skopeo"),
    pytest.mark.timeout(900),
]

BASES = {"linux/amd64": BASE, "linux/arm64": BASE_ARM64}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    refuse_without_root()
    make_base()
    make_base_arm64()
    # Another version than the release's, so that an image has the latter only if the build was told.
    text = (PROJECT / "Dockerfile").read_text()
    assert f"ARG VERSION={VERSION}" in text
    more = {"Dockerfile": text.replace(f"ARG VERSION={VERSION}", "ARG VERSION=none")}
    return make_clone(tmp_path_factory.mktemp("clone") / "repository", more=more)


@pytest.fixture(scope="module")
def dist(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the command."""
    folder = tmp_path_factory.mktemp("images")
    words = ["--image", IMAGE, "--only", "images,manifest,notes", "--buildah", shlex.join(buildah_command())]
    words += [f"--base={platform}={base}" for platform, base in BASES.items()]
    words += [f"--buildah-option={one}" for one in build_options(folder)]
    done = release(clone, folder / "dist", *words)
    assert done.returncode == 0, done.stderr
    return folder / "dist"


@pytest.fixture(scope="module")
def released(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ImageRelease]:
    """Of the same commit, built once more."""
    folder = tmp_path_factory.mktemp("again")
    unpack_sources(clone, revision(clone), folder / "sources")
    write_image_name(folder / "sources", image=IMAGE, version=VERSION)
    return build_images(
        source=folder / "sources",
        dist=folder / "dist",
        version=VERSION,
        revision=revision(clone),
        epoch=EPOCH,
        base=BASES,
        buildah=Buildah(buildah_command(), build_options(folder)),
    )


def revision(clone: Path) -> str:
    return git(clone, "rev-parse", "HEAD").strip()


def test_each_target_has_an_archive_for_both_platforms(released: Mapping[str, ImageRelease]) -> None:
    assert {target: one.file.name for target, one in released.items()} == {
        "programs": f"switchback-{VERSION}-image.oci.tar",
        "with-nftables": f"switchback-nftables-{VERSION}-image.oci.tar",
    }
    for one in released.values():
        assert set(one.platforms) == set(PLATFORMS)
        index = blob(one.file, one.digest)
        assert [listed["digest"] for listed in index["manifests"]] == [one.platforms[name] for name in PLATFORMS]
    assert len({one.digest for one in released.values()}) == len(TARGETS)


def test_an_image_says_its_version_and_has_the_commits_time(clone: Path, released: Mapping[str, ImageRelease]) -> None:
    for one in released.values():
        for platform, digest in one.platforms.items():
            config = blob(one.file, blob(one.file, digest)["config"]["digest"])
            labels = config["config"]["Labels"]
            assert labels["org.opencontainers.image.version"] == VERSION
            assert labels["org.opencontainers.image.revision"] == revision(clone)
            assert config["created"] == "2023-11-14T22:13:20Z"
            assert f"{config['os']}/{config['architecture']}" == platform


def test_two_runs_give_the_same_octets(dist: Path, released: Mapping[str, ImageRelease]) -> None:
    for one in released.values():
        assert one.file.read_bytes() == (dist / one.file.name).read_bytes(), one.file.name


def test_no_image_stays_in_buildahs_storage(released: Mapping[str, ImageRelease]) -> None:
    names = [working_name(target, wanted) for target, one in released.items() for wanted in one.platforms]
    assert len(set(names)) == len(TARGETS) * len(PLATFORMS)
    assert [name for name in names if has_image(name)] == []


@pytest.mark.parametrize("target", TARGETS)
def test_a_registry_has_the_digest_that_the_release_names(
    released: Mapping[str, ImageRelease], target: str, tmp_path: Path
) -> None:
    one = released[target]
    with pushed(one, tmp_path) as (port, image):
        assert digest_in(port, one.repository, VERSION) == one.digest
        assert digest_in(port, one.repository, "none") is None
        for platform, digest in one.platforms.items():
            assert digest_in(port, one.repository, digest) == digest
            pulled, architecture = tmp_path / digest, platform.partition("/")[2]
            choice = ["--override-os=linux", f"--override-arch={architecture}"]
            skopeo(*choice, "copy", "--src-tls-verify=false", f"docker://{image}@{one.digest}", f"dir:{pulled}")
            config = json.loads((pulled / "manifest.json").read_text())["config"]["digest"].removeprefix("sha256:")
            assert json.loads((pulled / config).read_text())["architecture"] == architecture


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


def test_the_manifest_and_the_notes_name_the_digest_that_is_pushed(dist: Path) -> None:
    digests = {repository: inspected(dist, repository)[0] for repository in REPOSITORIES}
    objects = list(yaml.safe_load_all((dist / f"switchback-{VERSION}.yaml").read_text()))
    pods = [one["spec"]["template"]["spec"] for one in objects if one["kind"] == "Deployment"]
    assert {container["image"] for pod in pods for container in pod["containers"]} == {
        f"{IMAGE}@{digests['switchback']}"
    }
    notes = (dist / "RELEASE_NOTES.md").read_text()
    for digest in digests.values():
        assert digest in notes


@pytest.mark.parametrize("repository", REPOSITORIES)
def test_each_platform_has_a_document_about_its_own_manifest(dist: Path, repository: str) -> None:
    _, listed = inspected(dist, repository)
    for architecture, text in documents(dist, repository).items():
        assert is_valid(text)
        described = json.loads(text)["metadata"]["component"]
        assert f"sha256:{described['hashes'][0]['content']}" == listed[architecture]
        assert f"arch={architecture}" in described["purl"]


def test_the_documents_have_the_packages_of_python_of_the_base_and_nft(dist: Path) -> None:
    names = {
        repository: {
            one["purl"].partition("@")[0] for one in json.loads(documents(dist, repository)["amd64"])["components"]
        }
        for repository in REPOSITORIES
    }
    plain, with_nft = (names[repository] for repository in REPOSITORIES)
    assert {"pkg:pypi/trio", "pkg:pypi/switchback-dns", "pkg:deb/debian/libc6"} <= plain < with_nft
    assert {"pkg:deb/debian/nftables", "pkg:deb/debian/libnftables1"} <= with_nft - plain
    assert "pkg:pypi/kubernetes" not in with_nft


def documents(dist: Path, repository: str) -> dict[str, str]:
    return {one: (dist / image_sbom_name(repository, VERSION, one)).read_text() for one in ARCHITECTURES}


def inspected(dist: Path, repository: str) -> tuple[str, dict[str, str]]:
    """The digest of the index, and that of each architecture's manifest, as skopeo reads them."""
    source = f"oci-archive:{dist / image_name(repository, VERSION)}:{VERSION}"
    raw = subprocess.check_output([program("skopeo"), "inspect", "--raw", source])
    digest = subprocess.check_output([program("skopeo"), "manifest-digest", "/dev/stdin"], input=raw, text=False)
    listed = {one["platform"]["architecture"]: one["digest"] for one in json.loads(raw)["manifests"]}
    return digest.decode().strip(), listed


@contextmanager
def pushed(one: ImageRelease, folder: Path) -> Iterator[tuple[int, str]]:
    """The port of a registry that was given the archive as the release's notes say, and the image's name there."""
    with registry(folder) as port:
        image = f"127.0.0.1:{port}/{one.repository}"
        words = ["copy", "--all", "--preserve-digests", "--dest-tls-verify=false"]
        skopeo(*words, f"oci-archive:{one.file}", f"docker://{image}:{VERSION}")
        yield port, image


def blob(archive: Path, digest: str) -> Any:
    with tarfile.open(archive) as tar:
        file = tar.extractfile(f"blobs/{digest.replace(':', '/')}")
        assert file is not None
        return json.loads(file.read())

"""A release with the real images, for both platforms: the same twice, and a registry gets what the release names.

What the images are themselves: tests/deploy/test_image*.py.
"""

from __future__ import annotations

import json
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
from release.images import PLATFORMS, ImageRelease, build_images, working_name
from release.repository import unpack_sources, write_image_name
from tests.deploy.containers import output
from tests.deploy.image import Image, build_options, buildah, buildah_command, has_image
from tests.kit.oci_registry import digest_in, registry, skopeo
from tests.kit.programs import program
from tests.release.clones import EPOCH, IMAGE, VERSION, git
from tests.release.sbom.test_bom import is_valid

pytestmark = [
    pytest.mark.peer("buildah", "debian-base", "debian-base-arm64", "docker-registry", "kubectl", "skopeo"),
    pytest.mark.timeout(900),
]

each = pytest.mark.parametrize("repository", REPOSITORIES)


@pytest.fixture(scope="module")
def again(image_clone: Path, image_bases: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> ImageRelease:
    """The image without nft once more: what Debian publishes meanwhile is in the other."""
    folder = tmp_path_factory.mktemp("again")
    unpack_sources(image_clone, revision(image_clone), folder / "sources")
    write_image_name(folder / "sources", image=IMAGE, version=VERSION)
    (made,) = build_images(
        source=folder / "sources",
        dist=folder / "dist",
        version=VERSION,
        revision=revision(image_clone),
        epoch=EPOCH,
        base=image_bases,
        buildah=Buildah(buildah_command(), build_options(folder)),
        targets=("programs",),
    ).values()
    return made


def revision(clone: Path) -> str:
    return git(clone, "rev-parse", "HEAD").strip()


@each
def test_an_image_is_an_index_of_both_platforms(image_dist: Path, repository: str) -> None:
    digest, listed = inspected(image_dist, repository)
    assert [f"linux/{architecture}" for architecture in listed] == list(PLATFORMS)
    index = blob(image_dist / image_name(repository, VERSION), digest)
    assert [one["digest"] for one in index["manifests"]] == list(listed.values())


@each
def test_an_image_says_its_version_and_has_the_commits_time(
    image_clone: Path, image_dist: Path, repository: str
) -> None:
    archive = image_dist / image_name(repository, VERSION)
    for architecture, digest in inspected(image_dist, repository)[1].items():
        config = blob(archive, blob(archive, digest)["config"]["digest"])
        labels = config["config"]["Labels"]
        assert labels["org.opencontainers.image.version"] == VERSION
        assert labels["org.opencontainers.image.revision"] == revision(image_clone)
        assert config["created"] == "2023-11-14T22:13:20Z"
        assert (config["os"], config["architecture"]) == ("linux", architecture)


def test_two_runs_give_the_same_octets(image_dist: Path, again: ImageRelease) -> None:
    assert again.file.name == image_name(again.repository, VERSION)
    assert again.file.read_bytes() == (image_dist / again.file.name).read_bytes()
    assert (again.digest, again.platforms) == (
        inspected(image_dist, again.repository)[0],
        {f"linux/{name}": digest for name, digest in inspected(image_dist, again.repository)[1].items()},
    )


def test_no_image_stays_in_buildahs_storage(again: ImageRelease) -> None:
    assert [name for wanted in again.platforms if has_image(name := working_name("programs", wanted))] == []


@each
def test_a_registry_has_the_digest_that_the_release_names(image_dist: Path, repository: str, tmp_path: Path) -> None:
    digest, listed = inspected(image_dist, repository)
    with pushed(image_dist, repository, tmp_path) as (port, image):
        assert digest_in(port, repository, VERSION) == digest
        assert digest_in(port, repository, "none") is None
        for architecture, one in listed.items():
            assert digest_in(port, repository, one) == one
            pulled = tmp_path / one
            choice = ["--override-os=linux", f"--override-arch={architecture}"]
            skopeo(*choice, "copy", "--src-tls-verify=false", f"docker://{image}@{digest}", f"dir:{pulled}")
            config = json.loads((pulled / "manifest.json").read_text())["config"]["digest"].removeprefix("sha256:")
            assert json.loads((pulled / config).read_text())["architecture"] == architecture


def test_an_image_that_was_pulled_by_digest_runs(image_dist: Path, tmp_path: Path) -> None:
    digest, _ = inspected(image_dist, "switchback")
    with pushed(image_dist, "switchback", tmp_path) as (_, image):
        pulled = Image(f"{image}@{digest}")
        buildah("pull", "--quiet", "--tls-verify=false", pulled.name)
        try:
            with pulled.container() as container:
                assert "Usage:" in output(container, "dnsproxy", "--help")
        finally:
            pulled.remove()


def test_the_manifest_and_the_notes_name_the_digest_that_is_pushed(image_dist: Path) -> None:
    digests = {repository: inspected(image_dist, repository)[0] for repository in REPOSITORIES}
    objects = list(yaml.safe_load_all((image_dist / f"switchback-{VERSION}.yaml").read_text()))
    pods = [one["spec"]["template"]["spec"] for one in objects if one["kind"] == "Deployment"]
    assert {container["image"] for pod in pods for container in pod["containers"]} == {
        f"{IMAGE}@{digests['switchback']}"
    }
    notes = (image_dist / "RELEASE_NOTES.md").read_text()
    for digest in digests.values():
        assert digest in notes


@each
def test_each_platform_has_a_document_about_its_own_manifest(image_dist: Path, repository: str) -> None:
    _, listed = inspected(image_dist, repository)
    for architecture, text in documents(image_dist, repository).items():
        assert is_valid(text)
        described = json.loads(text)["metadata"]["component"]
        assert f"sha256:{described['hashes'][0]['content']}" == listed[architecture]
        assert f"arch={architecture}" in described["purl"]


def test_the_documents_have_the_packages_of_python_of_the_base_and_nft(image_dist: Path) -> None:
    listed = [json.loads(documents(image_dist, one)["amd64"])["components"] for one in REPOSITORIES]
    plain, with_nft = ({one["purl"].partition("@")[0] for one in components} for components in listed)
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
def pushed(dist: Path, repository: str, folder: Path) -> Iterator[tuple[int, str]]:
    """The port of a registry that was given the archive as the release's notes say, and the image's name there."""
    with registry(folder) as port:
        image = f"127.0.0.1:{port}/{repository}"
        words = ["copy", "--all", "--preserve-digests", "--dest-tls-verify=false"]
        skopeo(*words, f"oci-archive:{dist / image_name(repository, VERSION)}", f"docker://{image}:{VERSION}")
        yield port, image


def blob(archive: Path, digest: str) -> Any:
    with tarfile.open(archive) as tar:
        file = tar.extractfile(f"blobs/{digest.replace(':', '/')}")
        assert file is not None
        return json.loads(file.read())

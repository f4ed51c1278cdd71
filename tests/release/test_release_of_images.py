"""A release with the real images, for both platforms: the manifest and the documents are about what is pushed.

What the images are themselves: tests/deploy/test_image*.py.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from release.artefacts import ARCHITECTURES, REPOSITORIES, image_name, image_sbom_name
from tests.conftest import refuse
from tests.deploy.image import BASE, BASE_ARM64, build_options, buildah_command, make_base, make_base_arm64
from tests.kit.programs import program
from tests.release.clones import IMAGE, VERSION, make_clone, release

pytestmark = [
    pytest.mark.peer("buildah", "debian-base", "debian-base-arm64", "kubectl", "skopeo"),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.geteuid() != 0:
        refuse("building an image without a daemon needs root")
    folder = tmp_path_factory.mktemp("images")
    make_base()
    make_base_arm64()
    words = ["--image", IMAGE, "--only", "images,manifest,notes", "--buildah", shlex.join(buildah_command())]
    words += [f"--base=linux/amd64={BASE}", f"--base=linux/arm64={BASE_ARM64}"]
    words += [f"--buildah-option={one}" for one in build_options(folder)]
    done = release(make_clone(folder / "repository"), folder / "dist", *words)
    assert done.returncode == 0, done.stderr
    return folder / "dist"


def documents(dist: Path, repository: str) -> dict[str, str]:
    return {one: (dist / image_sbom_name(repository, VERSION, one)).read_text() for one in ARCHITECTURES}


def inspected(dist: Path, repository: str) -> tuple[str, dict[str, str]]:
    """The digest of the index, and that of each architecture's manifest, as skopeo reads them."""
    source = f"oci-archive:{dist / image_name(repository, VERSION)}:{VERSION}"
    raw = subprocess.check_output([program("skopeo"), "inspect", "--raw", source])
    digest = subprocess.check_output([program("skopeo"), "manifest-digest", "/dev/stdin"], input=raw, text=False)
    listed = {one["platform"]["architecture"]: one["digest"] for one in json.loads(raw)["manifests"]}
    return digest.decode().strip(), listed


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
        assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
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

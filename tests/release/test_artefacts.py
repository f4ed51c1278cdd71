"""The names of a release's files."""

from __future__ import annotations

import re
import tomllib

import pytest

from release.artefacts import ALL_KINDS, ARCHITECTURES, REPOSITORIES, Kind, artefacts
from release.images import PLATFORMS, TARGETS
from sidecar.values.build import DISTRIBUTION
from tests.release.clones import PROJECT


def test_every_kind_has_a_file_and_no_name_comes_twice() -> None:
    files = artefacts("0.1.0")
    assert {one.kind for one in files} == ALL_KINDS
    assert len({one.name for one in files}) == len(files)


def test_the_wheel_has_the_name_and_the_image_the_version_of_the_project() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    dockerfile = (PROJECT / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"^ARG VERSION=(.*)$", dockerfile, re.MULTILINE) == [project["version"]]


def test_the_images_are_those_that_are_built() -> None:
    """The module that builds them has names of its own, and both must agree."""
    assert tuple(TARGETS.values()) == REPOSITORIES
    assert tuple(f"linux/{one}" for one in ARCHITECTURES) == PLATFORMS


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            Kind.WHEEL,
            ["switchback_dns-1.2.3-py3-none-any.whl", "switchback_dns-1.2.3.tar.gz", "switchback-1.2.3-wheel.cdx.json"],
        ),
        (Kind.ZIPAPP, ["switchback.pyz", "kubectl-switchback-1.2.3.tar.gz", "krew-switchback.yaml"]),
        (Kind.MANIFEST, ["switchback-1.2.3.yaml"]),
        (Kind.CHART, ["switchback-1.2.3.tgz"]),
        (Kind.NOTES, ["RELEASE_NOTES.md", "README.md"]),
        (
            Kind.IMAGES,
            [
                "switchback-1.2.3-image.oci.tar",
                "switchback-1.2.3-image-amd64.cdx.json",
                "switchback-1.2.3-image-arm64.cdx.json",
                "switchback-nftables-1.2.3-image.oci.tar",
                "switchback-nftables-1.2.3-image-amd64.cdx.json",
                "switchback-nftables-1.2.3-image-arm64.cdx.json",
            ],
        ),
    ],
    ids=str,
)
def test_a_kind_has_these_files(kind: Kind, names: list[str]) -> None:
    assert [one.name for one in artefacts("1.2.3", [kind])] == names


def test_what_names_an_image_by_digest_needs_the_images() -> None:
    assert {kind for kind in Kind if kind.needs_images} == {Kind.MANIFEST, Kind.CHART, Kind.NOTES}

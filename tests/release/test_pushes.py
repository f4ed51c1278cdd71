"""The commands that publish a release."""

from __future__ import annotations

import re
import shlex

import pytest

from release.artefacts import ALL_KINDS, CHECKSUMS, Kind, artefacts
from release.pushes import pushes
from tests.release.plans import IMAGE


def lines(*kinds: Kind) -> list[str]:
    return [one.line for one in pushes("0.1.0", dist="dist", image=IMAGE, kinds=kinds)]


def test_each_kind_has_its_command() -> None:
    assert lines(Kind.IMAGES) == [
        "skopeo copy --all --preserve-digests oci-archive:dist/switchback-0.1.0-image.oci.tar:0.1.0 "
        "docker://registry.example.org/switchback:0.1.0",
        "skopeo copy --all --preserve-digests oci-archive:dist/switchback-nftables-0.1.0-image.oci.tar:0.1.0 "
        "docker://registry.example.org/switchback-nftables:0.1.0",
    ]
    assert lines(Kind.CHART) == ["helm push dist/switchback-0.1.0.tgz oci://registry.example.org/charts"]
    assert lines(Kind.WHEEL) == [
        "uv publish dist/switchback_dns-0.1.0-py3-none-any.whl dist/switchback_dns-0.1.0.tar.gz"
    ]


@pytest.mark.parametrize("kind", [Kind.ZIPAPP, Kind.MANIFEST, Kind.NOTES])
def test_files_go_to_the_page_with_the_whole_release_alone(kind: Kind) -> None:
    assert lines(kind) == []
    assert lines(*(ALL_KINDS - {kind}))[-1].startswith("uv publish")


def test_the_page_gets_every_file_of_the_checksums_and_is_last() -> None:
    words = shlex.split(lines(*ALL_KINDS)[-1])
    assert words[:4] == ["gh", "release", "create", "v0.1.0"]
    names = {one.name for one in artefacts("0.1.0")} | {CHECKSUMS}
    assert {word.removeprefix("dist/") for word in words[4:] if re.match("dist/", word)} == names


def test_images_come_before_what_names_them() -> None:
    assert [line.split()[0] for line in lines(*ALL_KINDS)] == ["skopeo", "skopeo", "helm", "uv", "gh"]


def test_a_folder_with_a_blank_is_quoted() -> None:
    (one,) = pushes("0.1.0", dist="my dist", image=IMAGE, kinds=[Kind.CHART])
    assert shlex.split(one.line)[2] == "my dist/switchback-0.1.0.tgz"

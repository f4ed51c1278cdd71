"""What is found in an image's layers."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from release.sbom.archive import BadArchive, index_digest, read_contents
from tests.release.archives import Layer, metadata, usual_layers, write_archive

TRIO = "app/lib/python3.13/site-packages/trio-0.31.0.dist-info/METADATA"
NFT = "Package: nftables\nVersion: 1.1.3-1\nArchitecture: amd64\n"


def purls(folder: Path, layers: Sequence[Layer], env: Sequence[str] = ()) -> list[str]:
    archive = folder / "image.oci.tar"
    write_archive(archive, {"amd64": layers}, env=env)
    (contents,) = read_contents(archive)
    return [str(one.purl) for one in contents.packages]


def test_packages_of_python_and_of_debian_are_found(tmp_path: Path) -> None:
    found = purls(tmp_path, usual_layers("amd64"))
    assert found == ["pkg:pypi/trio@0.31.0", "pkg:deb/debian/libc6@2.41-12?arch=amd64&distro=debian-13"]


def test_each_platform_has_its_own(tmp_path: Path) -> None:
    digest = write_archive(tmp_path / "image.oci.tar")
    contents = read_contents(tmp_path / "image.oci.tar")
    assert [one.architecture for one in contents] == ["amd64", "arm64"]
    assert [one.has_debian_packages for one in contents] == [True, True]
    assert len({one.digest for one in contents}) == 2
    assert index_digest(tmp_path / "image.oci.tar") == digest not in {one.digest for one in contents}


LAYERS: Mapping[str, tuple[Sequence[Layer], list[str]]] = {
    "a file replaced above": ([{TRIO: metadata("trio", "1")}, {TRIO: metadata("trio", "2")}], ["pkg:pypi/trio@2"]),
    "a file deleted above": ([{TRIO: metadata("trio", "1")}, {TRIO.replace("METADATA", ".wh.METADATA"): ""}], []),
    "its folder deleted above": ([{TRIO: metadata("trio", "1")}, {"app/.wh.lib": ""}], []),
    "a folder emptied above": (
        [{TRIO: metadata("trio", "1")}, {"app/.wh..wh..opq": "", "app/x.dist-info/METADATA": metadata("x", "2")}],
        ["pkg:pypi/x@2"],
    ),
    "the root emptied above": ([{TRIO: metadata("trio", "1")}, {".wh..wh..opq": ""}], []),
    "a neighbor deleted": (
        [{TRIO: metadata("trio", "1")}, {"app/lib/python3.13/.wh.site": ""}],
        ["pkg:pypi/trio@1"],
    ),
    "deleted and put back": (
        [{TRIO: metadata("trio", "1")}, {"app/.wh.lib": ""}, {TRIO: metadata("trio", "3")}],
        ["pkg:pypi/trio@3"],
    ),
    "paths with a dot": ([{f"./{TRIO}": metadata("trio", "1")}], ["pkg:pypi/trio@1"]),
    "unpacked packages": ([{"var/lib/dpkg/status.d/nftables": NFT}], ["pkg:deb/debian/nftables@1.1.3-1?arch=amd64"]),
    "an empty status": ([{"var/lib/dpkg/status": ""}], []),
    "a name to normalise": ([{TRIO: metadata("Some_Name.X", "1")}], ["pkg:pypi/some-name-x@1"]),
    "other files": (
        [{"app/METADATA": "Name: x", "x/status": "Package: y", "var/lib/dpkg/status-old": "Package: z"}],
        [],
    ),
}


@pytest.mark.parametrize(("layers", "expected"), LAYERS.values(), ids=LAYERS)
def test_layers_are_put_over_each_other(tmp_path: Path, layers: Sequence[Layer], expected: list[str]) -> None:
    assert purls(tmp_path, layers) == expected


def test_a_compiled_python_is_known_by_its_variable(tmp_path: Path) -> None:
    assert purls(tmp_path, [{"a": ""}], env=["PATH=/bin", "PYTHON_VERSION=3.13.9"]) == ["pkg:generic/python@3.13.9"]


@pytest.mark.parametrize(
    ("field", "licence"),
    [
        ("License-Expression: MIT OR Apache-2.0", "MIT OR Apache-2.0"),
        ("License: BSD", "BSD"),
        ("License: first line\n        and a whole text", None),
        ("Author: A", None),
    ],
    ids=["an expression", "the old field", "a whole text", "none"],
)
def test_a_licence_is_taken_if_it_is_short(tmp_path: Path, field: str, licence: str | None) -> None:
    write_archive(tmp_path / "image.oci.tar", {"amd64": [{TRIO: metadata("trio", "1", field)}]})
    ((package,),) = (one.packages for one in read_contents(tmp_path / "image.oci.tar"))
    assert package.licence == licence


def tar_of(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, octets in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(octets)
            tar.addfile(entry, io.BytesIO(octets))
    return packed.getvalue()


BAD = {
    "no file": None,
    "empty": b"",
    "no tar": b"x" * 2000,
    "no index": tar_of({"a": b""}),
    "index is no JSON": tar_of({"index.json": b"{"}),
    "index is a list": tar_of({"index.json": b"[]"}),
    "two images": tar_of({"index.json": json.dumps({"manifests": [{"digest": "sha256:a"}] * 2}).encode()}),
    "no image": tar_of({"index.json": b'{"manifests": []}'}),
}


@pytest.mark.parametrize("octets", BAD.values(), ids=BAD)
def test_another_file_is_an_error_that_names_it(tmp_path: Path, octets: bytes | None) -> None:
    archive = tmp_path / "image.oci.tar"
    if octets is not None:
        archive.write_bytes(octets)
    for read in (index_digest, read_contents):
        with pytest.raises(BadArchive, match=r"image\.oci\.tar"):
            read(archive)


def test_a_missing_blob_is_an_error(tmp_path: Path) -> None:
    archive = tmp_path / "image.oci.tar"
    archive.write_bytes(tar_of({"index.json": json.dumps({"manifests": [{"digest": "sha256:a"}]}).encode()}))
    with pytest.raises(BadArchive, match="blobs/sha256/a"):
        read_contents(archive)

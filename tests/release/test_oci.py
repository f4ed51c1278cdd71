from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from release.oci import INDEX, Damaged, Packed, blob_path, digest_of, encode, pack

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
AMD64 = {"architecture": "amd64", "os": "linux"}
ARM64 = {"architecture": "arm64", "os": "linux", "variant": "v8"}
EPOCH = 1_700_000_000


def put(layout: Path, octets: bytes) -> str:
    """A blob's digest, after it was written."""
    digest = f"sha256:{hashlib.sha256(octets).hexdigest()}"
    path = layout / "blobs" / "sha256" / digest.removeprefix("sha256:")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(octets)
    return digest


def make_layout(folder: Path, platforms: Sequence[Mapping[str, str]] = (AMD64, ARM64)) -> Path:
    """As buildah writes it, with a layer that all have and one of each."""
    listed = []
    for platform in platforms:
        layers = [{"digest": put(folder, octets)} for octets in (b"base", json.dumps(platform).encode())]
        config = {"digest": put(folder, json.dumps(platform).encode() + b"\n")}
        manifest = json.dumps({"config": config, "layers": layers}).encode()
        described = {"mediaType": MANIFEST, "digest": put(folder, manifest), "size": len(manifest)}
        listed.append(described | {"annotations": {"org.opencontainers.image.ref.name": platform["architecture"]}})
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": listed}))
    return folder


def packed(layout: Path, archive: Path) -> Packed:
    return pack(layout, archive, name="localhost/switchback:1.2.3", tag="1.2.3", epoch=EPOCH)


def read(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {one.name: (tar.extractfile(one) or io.BytesIO()).read() for one in tar}


def test_an_archive_has_one_index_of_all_platforms(tmp_path: Path) -> None:
    found = packed(make_layout(tmp_path / "layout"), tmp_path / "a.tar")
    files = read(tmp_path / "a.tar")
    (root,) = json.loads(files["index.json"])["manifests"]
    assert (root["mediaType"], root["digest"]) == (INDEX, found.digest)
    index = files[f"blobs/sha256/{found.digest.removeprefix('sha256:')}"]
    assert (digest_of(index), len(index)) == (found.digest, root["size"])
    listed = json.loads(index)["manifests"]
    assert [one["platform"] for one in listed] == [AMD64, ARM64]
    assert found.platforms == {"linux/amd64": listed[0]["digest"], "linux/arm64": listed[1]["digest"]}
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}


def test_every_blob_is_under_its_digest_and_none_is_there_twice(tmp_path: Path) -> None:
    packed(make_layout(tmp_path / "layout"), tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar") as tar:
        names = tar.getnames()
    assert len(names) == len(set(names))
    blobs = {name: text for name, text in read(tmp_path / "a.tar").items() if name.startswith("blobs/")}
    # The index; of each platform its manifest, configuration and layer; and the layer of both.
    assert len(blobs) == 8
    assert all(digest_of(text) == name.removeprefix("blobs/").replace("/", ":") for name, text in blobs.items())


def test_an_image_has_its_name_for_containerd_and_its_tag_for_skopeo(tmp_path: Path) -> None:
    packed(make_layout(tmp_path / "layout"), tmp_path / "a.tar")
    (root,) = json.loads(read(tmp_path / "a.tar")["index.json"])["manifests"]
    assert root["annotations"] == {
        "io.containerd.image.name": "localhost/switchback:1.2.3",
        "org.opencontainers.image.ref.name": "1.2.3",
    }


def test_equal_images_give_equal_octets_in_any_order(tmp_path: Path) -> None:
    one = packed(make_layout(tmp_path / "one", (AMD64, ARM64)), tmp_path / "one.tar")
    other = packed(make_layout(tmp_path / "other", (ARM64, AMD64)), tmp_path / "other.tar")
    assert one == other
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "other.tar").read_bytes()


def test_what_no_index_leads_to_is_left_out(tmp_path: Path) -> None:
    packed(make_layout(tmp_path / "one"), tmp_path / "one.tar")
    layout = make_layout(tmp_path / "other")
    put(layout, b"of an earlier build")
    packed(layout, tmp_path / "other.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "other.tar").read_bytes()


def test_an_entry_belongs_to_root_and_has_the_time_of_the_commit(tmp_path: Path) -> None:
    packed(make_layout(tmp_path / "layout"), tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar") as tar:
        entries = {(one.uid, one.gid, one.uname, one.gname, one.mtime, one.mode, one.isfile()) for one in tar}
    assert entries == {(0, 0, "", "", EPOCH, 0o644, True)}


def first_blob(layout: Path, *, suffix: bytes) -> Path:
    return next(path for path in sorted((layout / "blobs" / "sha256").iterdir()) if path.read_bytes().endswith(suffix))


def lose_a_layer(layout: Path) -> None:
    blob_path(layout, digest_of(b"base")).unlink()


def change_a_layer(layout: Path) -> None:
    blob_path(layout, digest_of(b"base")).write_bytes(b"other")


def lose_a_configuration(layout: Path) -> None:
    first_blob(layout, suffix=b"\n").unlink()


def garble_a_configuration(layout: Path) -> None:
    first_blob(layout, suffix=b"\n").write_bytes(b"{")


def lose_the_index(layout: Path) -> None:
    (layout / "index.json").unlink()


def garble_the_index(layout: Path) -> None:
    (layout / "index.json").write_bytes(b"\xff")


def list_a_platform_twice(layout: Path) -> None:
    listed = json.loads((layout / "index.json").read_text())["manifests"]
    (layout / "index.json").write_text(json.dumps({"manifests": [*listed, listed[0]]}))


def list_a_path(layout: Path) -> None:
    bad = {"manifests": [{"mediaType": MANIFEST, "digest": "sha256:../../../../etc/passwd", "size": 1}]}
    (layout / "index.json").write_text(json.dumps(bad))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lose_a_layer, "is missing"),
        (change_a_layer, "is not what its name says"),
        (lose_a_configuration, "is missing"),
        (garble_a_configuration, "is not JSON"),
        (lose_the_index, "index.json is missing"),
        (garble_the_index, "index.json is not JSON"),
        (list_a_platform_twice, "two images of one platform"),
        (list_a_path, "is no sha256 digest"),
    ],
)
def test_a_damaged_layout_is_told_with_its_file(tmp_path: Path, damage: Callable[[Path], None], said: str) -> None:
    layout = make_layout(tmp_path / "layout")
    damage(layout)
    with pytest.raises(Damaged, match=said) as caught:
        packed(layout, tmp_path / "a.tar")
    assert str(layout) in str(caught.value)


@pytest.mark.parametrize(
    "digest",
    ["", "sha256:", "sha256:00", f"sha512:{'0' * 128}", f"sha256:{'0' * 63}G", f"sha256:{'A' * 64}", f"{'0' * 64}"],
)
def test_only_a_sha256_digest_is_a_blob(tmp_path: Path, digest: str) -> None:
    with pytest.raises(Damaged, match="is no sha256 digest"):
        blob_path(tmp_path, digest)


def test_json_is_the_same_for_equal_documents() -> None:
    assert encode({"b": 1, "a": [1, 2]}) == encode({"a": [1, 2], "b": 1}) == b'{"a":[1,2],"b":1}'

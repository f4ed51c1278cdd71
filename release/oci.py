"""An OCI image layout as one tar archive, in which the images of several platforms are one index.

The law: equal blobs, names and times give equal octets, in whatever order the layout lists its images. What the index
does not lead to is left out. Only files are read and written; no builder and no registry is asked.
Source: image-spec 1.1, image-layout.md and image-index.md.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

INDEX: Final = "application/vnd.oci.image.index.v1+json"
_TAG: Final = "org.opencontainers.image.ref.name"
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_NAME: Final = "io.containerd.image.name"


class Damaged(Exception):
    """A layout does not hold what it lists; the message names the file."""


@dataclass(frozen=True)
class Packed:
    """What an archive holds."""

    digest: str
    """Of the index, `sha256:...`."""
    platforms: Mapping[str, str]
    """The digest of each platform's manifest, by platform: linux/amd64."""


def pack(layout: Path, archive: Path, *, name: str, tag: str, epoch: int) -> Packed:
    """Write all images of a layout's folder into an archive, as one index.

    Args:
        layout: with `index.json` and `blobs/sha256`.
        archive: the file to write.
        name: what `ctr images import` and `docker load` call the image.
        tag: what skopeo and others select it by.
        epoch: the time of each entry, in seconds.

    Raises:
        Damaged: a file is missing, or is another than its digest says.
    """
    images = sorted((_describe(layout, one) for one in _json(layout / "index.json")["manifests"]), key=_platform)
    if len({_platform(one) for one in images}) != len(images):
        raise Damaged(f"{layout}/index.json lists two images of one platform")
    index = encode({"schemaVersion": 2, "mediaType": INDEX, "manifests": images})
    digest, named = digest_of(index), {_NAME: name, _TAG: tag}
    root = {"mediaType": INDEX, "digest": digest, "size": len(index), "annotations": named}
    texts = {
        "oci-layout": encode({"imageLayoutVersion": "1.0.0"}),
        "index.json": encode({"schemaVersion": 2, "manifests": [root]}),
        _place(digest): index,
    }
    with tarfile.open(archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, text in texts.items():
            tar.addfile(_entry(path, size=len(text), epoch=epoch), io.BytesIO(text))
        for blob in sorted({blob for one in images for blob in _reached(layout, one)}):
            _add_blob(tar, layout, blob, epoch=epoch)
    return Packed(digest=digest, platforms={_platform(one): one["digest"] for one in images})


def encode(document: Mapping[str, Any]) -> bytes:
    """JSON that is the same for equal documents."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def digest_of(text: bytes) -> str:
    """`sha256:...`."""
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def blob_path(layout: Path, digest: str) -> Path:
    """The file of a blob. Raises Damaged for a digest of another kind, or none."""
    if not _DIGEST.fullmatch(digest):
        raise Damaged(f"{layout}: {digest!a} is no sha256 digest")
    return layout / _place(digest)


def _place(digest: str) -> str:
    """The path of a blob in a layout."""
    return f"blobs/{digest.replace(':', '/')}"


def _describe(layout: Path, listed: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of one image in the index: what its layout says of it, and the platform of its configuration."""
    manifest = _json(blob_path(layout, listed["digest"]))
    configuration = _json(blob_path(layout, manifest["config"]["digest"]))
    platform = {key: configuration[key] for key in ("architecture", "os", "variant") if key in configuration}
    return {**{key: listed[key] for key in ("mediaType", "digest", "size")}, "platform": platform}


def _platform(described: Mapping[str, Any]) -> str:
    """As builders write it, without the variant: an image for arm64 is for its version 8 in any case."""
    return f"{described['platform']['os']}/{described['platform']['architecture']}"


def _reached(layout: Path, described: Mapping[str, Any]) -> Iterator[str]:
    """The digests of an image's manifest, configuration and layers."""
    manifest = _json(blob_path(layout, described["digest"]))
    layers: Sequence[Mapping[str, Any]] = manifest["layers"]
    yield described["digest"]
    yield manifest["config"]["digest"]
    yield from (layer["digest"] for layer in layers)


def _add_blob(tar: tarfile.TarFile, layout: Path, digest: str, *, epoch: int) -> None:
    path = blob_path(layout, digest)
    try:
        with path.open("rb") as file:
            if f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" != digest:
                raise Damaged(f"{path} is not what its name says")
            file.seek(0)
            tar.addfile(_entry(_place(digest), size=path.stat().st_size, epoch=epoch), file)
    except FileNotFoundError as error:
        raise Damaged(f"{path} is missing") from error


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise Damaged(f"{path} is missing") from error
    except ValueError as error:
        raise Damaged(f"{path} is not JSON: {error}") from error


def _entry(path: str, *, size: int, epoch: int) -> tarfile.TarInfo:
    """A plain file that belongs to root."""
    entry = tarfile.TarInfo(path)
    entry.size, entry.mtime, entry.mode = size, epoch, 0o644
    return entry

"""OCI archives with images of a few files, packed by the release's own packer.

The law: made of octets in the test; no builder runs.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from release.oci import digest_of, pack

Layer = Mapping[str, str]
"""The texts of a layer's files by path."""
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
STATUS = """\
Package: libc6
Status: install ok installed
Architecture: {machine}
Version: 2.41-12
Description: a library
 with more lines

Package: gone
Status: deinstall ok config-files
Architecture: {machine}
Version: 1.0
"""


def metadata(name: str, version: str, licence: str = "License-Expression: MIT") -> str:
    return f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{licence}\n\nLong text.\nName: no\n"


def usual_layers(machine: str) -> Sequence[Layer]:
    return [
        {"var/lib/dpkg/status": STATUS.format(machine=machine), "etc/os-release": 'ID=debian\nVERSION_ID="13"\n'},
        {"app/lib/python3.13/site-packages/trio-0.31.0.dist-info/METADATA": metadata("trio", "0.31.0")},
    ]


def write_archive(
    file: Path, images: Mapping[str, Sequence[Layer]] | None = None, *, version: str = "0.1.0", env: Sequence[str] = ()
) -> str:
    """Write an archive of images by architecture, by default two usual ones. Returns the digest of the index."""
    layout = file.with_suffix(".layout")
    (layout / "blobs" / "sha256").mkdir(parents=True)
    listed = [_image(layout, machine, layers, env) for machine, layers in (images or usual()).items()]
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": listed}))
    return pack(layout, file, name=f"localhost/switchback:{version}", tag=version, epoch=0).digest


def usual() -> Mapping[str, Sequence[Layer]]:
    return {machine: usual_layers(machine) for machine in ("amd64", "arm64")}


def _image(layout: Path, machine: str, layers: Sequence[Layer], env: Sequence[str]) -> dict[str, Any]:
    config = {"architecture": machine, "os": "linux", "config": {"Env": list(env)}, "rootfs": {}}
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _blob(layout, json.dumps(config).encode()),
        "layers": [_blob(layout, _layer(one)) for one in layers],
    }
    return {"mediaType": MANIFEST, **_blob(layout, json.dumps(manifest).encode())}


def _layer(files: Layer) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(packed.getvalue(), mtime=0)


def _blob(layout: Path, octets: bytes) -> dict[str, Any]:
    digest = digest_of(octets)
    (layout / "blobs" / "sha256" / digest.removeprefix("sha256:")).write_bytes(octets)
    return {"digest": digest, "size": len(octets)}

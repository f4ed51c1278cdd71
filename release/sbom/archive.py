"""What is in the images of an OCI archive: its digest, and the Python and Debian packages of each platform.

The law: it reads the archive that is shipped, not the machine that built it. Layers are applied in order with their
whiteouts (image-spec 1.1, layer.md), and only the files that describe packages are read.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath
from typing import Any, Final

from release.sbom.bom import Package

_STATUS: Final = "var/lib/dpkg/status"
_UNPACKED: Final = "var/lib/dpkg/status.d/"
"""A file for each package that was unpacked and not configured; it has no field Status."""
_RELEASE: Final = ("etc/os-release", "usr/lib/os-release")
_METADATA: Final = re.compile(r"(?:.*/)?[^/]+\.(?:dist-info/METADATA|egg-info/PKG-INFO)")
_OPAQUE: Final = ".wh..wh..opq"
_WHITEOUT: Final = ".wh."
_DAMAGED: Final = (tarfile.TarError, KeyError, ValueError, OSError, TypeError, AttributeError)


class BadArchive(Exception):
    """The file is not an OCI archive with one index; the message names it."""


@dataclass(frozen=True)
class Contents:
    """One platform's image."""

    architecture: str
    digest: str
    """Of its manifest, `sha256:...`."""
    packages: tuple[Package, ...]

    @property
    def has_debian_packages(self) -> bool:
        """Whether the base says what it consists of."""
        return any(one.kind == "deb" for one in self.packages)


def index_digest(archive: Path) -> str:
    """The digest of the one image or index that the archive has, `sha256:...`. Raises BadArchive."""
    try:
        with tarfile.open(archive, "r:") as tar:
            return _root(tar)
    except _DAMAGED as error:
        raise BadArchive(f"{archive} is not an OCI archive with one image: {error}") from error


def read_contents(archive: Path) -> tuple[Contents, ...]:
    """What is in each platform's image. Raises BadArchive."""
    try:
        with tarfile.open(archive, "r:") as tar:
            index = _blob(tar, _root(tar))
            return tuple(_contents(tar, one["digest"]) for one in index["manifests"])
    except _DAMAGED as error:
        raise BadArchive(f"{archive} is not an OCI archive with an index: {error}") from error


def _root(tar: tarfile.TarFile) -> str:
    (one,) = _json(tar, "index.json")["manifests"]
    return str(one["digest"])


def _contents(tar: tarfile.TarFile, digest: str) -> Contents:
    manifest = _blob(tar, digest)
    configuration = _blob(tar, manifest["config"]["digest"])
    files: dict[str, bytes] = {}
    for layer in manifest["layers"]:
        _apply(tar, layer["digest"], files)
    architecture = str(configuration["architecture"])
    variables = dict(one.split("=", 1) for one in configuration.get("config", {}).get("Env", ()))
    return Contents(architecture, digest, tuple(_packages(files, variables)))


def _apply(tar: tarfile.TarFile, digest: str, files: dict[str, bytes]) -> None:
    """Put a layer's descriptions over those of the layers below it."""
    blob = tar.extractfile(_place(digest))
    fresh: dict[str, bytes] = {}
    with tarfile.open(fileobj=blob, mode="r:*") as layer:
        for entry in layer:
            path = PurePosixPath(entry.name.removeprefix("./"))
            if path.name == _OPAQUE:
                _drop(files, str(path.parent))
            elif path.name.startswith(_WHITEOUT):
                _drop(files, str(path.with_name(path.name.removeprefix(_WHITEOUT))))
            elif entry.isfile() and _describes(str(path)):
                content = layer.extractfile(entry)
                fresh[str(path)] = b"" if content is None else content.read()
    files |= fresh


def _drop(files: dict[str, bytes], path: str) -> None:
    for name in [one for one in files if path in (one, ".") or one.startswith(f"{path}/")]:
        del files[name]


def _describes(path: str) -> bool:
    return path == _STATUS or path.startswith(_UNPACKED) or path in _RELEASE or _METADATA.fullmatch(path) is not None


def _packages(files: Mapping[str, bytes], variables: Mapping[str, str]) -> Iterator[Package]:
    if "PYTHON_VERSION" in variables:
        # The official images of Python are compiled, and no package manager knows of it.
        yield Package("generic", "python", variables["PYTHON_VERSION"])
    for path in sorted(files):
        if _METADATA.fullmatch(path):
            yield _python_package(path, files[path].decode())
        elif path == _STATUS or path.startswith(_UNPACKED):
            yield from _debian_packages(files[path].decode(), _distribution(files))


def _python_package(path: str, text: str) -> Package:
    fields = HeaderParser().parsestr(text)
    licence = fields["License-Expression"] or fields["License"] or ""
    # Some packages have the whole text of their licence in this field.
    short = licence.strip() if "\n" not in licence.strip() else ""
    name = re.sub(r"[-_.]+", "-", fields["Name"]).lower()
    return Package("pypi", name, fields["Version"], licence=short or None, files=(path,))


def _distribution(files: Mapping[str, bytes]) -> tuple[tuple[str, str], ...]:
    text = next((files[name].decode() for name in _RELEASE if name in files), "")
    fields = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if "VERSION_ID" not in fields:
        return ()
    return (("distro", f"{fields.get('ID', 'debian')}-{fields['VERSION_ID']}".replace('"', "")),)


def _debian_packages(status: str, distribution: tuple[tuple[str, str], ...]) -> Iterator[Package]:
    for paragraph in re.split(r"\n\n+", status.strip()):
        fields = HeaderParser().parsestr(paragraph)
        # A removed package may leave its settings, and then its paragraph stays.
        if "Package" in fields and fields.get("Status", "installed").endswith("installed"):
            qualifiers = (("arch", fields["Architecture"]), *distribution)
            yield Package("deb", fields["Package"], fields["Version"], namespace="debian", qualifiers=qualifiers)


def _blob(tar: tarfile.TarFile, digest: str) -> Any:
    return _json(tar, _place(digest))


def _json(tar: tarfile.TarFile, path: str) -> Any:
    file = tar.extractfile(path)
    if file is None:
        raise ValueError(f"{path} is not a file")
    return json.load(file)


def _place(digest: str) -> str:
    algorithm, _, value = digest.partition(":")
    return f"blobs/{algorithm}/{value}"

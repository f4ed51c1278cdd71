"""The files of a release: their names, and the kind that each belongs to.

The law: a file is in `dist` under one of these names or not at all; every other module takes the names from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidecar.values.build import DISTRIBUTION

ARCHITECTURES: Final = ("amd64", "arm64")
REPOSITORIES: Final = ("switchback", "switchback-nftables")
"""The two images; release/images.py builds them."""
ZIPAPP: Final = "switchback.pyz"
NOTES: Final = "RELEASE_NOTES.md"
README: Final = "README.md"
CHECKSUMS: Final = "SHA256SUMS"
PLUGIN: Final = "krew-switchback.yaml"
"""The manifest for krew-like indexes, in which it is plugins/switchback.yaml."""


class Kind(StrEnum):
    """What can be built by itself: `--only`."""

    WHEEL = "wheel"
    ZIPAPP = "zipapp"
    IMAGES = "images"
    MANIFEST = "manifest"
    CHART = "chart"
    NOTES = "notes"

    @property
    def needs_images(self) -> bool:
        """Whether its text has the digests of the images."""
        return self in {Kind.MANIFEST, Kind.CHART, Kind.NOTES}


ALL_KINDS: Final = frozenset(Kind)


@dataclass(frozen=True)
class Artefact:
    """One file of `dist`."""

    name: str
    kind: Kind
    about: str
    """What it is, in a few words."""


def wheel_name(version: str) -> str:
    """The wheel."""
    return f"{_file_stem(version)}-py3-none-any.whl"


def sdist_name(version: str) -> str:
    """The source archive."""
    return f"{_file_stem(version)}.tar.gz"


def _file_stem(version: str) -> str:
    """As the specification of wheels escapes a name."""
    return f"{DISTRIBUTION.replace('-', '_')}-{version}"


def manifest_name(version: str) -> str:
    """The one file for `kubectl apply -f`."""
    return f"switchback-{version}.yaml"


def chart_name(version: str) -> str:
    """The packaged chart."""
    return f"switchback-{version}.tgz"


def plugin_name(version: str) -> str:
    """The archive of kubectl's plugin."""
    return f"kubectl-switchback-{version}.tar.gz"


def image_name(repository: str, version: str) -> str:
    """The OCI archive of one image."""
    return f"{repository}-{version}-image.oci.tar"


def wheel_sbom_name(version: str) -> str:
    """The bill of materials of the wheel."""
    return f"switchback-{version}-wheel.cdx.json"


def image_sbom_name(repository: str, version: str, architecture: str) -> str:
    """The bill of materials of one image on one architecture."""
    return f"{repository}-{version}-image-{architecture}.cdx.json"


def artefacts(version: str, kinds: Iterable[Kind] = ALL_KINDS) -> tuple[Artefact, ...]:
    """The files of these kinds, in the order in which they are built; SHA256SUMS is about them and not among them."""
    wanted = frozenset(kinds)
    found = [
        Artefact(wheel_name(version), Kind.WHEEL, "the wheel"),
        Artefact(sdist_name(version), Kind.WHEEL, "the sources, for packagers"),
        Artefact(wheel_sbom_name(version), Kind.WHEEL, "what the wheel depends on, CycloneDX 1.6"),
        Artefact(ZIPAPP, Kind.ZIPAPP, "dnsproxy with its dependencies, for laptops"),
        Artefact(plugin_name(version), Kind.ZIPAPP, "the same as a plugin of kubectl"),
        Artefact(PLUGIN, Kind.ZIPAPP, "the plugin's manifest, for krew-like indexes"),
    ]
    for repository in REPOSITORIES:
        found.append(Artefact(image_name(repository, version), Kind.IMAGES, "image for amd64 and arm64, OCI archive"))
        found += [
            Artefact(image_sbom_name(repository, version, one), Kind.IMAGES, f"what is in it for {one}, CycloneDX 1.6")
            for one in ARCHITECTURES
        ]
    found += [
        Artefact(manifest_name(version), Kind.MANIFEST, "all objects, for kubectl apply -f"),
        Artefact(chart_name(version), Kind.CHART, "the Helm chart"),
        Artefact(NOTES, Kind.NOTES, "the release notes"),
        Artefact(README, Kind.NOTES, "the README, whose Install is from where this is pushed to"),
    ]
    return tuple(one for one in found if one.kind in wanted)

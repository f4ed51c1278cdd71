"""The images of the world's programs.

The law: built from the programs of `scripts/peers.sh --world`; the tag is the program's version, as its own manifests
have it where they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.nodes.images import make_image, save
from tests.deploy.image import BASE, make_base
from tests.kit.programs import program


@dataclass(frozen=True)
class WorldImage:
    """One program in an image."""

    name: str
    peer: str
    """Its name among the peers."""
    path: str
    """Its place in the image."""
    entrypoint: Sequence[str]
    needs_libraries: bool = False
    """Whether it is linked with the C library, which `scratch` lacks."""
    user: str = ""
    """Whom it runs as, if its own image says so."""


CONTOUR: Final = WorldImage("ghcr.io/projectcontour/contour:v1.33.8", "contour", "/bin/contour", ["/bin/contour"])
ENVOY: Final = WorldImage(
    "docker.io/envoyproxy/envoy:v1.40.0", "envoy", "/usr/local/bin/envoy", ["envoy"], needs_libraries=True
)
CERT_MANAGER: Final = WorldImage(
    "quay.io/jetstack/cert-manager-controller:v1.21.2",
    "cert-manager",
    "/bin/cert-manager",
    ["/bin/cert-manager"],
    user="1000",
)
ACME_SOLVER: Final = WorldImage(
    "quay.io/jetstack/cert-manager-acmesolver:v1.21.2",
    "cert-manager",
    "/bin/cert-manager",
    ["/bin/cert-manager", "acmesolver"],
    user="1000",
)
SPEAKER: Final = WorldImage("localhost/speaker:1", "speaker", "/bin/speaker", ["/bin/speaker"])
WORLD: Final = (CONTOUR, ENVOY, CERT_MANAGER, ACME_SOLVER, SPEAKER)
PROGRAMS: Final = (
    *dict.fromkeys(one.peer for one in WORLD),
    *("contour-crds", "cert-manager-crds", "pebble"),
)
"""The peers that the world's steps need."""


def save_world(folder: Path) -> dict[str, Path]:
    """An archive for each image, by the image's name."""
    make_base()
    saved = {}
    for one in WORLD:
        base = BASE if one.needs_libraries else "scratch"
        make_image(
            one.name, base=base, files={Path(program(one.peer)): one.path}, entrypoint=one.entrypoint, user=one.user
        )
        saved[one.name] = save(one.name, folder / f"{one.name.rpartition('/')[2].partition(':')[0]}.tar")
    return saved

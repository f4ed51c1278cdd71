"""The images of the world's programs.

The law: built from the programs of `scripts/peers.sh --world`; the tag is the program's version, as its own manifests
have it where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.nodes.images import make_image, save
from tests.cluster.plan import CONTROLLERS as CONTROLLER_SCENE
from tests.cluster.plan import WHOLE, Plan
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
    has_base: bool = False
    """Whether it needs what `scratch` lacks: the C library, or /tmp."""
    user: str = ""
    """Whom it runs as, if its own image says so."""


CONTOUR: Final = WorldImage("ghcr.io/projectcontour/contour:v1.33.8", "contour", "/bin/contour", ["/bin/contour"])
ENVOY: Final = WorldImage(
    "docker.io/envoyproxy/envoy:v1.40.0", "envoy", "/usr/local/bin/envoy", ["envoy"], has_base=True
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
TRAEFIK: Final = WorldImage("docker.io/library/traefik:v3.6.12", "traefik", "/usr/local/bin/traefik", ["traefik"])
SKIPPER: Final = WorldImage("registry.opensource.zalan.do/teapot/skipper:v0.27.41", "skipper", "/usr/bin/skipper", [])
ENVOY_GATEWAY: Final = WorldImage(
    "docker.io/envoyproxy/gateway:v1.9.1",
    "envoy-gateway",
    "/usr/local/bin/envoy-gateway",
    ["envoy-gateway"],
    # Its shutdown manager writes to /tmp; otherwise an Envoy that leaves stays until the end of its grace period.
    has_base=True,
)
WORLD: Final = (CONTOUR, ENVOY, CERT_MANAGER, ACME_SOLVER, SPEAKER)
CONTROLLERS: Final = (CONTOUR, ENVOY, TRAEFIK, SKIPPER, ENVOY_GATEWAY, SPEAKER)
"""Of the scene with every controller."""
_FOLDERS: Final[Mapping[str, Sequence[str]]] = {
    WHOLE: ("contour-crds", "cert-manager-crds", "cert-manager-chart", "helm", "pebble"),
    CONTROLLER_SCENE: ("contour-crds", "traefik-crds", "skipper-manifests", "envoy-gateway-crds"),
}
"""The other peers, by scene."""


def images_of(plan: Plan) -> Sequence[WorldImage]:
    """The images that a combination plays with."""
    if plan.scene == CONTROLLER_SCENE:
        return CONTROLLERS
    return WORLD if plan.world else ()


def programs_of(plan: Plan) -> Sequence[str]:
    """The peers of the world that a combination needs."""
    images = images_of(plan)
    return (*dict.fromkeys(one.peer for one in images), *(_FOLDERS[plan.scene] if images else ()))


def save_world(folder: Path, images: Sequence[WorldImage]) -> dict[str, Path]:
    """An archive for each image, by the image's name."""
    make_base()
    saved: dict[str, Path] = {}
    for one in images:
        base = BASE if one.has_base else "scratch"
        make_image(
            one.name, base=base, files={Path(program(one.peer)): one.path}, entrypoint=one.entrypoint, user=one.user
        )
        saved[one.name] = save(one.name, folder / f"{one.peer}-{len(saved)}.tar")
    return saved

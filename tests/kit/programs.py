"""The paths of the real programs: on the PATH, in system folders that a PATH may lack, or built by `make peers`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def peers_cache() -> Path:
    """The folder of the programs that scripts/peers.sh builds."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("SWITCHBACK_PEERS") or home / "switchback" / "peers")


def find_program(name: str) -> str | None:
    """The path of a peer, or None. The result of `make peers` takes precedence, because its version is known.

    `gateway-api` is a folder: the custom resource definitions, in `standard` and `experimental`; `prometheus-operator`
    and each `...-crds` and `...-manifests` are folders too, and `contour-crds` holds all manifests of Contour's
    installation; so are `debian-base` and `debian-base-arm64`, with a small Debian in `root.tar`, and
    `systemd-resolved`, with the files of its Debian packages, and `python3.13` and newer, programs in `usr/bin`.
    `coredns-old` is the oldest supported CoreDNS that still builds; each `...-new` is newer than the version that the
    tests otherwise take.
    """
    built = sorted(peers_cache().glob(f"{name}-v*/{name}"))
    if built:
        return str(built[-1])
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def built_versions(name: str) -> dict[str, str]:
    """The paths of all versions of a peer that `make peers` built, by version (`v1.36.3`), the oldest first."""
    return {
        path.parent.name.removeprefix(f"{name}-"): str(path) for path in sorted(peers_cache().glob(f"{name}-v*/{name}"))
    }


def program(name: str) -> str:
    """The path of a peer that the test's marker requires."""
    path = find_program(name)
    assert path is not None, f"mark the test with @pytest.mark.peer({name!r})"
    return path

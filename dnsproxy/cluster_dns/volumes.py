"""Volumes: the ConfigMap and key of a file in a container.

The law: a path belongs to the deepest mount above it, as in the kernel. Sources other than ConfigMaps (a Secret, a
folder of the node) are named and never read.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sidecar.kubernetes.structs.workload import ConfigMap, ConfigMapSource, Container, PodSpec, Volume, VolumeMount


@dataclass(frozen=True, slots=True)
class Backing:
    """A ConfigMap whose keys are files of a volume."""

    name: str
    items: tuple[tuple[str, str], ...] | None
    """Pairs of key and path; None if every key, also a future one, is a file of the same name."""
    optional: bool

    def paths(self, config_map: ConfigMap) -> Iterator[tuple[str, str]]:
        """Each key that is a file, with its path inside the volume."""
        keys = [*(config_map.data or {}), *(config_map.binary_data or {})]
        yield from (
            ((key, key) for key in keys)
            if self.items is None
            else ((key, path) for key, path in self.items if key in keys)
        )


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume, or one path of it, mounted in a container."""

    path: str
    """Absolute, without a final slash."""
    sub_path: str
    """The part of the volume that is mounted; empty for all. Files mounted so never change in a running pod."""
    backings: tuple[Backing, ...]
    others: tuple[str, ...]
    """Other sources of the volume, in words: `a Secret`."""

    @property
    def by_precedence(self) -> tuple[Backing, ...]:
        """Its ConfigMaps; of two with one file, the kubelet shows that of the first in this order.

        The kubelet writes the sources in their order, each over the ones before (collectData in pkg/volume/projected).
        """
        return self.backings[::-1]

    def path_of(self, inner: str) -> str | None:
        """The path in the container of a path inside the volume; None if that is not mounted."""
        if not self.sub_path:
            return posixpath.join(self.path, inner)
        if inner == self.sub_path:
            return self.path
        rest = inner.removeprefix(f"{self.sub_path}/")
        return posixpath.join(self.path, rest) if rest != inner else None

    def keys(self, backing: Backing, config_map: ConfigMap) -> Mapping[str, str]:
        """The files of one of its ConfigMaps: path in the container to key."""
        seen = ((self.path_of(inner), key) for key, inner in backing.paths(config_map))
        return {path: key for path, key in seen if path is not None}

    def takes_keys(self, backing: Backing, folder: str) -> bool:
        """Whether a new key of the ConfigMap becomes a file in a folder of the container."""
        return backing.items is None and not self.sub_path and self.path == folder


def mount_above(path: str, pod: PodSpec, container: Container) -> Mount | None:
    """The mount of a path in the container; None if the path is in the image."""
    above = [mount for mount in container.volume_mounts or () if _is_above(_clean(mount.mount_path), path)]
    if not above:
        return None
    deepest = max(above, key=lambda mount: len(_clean(mount.mount_path)))
    volume = next((volume for volume in pod.volumes or () if volume.name == deepest.name), None)
    return None if volume is None else _make_mount(deepest, volume)


def mounts_in(folder: str, pod: PodSpec, container: Container) -> list[Mount]:
    """The mounts with files in a folder of the container: the mount above it, and single files mounted into it."""
    own = [_clean(mount.mount_path) for mount in container.volume_mounts or ()]
    paths = [folder, *(path for path in own if posixpath.dirname(path) == folder)]
    found = [mount_above(path, pod, container) for path in paths]
    return [mount for mount in dict.fromkeys(found) if mount is not None]


def _make_mount(mount: VolumeMount, volume: Volume) -> Mount:
    sources = [volume.config_map] if volume.config_map else []
    others = [name for name, found in _other_kinds(volume) if found is not None]
    for projection in (volume.projected.sources or ()) if volume.projected else ():
        if projection.config_map:
            sources.append(projection.config_map)
        else:
            others.append("a projected source other than a ConfigMap")
    if not sources and not others:
        others.append("a volume of another kind")
    if mount.sub_path_expr:
        sources, others = [], ["a subPathExpr"]
    backings = tuple(_make_backing(source) for source in sources if source.name)
    sub_path = posixpath.normpath(mount.sub_path) if mount.sub_path else ""
    return Mount(_clean(mount.mount_path), sub_path, backings, tuple(dict.fromkeys(others)))


def _make_backing(source: ConfigMapSource) -> Backing:
    items = None
    # An empty list means the same as no list: every key.
    if source.items:
        items = tuple((item.key, posixpath.normpath(item.path)) for item in source.items)
    return Backing(source.name or "", items, bool(source.optional))


def _other_kinds(volume: Volume) -> list[tuple[str, object]]:
    return [
        ("a Secret", volume.secret),
        ("a folder of the node", volume.host_path),
        ("an emptyDir that another container fills", volume.empty_dir),
    ]


def _is_above(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _clean(path: str) -> str:
    return posixpath.normpath(posixpath.join("/", path))

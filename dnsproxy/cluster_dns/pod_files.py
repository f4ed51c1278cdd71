"""Pod files: the files of a container that come from ConfigMaps.

The law: a file comes with its ConfigMap and key, or a fault says where it is instead. Only ConfigMaps are ever read.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Final

from dnsproxy.cluster_dns.found import Source
from dnsproxy.cluster_dns.requests import CONFIG_MAP, Blame, Fault, Missing, Requests
from dnsproxy.cluster_dns.volumes import Backing, Mount, mount_above, mounts_in
from sidecar.kubernetes.structs.workload import ConfigMap, Container, PodSpec

NOT_READ: Final = "was not read"
"""The end of the trouble of an import whose ConfigMap could not be read."""
_WILDCARDS: Final = "*?["


@dataclass(frozen=True, slots=True)
class PodFile:
    """A file in a container, and the ConfigMap with its content."""

    path: str
    source: Source
    key: str
    text: str
    updates: bool
    """Whether a change of the ConfigMap reaches the running container."""


@dataclass(frozen=True, slots=True)
class PodFiles:
    """The files of one container of the pods of one workload."""

    requests: Requests
    workload: str
    """In words: `Deployment kube-system/coredns`."""
    namespace: str
    pod: PodSpec
    container: Container

    def read(self, path: str) -> PodFile | None:
        """The file at an absolute path; None, and a fault, if no ConfigMap has it as text."""
        mount = mount_above(path, self.pod, self.container)
        if mount is None:
            self._report(f"{self.workload} reads {path}, which is in its image: no volume is mounted there")
            return None
        for backing in mount.by_precedence:
            found = self._source(backing)
            if found is None:
                return None
            files = self._files(mount, backing, found)
            if path in files:
                return self._open(path, found, files[path], updates=not mount.sub_path)
        self._report(f"{self.workload} reads {path}, which no ConfigMap has: {_described(mount)}")
        return None

    def match(self, pattern: str) -> list[PodFile]:
        """The files that an absolute pattern matches, in the order in which CoreDNS reads them."""
        folder = posixpath.dirname(pattern)
        expression = _expression(pattern)
        found: dict[str, PodFile] = {}
        for mount in mounts_in(folder, self.pod, self.container):
            for backing in mount.by_precedence:
                source = self._source(backing)
                files = self._files(mount, backing, source) if source else {}
                for path in filter(expression.fullmatch, files):
                    opened = self._open(path, source, files[path], updates=not mount.sub_path) if source else None
                    if opened and path not in found:
                        found[path] = opened
        return [found[path] for path in sorted(found)]

    def place_for(self, pattern: str) -> tuple[Source | None, str]:
        """The ConfigMap in which a new key becomes a file that matches the pattern, or why there is none."""
        folder, _, name = pattern.rpartition("/")
        trouble = _trouble_of(folder, name)
        mount = mount_above(folder or "/", self.pod, self.container)
        if trouble:
            return None, trouble
        if mount is None or not mount.backings:
            return None, f"no ConfigMap is mounted at {folder}"
        taking = [backing for backing in mount.by_precedence if mount.takes_keys(backing, folder)]
        if not taking:
            reason = "by subPath" if mount.sub_path else "with chosen keys only"
            return None, f"the volume at {folder} shows {_names(mount)} {reason}"
        source = self._source(taking[0])
        if source is None:
            return None, f"ConfigMap {taking[0].name} {NOT_READ}"
        return (None, f"ConfigMap {source} is immutable") if source.immutable else (source, "")

    def _source(self, backing: Backing) -> Source | None:
        """The ConfigMap; None if it was not read yet."""
        found = self.requests.get(CONFIG_MAP, self.namespace, backing.name)
        if found is Missing.UNSEEN:
            return None
        if isinstance(found, ConfigMap):
            return Source(self.namespace, backing.name, found, backing.optional)
        if not backing.optional:
            self._report(f"ConfigMap {self.namespace}/{backing.name}, which {self.workload} mounts, does not exist")
        return Source(self.namespace, backing.name, None, backing.optional)

    def _files(self, mount: Mount, backing: Backing, source: Source) -> dict[str, str]:
        return {} if source.object is None else dict(mount.keys(backing, source.object))

    def _open(self, path: str, source: Source, key: str, *, updates: bool) -> PodFile | None:
        text = (source.object.data or {}).get(key) if source.object else None
        if text is None:
            self._report(f"ConfigMap {source} has {key} as binaryData, which is not read")
            return None
        return PodFile(path, source, key, text, updates)

    def _report(self, text: str) -> None:
        self.requests.report(Fault(Blame.CONTENTS, text))


def _described(mount: Mount) -> str:
    others = " and ".join(mount.others)
    if not mount.backings:
        return f"{mount.path} is {others}"
    shown = f"{mount.path} shows {_names(mount)}"
    return f"{shown} and {others}" if others else shown


def _names(mount: Mount) -> str:
    return " and ".join(f"ConfigMap {backing.name}" for backing in mount.backings)


def _trouble_of(folder: str, name: str) -> str:
    if any(character in folder for character in _WILDCARDS):
        return "its folder has a wildcard"
    if "*" not in name:
        return "it names one file, so it takes no second one"
    if "?" in name or "\\" in name or "[" in name:
        return "its pattern is more than one *"
    return ""


def _expression(pattern: str) -> re.Pattern[str]:
    """A pattern of Go's filepath.Match with at most one * and one ?, which is all that CoreDNS allows."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    shown = {"*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(shown.get(part) or re.escape(part.removeprefix("\\") or part) for part in parts))

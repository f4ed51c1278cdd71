"""Image: the program in a container, and its version, according to the name of the image.

The law: a version is known only if the image is called CoreDNS and its tag begins with three numbers. A digest, a
floating tag or another program's tag gives no version, because a stanza for the wrong version keeps CoreDNS from
starting.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dnsproxy.corefile.stanza import Version

# 1.11.3, v1.11.3-eksbuild.1, 1.12.1-12, v1.12.1-build20250401, 1.11.1-debian-11-r0, v1.9.4_1
_TAG: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})(?:[-_.].*)?")
_NODE_CACHE: Final = "node-cache"


class Program(Enum):
    """A program that answers DNS queries."""

    COREDNS = "CoreDNS"
    NODE_CACHE = "node-cache"
    """CoreDNS inside kubernetes/dns's node-cache, which makes its Corefile from a template and stubDomains."""
    KUBE_DNS = "kube-dns"


@dataclass(frozen=True, slots=True)
class Image:
    """The parts of an image's name."""

    repository: str
    """Registry included."""
    tag: str
    """Empty if there is none."""
    digest: str
    """Empty if there is none."""

    @property
    def name(self) -> str:
        """The last part of the repository."""
        return self.repository.rpartition("/")[2]


def parse_image(text: str) -> Image:
    """The parts of `[REGISTRY[:PORT]/]NAME[:TAG][@DIGEST]`."""
    named, _, digest = text.strip().partition("@")
    repository, colon, tag = named.rpartition(":")
    # A colon before a slash belongs to the registry's port.
    if not colon or "/" in tag:
        repository, tag = named, ""
    return Image(repository, tag, digest)


def program_of(image: str, *, command: str = "") -> Program | None:
    """The program of a container, by its image or its command; None for an unknown program."""
    for name in (parse_image(image).name.lower(), command.lower()):
        if _NODE_CACHE in name:
            return Program.NODE_CACHE
        if "coredns" in name and "autoscaler" not in name:
            return Program.COREDNS
        if name.endswith("kube-dns") or "k8s-dns-kube-dns" in name:
            return Program.KUBE_DNS
    return None


def coredns_version(image: str) -> Version | None:
    """The three numbers of the version of CoreDNS; None if the image does not tell them."""
    parts = parse_image(image)
    match = _TAG.fullmatch(parts.tag)
    if match is None or "coredns" not in parts.name.lower():
        return None
    return tuple(map(int, match.groups()))


def format_version(version: Version | None) -> str:
    """`1.12.1`, or `of unknown version`."""
    return "of unknown version" if version is None else ".".join(map(str, version))

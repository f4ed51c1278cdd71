"""The name of an image without tag and digest, `registry.example.org/switchback`, and the names beside it.

The law: one name is given; the names of the second image and of the charts follow from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

EXAMPLES: Final = ("example.org", "example.com", "example.net")
"""Reserved names: no registry has one (RFC 2606)."""
MAIN_REPOSITORY: Final = "switchback"
_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST: Final = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\]"
# Source: distribution-spec 1.1, "Pulling manifests"; the host as in the reference grammar of distribution/reference.
_NAME: Final = re.compile(rf"(?P<host>(?:{_HOST})(?::[0-9]{{1,5}})?)/(?P<path>{_PART}(?:/{_PART})*)")


@dataclass(frozen=True)
class ImageName:
    """A registry and a path in it."""

    host: str
    path: str

    def __str__(self) -> str:
        return f"{self.host}/{self.path}"

    def beside(self, repository: str) -> ImageName:
        """The name of another image of the project: its name after `switchback` is appended to this one.

        Raises ValueError for a repository with another beginning.
        """
        if not repository.startswith(MAIN_REPOSITORY):
            raise ValueError(f"{repository!r} does not begin with {MAIN_REPOSITORY}")
        return ImageName(self.host, self.path + repository.removeprefix(MAIN_REPOSITORY))

    @property
    def charts(self) -> str:
        """The folder of charts in the same registry, for `helm push`."""
        folder = self.path.rpartition("/")[0]
        return "oci://" + "/".join(part for part in (self.host, folder, "charts") if part)

    @property
    def is_example(self) -> bool:
        """Whether the registry has a name that only examples have."""
        host = self.host.partition(":")[0].lower()
        return any(host == one or host.endswith(f".{one}") for one in EXAMPLES)


def parse_image_name(text: str) -> ImageName:
    """The name in `text`. Raises ValueError, also for a name with a tag or a digest."""
    found = _NAME.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} is not REGISTRY/NAME in lower case, without tag and digest: registry.example.org/switchback"
        )
    host = found["host"]
    if not any(mark in host for mark in ".:[") and host != "localhost":
        raise ValueError(f"{text!r} begins with no registry: write one in front, registry.example.org/{text}")
    return ImageName(host, found["path"])

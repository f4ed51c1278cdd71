"""What each distribution of the table in deploy/README.md has, from its own source: tests/deploy/distributions/*.toml.

The law: a file states facts alone (names, labels, ports, keys, the order of a Corefile's lines), each read in a source
that the file names with its version; what no source says is left out. A file without such a source says why. Whether
our recorded clusters (tests/kit/clusters) have these facts, and what we do there, is judged in
tests/deploy/test_distributions.py.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from typing import Final, Literal

import msgspec

from tests.kit.laws import ROOT

FOLDER: Final = ROOT / "tests" / "deploy" / "distributions"
UNVERIFIED: Final = " (unverified)"
"""The mark behind a name in the table of deploy/README.md."""


class _Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of a file; a field that it does not know is an error."""


class Source(_Facts, frozen=True):
    """Where the facts were read: a file of a repository at a commit, a Go module, or a page."""

    version: str
    """Of the distribution; for a page, the day or year of its content."""
    repository: str = ""
    commit: str = ""
    path: str = ""
    url: str = ""


class Service(_Facts, frozen=True):
    """The Service that pods ask."""

    name: str
    namespace: str = "kube-system"
    labels: dict[str, str] = {}
    selector: dict[str, str] = {}
    ports: list[str] = []
    """`NAME PORT/PROTOCOL`; those for DNS."""


class Workload(_Facts, frozen=True):
    """A workload that serves DNS."""

    kind: Literal["Deployment", "DaemonSet"]
    name: str
    namespace: str = "kube-system"
    labels: dict[str, str] = {}
    """Of its pods."""


class ConfigMap(_Facts, frozen=True):
    """A ConfigMap that the DNS reads, or would read."""

    name: str
    namespace: str = "kube-system"
    keys: list[str] = []
    """Which it has from the beginning."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    absent: bool = False
    """The distribution mounts it, and does not create it."""


class Outline(_Facts, frozen=True):
    """The shape of one Corefile."""

    config_map: str
    blocks: list[list[str]]
    """For each server block its keys, and the beginning of each line, in order, imports included."""
    imports: list[str] = []
    """Patterns of the imports between the blocks."""
    namespace: str = "kube-system"
    key: str = "Corefile"
    recorded: list[str] = []
    """The recorded clusters with this shape; empty for all of the file."""


class Api(_Facts, frozen=True):
    """Where the owner of the DNS takes its configuration."""

    path: str
    """Of the value, from the root of the printed text: names with dots, `0` for the first of a list."""
    fixed: dict[str, str] = {}
    """Other values that the text has to have, by path."""


class Ingress(_Facts, frozen=True):
    """The Service of the ingress controller that the distribution ships."""

    service: str
    """NAMESPACE/NAME."""
    type: str
    """Without a change of settings; empty if there is no Service then."""
    classes: list[str] = []


class Distribution(_Facts, frozen=True):
    """One file."""

    named: str
    """In the table of deploy/README.md."""
    checked: bool
    method: str = ""
    """`--method` that fits; empty if it is not known."""
    reason: str = ""
    """Why it could not be checked."""
    note: str = ""
    """What the sources say beside the facts."""
    like: str = ""
    """The file whose objects this distribution has too."""
    recorded: list[str] = []
    """Its clusters in tests/kit/clusters."""
    owner: str = ""
    """Of the Corefile, in our words; empty if it is not told by the objects."""
    marks: list[str] = []
    """For an owner of any cluster's objects: `label KEY=VALUE`, `annotation KEY=VALUE` or `manager NAME`."""
    role: bool = True
    """Whether its names are fixed, so that the Roles of deploy/ have them."""
    source: list[Source] = []
    service: Service | None = None
    workload: list[Workload] = []
    config_map: list[ConfigMap] = []
    corefile: list[Outline] = []
    api: Api | None = None
    ingress: list[Ingress] = []


@lru_cache
def load_distributions() -> dict[str, Distribution]:
    """All files, by their names."""
    return {
        path.stem: msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Distribution)
        for path in sorted(FOLDER.glob("*.toml"))
    }


def ingress_service(name: str, number: int = 0) -> str:
    """NAMESPACE/NAME of the ingress controller's Service of a distribution."""
    return load_distributions()[name].ingress[number].service

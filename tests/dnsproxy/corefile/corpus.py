"""The corpus: a Corefile of every kind of cluster that we know, with its imported files.

The law: a shape is what a distribution writes, character by character, each once however many clusters share it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dnsproxy.cluster_dns.found import FoundCorefile
from tests.dnsproxy.corefile.shapes import FOLDER, SHAPES, read, stock
from tests.kit.manifest_cluster import NAMES, discover, manifests

TEMPLATE: Final = {"__PILLAR__UPSTREAM__SERVERS__": "/etc/resolv.conf", "__PILLAR__CLUSTER__DNS__": "10.96.0.11"}
"""The placeholders that node-cache replaces when it makes its Corefile from the template (kubernetes/dns,
cmd/node-cache/app/configmap.go). The second is the Service of its -upstreamsvc, because node-cache itself may listen on
the address of the cluster's DNS, and would forward to itself."""
_USUAL_PATH: Final = "/etc/coredns/Corefile"
_WITHOUT_RESOLV_CONF: Final = ("snippets",)


@dataclass(frozen=True)
class Shape:
    """The Corefile of a cluster."""

    name: str
    text: str
    files: tuple[tuple[str, str], ...] = ()
    """The other files of its pod: paths in the container, and texts."""
    path: str = _USUAL_PATH

    @property
    def node(self) -> bool:
        """Whether it belongs to a cache on the nodes, which does not serve the cluster's names."""
        return "kubernetes " not in self.text

    def rendered(self, text: str) -> str:
        """A text of this shape as CoreDNS reads it, placeholders replaced."""
        for word, value in TEMPLATE.items():
            text = text.replace(word, value)
        return text


def load_corpus() -> list[Shape]:
    """All shapes of the corpus."""
    found = {shape.text: shape for shape in [*_of_clusters(), *_of_files()]}
    return sorted(found.values(), key=lambda shape: shape.name)


def _of_files() -> Iterator[Shape]:
    for name in SHAPES:
        if name not in _WITHOUT_RESOLV_CONF:
            yield Shape(f"stock-{name}", stock(name))
    for path in sorted((FOLDER / "others").glob("*.Corefile")):
        yield Shape(path.stem, read(path))


def _of_clusters() -> Iterator[Shape]:
    for name in NAMES:
        found = discover(manifests(name))
        if found.server and found.server.corefile:
            yield _shape(name, found.server.corefile)
        if found.node_local and found.node_local.server.corefile:
            yield _shape(f"{name}-node", found.node_local.server.corefile)


def _shape(name: str, corefile: FoundCorefile) -> Shape:
    data = (corefile.source.object.data if corefile.source.object else None) or {}
    folder = posixpath.dirname(corefile.path)
    beside = [(posixpath.join(folder, key), text) for key, text in data.items() if key != corefile.key]
    imported = [(file.path, file.text) for file in corefile.files]
    return Shape(name, corefile.text, (*beside, *imported), corefile.path)

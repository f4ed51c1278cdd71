"""Found: what serves a cluster's DNS and what could be changed about it, as one frozen value.

The law: it holds what was read and nothing that was decided; choice.py decides. Names of ConfigMaps, keys and files are
the cluster's own: show them through sidecar.values.text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dnsproxy.cluster_dns.image import Program
from dnsproxy.cluster_dns.owner import Owner
from dnsproxy.cluster_dns.requests import Blame, Fault, Request
from dnsproxy.corefile.model import Corefile, CorefileError, Scope
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import find_root_block, root_port
from dnsproxy.corefile.stanza import Version
from dnsproxy.dns.wire import DNS_PORT
from sidecar.kubernetes.structs.workload import ConfigMap


@dataclass(frozen=True, slots=True)
class ServiceRef:
    """Which Service is the cluster's DNS."""

    namespace: str = "kube-system"
    service: str = "kube-dns"
    exact: bool = False
    """Whether it was named by a person: then no other is looked for."""


@dataclass(frozen=True, slots=True)
class FoundService:
    """The Service that pods ask, as the kubelet tells them."""

    namespace: str
    name: str
    addresses: tuple[str, ...]
    """Its ClusterIPs, both families, the primary first."""
    port: int = DNS_PORT


@dataclass(frozen=True, slots=True)
class Source:
    """A ConfigMap that a pod takes files from."""

    namespace: str
    name: str
    object: ConfigMap | None
    """None where there is none: with `optional` it may be made, and its keys appear in running pods."""
    optional: bool = False

    @property
    def exists(self) -> bool:
        """Whether it is there."""
        return self.object is not None

    @property
    def immutable(self) -> bool:
        """Whether the API server refuses every change of its data."""
        return self.object is not None and bool(self.object.immutable)

    @property
    def resource_version(self) -> str:
        """What a guarded write names; empty where the object is still to be made."""
        return "" if self.object is None else self.object.metadata.resource_version

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file that an import brings in today."""

    path: str
    """In the container."""
    source: Source
    key: str
    text: str
    scope: Scope

    @property
    def value(self) -> Corefile | None:
        """The text as a value; None if it cannot be parsed, for which there is a fault."""
        return _parsed(self.text, self.scope)


@dataclass(frozen=True, slots=True)
class Hook:
    """An `import` of a Corefile, and where its files come from."""

    pattern: str
    """As written."""
    line: int
    """In the file that has it."""
    scope: Scope
    path: str
    """The pattern as an absolute path."""
    takes_forward: bool
    """Whether a `forward` for `.` in one of its files is asked at all: not behind a forward that takes every query."""
    source: Source | None
    """The ConfigMap that a new key goes into; None where there is none that would do."""
    trouble: str
    """Why no file of ours can be put here; empty where one can."""

    def key(self, stem: str) -> str:
        """The key for a file of ours, `switchback.server` for the stem `switchback` and `*.server`."""
        return self.path.rpartition("/")[2].replace("*", stem)


@dataclass(frozen=True, slots=True)
class FoundCorefile:
    """The Corefile that a workload reads, or the template it is made from."""

    source: Source
    key: str
    path: str
    """In the container."""
    text: str
    owner: Owner
    hooks: tuple[Hook, ...] = ()
    """Its imports of files, in the order of the file; those of imported files behind them."""
    files: tuple[ImportedFile, ...] = ()
    """All that they bring in today, imports of imported files included."""
    updates: bool = True
    """Whether a change of the ConfigMap reaches running pods: not through a subPath."""

    @property
    def value(self) -> Corefile | None:
        """The text as a value; None where it is no Corefile, which a fault tells."""
        return _parsed(self.text)

    @property
    def root_port(self) -> int:
        """The port of the block that serves `.`, which a server block of ours has to name."""
        try:
            return root_port(find_root_block(self.value)) if self.value else DNS_PORT
        except CorefileError:
            return DNS_PORT

    @property
    def reloads(self) -> bool:
        """Whether CoreDNS notices a change by itself: the plugin `reload` in a block, imported ones included."""
        values = [self.value, *(file.value for file in self.files)]
        return any(block.named("reload") for value in values if value for block in value.blocks)


@dataclass(frozen=True, slots=True)
class StubDomains:
    """The ConfigMap `kube-dns`: zones and who is asked for them, for kube-dns and for node-local-dns."""

    source: Source
    zones: Mapping[str, tuple[str, ...]]
    """`stubDomains`; empty also where it is unreadable, which a fault tells."""
    upstreams: tuple[str, ...]
    """`upstreamNameservers`: who is asked for the rest; empty: the node's resolv.conf."""
    readable: bool
    """Whether both keys are JSON of the right shape; what is not must not be merged into."""
    updates: bool = True
    """Whether a change reaches running pods."""


@dataclass(frozen=True, slots=True)
class Server:
    """A workload that answers DNS."""

    kind: str
    """`Deployment` or `DaemonSet`."""
    namespace: str
    name: str
    container: str
    image: str
    program: Program
    version: Version | None
    """Of CoreDNS; None where the image does not tell."""
    ready: int
    """Pods that are ready."""
    wanted: int
    """Pods that there should be."""
    corefile: FoundCorefile | None
    stub_domains: StubDomains | None

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class NodeLocal:
    """A cache on every node that pods ask instead of the Service."""

    server: Server
    addresses: tuple[str, ...]
    """Where it listens, its own link-local address first."""
    passes_on: bool
    """Whether it asks the cluster's DNS for `.` too. If not, public names never come to the main Corefile."""


@dataclass(frozen=True, slots=True)
class Found:
    """All that discovery knows. It counts once nothing is wanted."""

    where: ServiceRef
    service: FoundService | None = None
    server: Server | None = None
    """Who answers for the Service; None where that is unknown, which a fault tells."""
    node_local: NodeLocal | None = None
    faults: tuple[Fault, ...] = ()
    asked: tuple[Request, ...] = ()
    """Every request that it rests on: the RBAC it takes to read this."""
    wanted: tuple[Request, ...] = ()
    """What has to be read before the rest counts."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the cluster's DNS: those of its Service, then those of the cache on the nodes."""
        service = self.service.addresses if self.service else ()
        return (*service, *(self.node_local.addresses if self.node_local else ()))

    @property
    def asked_by_pods(self) -> Server | None:
        """The workload whose configuration decides about public names: the nodes' cache, unless it passes them on."""
        if self.node_local is not None and not self.node_local.passes_on:
            return self.node_local.server
        return self.server

    @property
    def complete(self) -> bool:
        """Whether all was read that there is to read."""
        return not self.wanted and not any(fault.blame is Blame.ACCESS for fault in self.faults)


def _parsed(text: str, scope: Scope = Scope.BLOCKS) -> Corefile | None:
    try:
        return parse_corefile(text, scope)
    except CorefileError:
        return None

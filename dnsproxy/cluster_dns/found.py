"""Found: what serves a cluster's DNS, and where it could be changed, as one frozen value.

The law: it has what was read and no decision; method_choice.py decides. Names of ConfigMaps, keys and files come from
the cluster: print them through sidecar.values.text. Tested in test_find.py.
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
from dnsproxy.corefile.upstream_form import NODE
from dnsproxy.dns.wire import DNS_PORT
from sidecar.kubernetes.structs.workload import ConfigMap


@dataclass(frozen=True, slots=True)
class ServiceRef:
    """Which Service to take for the cluster's DNS."""

    namespace: str = "kube-system"
    service: str = "kube-dns"
    exact: bool = False
    """Whether the user named it: then no other Service is considered."""


@dataclass(frozen=True, slots=True)
class FoundService:
    """The Service in the resolv.conf of pods."""

    namespace: str
    name: str
    addresses: tuple[str, ...]
    """Its ClusterIPs of both families, the primary first."""
    port: int = DNS_PORT


@dataclass(frozen=True, slots=True)
class Source:
    """A ConfigMap whose keys are files of a pod."""

    namespace: str
    name: str
    object: ConfigMap | None
    """None if it does not exist. If `optional`, it may be created, and its keys appear in running pods."""
    optional: bool = False

    @property
    def exists(self) -> bool:
        """Whether it exists."""
        return self.object is not None

    @property
    def immutable(self) -> bool:
        """Whether the API server refuses every change of its data."""
        return self.object is not None and bool(self.object.immutable)

    @property
    def resource_version(self) -> str:
        """The version for a guarded write; empty if the object is still to be created."""
        return "" if self.object is None else self.object.metadata.resource_version

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file that an import includes today."""

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
    """An `import` of a Corefile, and the ConfigMap of its files."""

    pattern: str
    """As written, cut to be shown."""
    line: int
    """In the file with the import."""
    scope: Scope
    path: str
    """The pattern as an absolute path."""
    takes_forward: bool
    """Whether a `forward` for `.` in its files would get queries: not after a forward that takes every query."""
    source: Source | None
    """The ConfigMap for a new key; None if no ConfigMap is suitable."""
    trouble: str
    """Why the import cannot take a file of ours; empty if it can."""

    def key(self, stem: str) -> str:
        """The key for a file of ours, `switchback.server` for the stem `switchback` and `*.server`."""
        return self.path.rpartition("/")[2].replace("*", stem)


@dataclass(frozen=True, slots=True)
class FoundCorefile:
    """The Corefile that a workload reads, or its template."""

    source: Source
    key: str
    path: str
    """In the container."""
    text: str
    owner: Owner
    hooks: tuple[Hook, ...] = ()
    """Its imports of files in the order of the file, then those of imported files."""
    files: tuple[ImportedFile, ...] = ()
    """All files that they include today, also by imports in imported files."""
    updates: bool = True
    """Whether a change of the ConfigMap reaches running pods: not if it is mounted by subPath."""

    @property
    def value(self) -> Corefile | None:
        """The text as a value; None, and a fault, if it cannot be parsed."""
        return _parsed(self.text)

    @property
    def root_port(self) -> int:
        """The port of the server block of `.`; a server block of ours needs the same."""
        try:
            return root_port(find_root_block(self.value)) if self.value else DNS_PORT
        except CorefileError:
            return DNS_PORT

    @property
    def reloads(self) -> bool:
        """Whether CoreDNS loads a change by itself: a block, or an imported file, has the plugin `reload`."""
        values = [self.value, *(file.value for file in self.files)]
        return any(block.named("reload") for value in values if value for block in value.blocks)


@dataclass(frozen=True, slots=True)
class StubDomains:
    """The ConfigMap `kube-dns` with the stub domains of kube-dns and node-local-dns: zones and their servers."""

    source: Source
    zones: Mapping[str, tuple[str, ...]]
    """`stubDomains`; empty, and a fault, if it is unreadable."""
    upstreams: tuple[str, ...]
    """`upstreamNameservers`, for all other names; if empty, those of the node's resolv.conf."""
    unreadable: tuple[str, ...] = ()
    """The keys that are no valid JSON of their shape; a ConfigMap with one must not be changed."""
    updates: bool = True
    """Whether a change reaches running pods."""

    @property
    def readable(self) -> bool:
        """Whether both keys are valid."""
        return not self.unreadable


@dataclass(frozen=True, slots=True)
class Server:
    """A workload that answers DNS queries."""

    kind: str
    """`Deployment` or `DaemonSet`."""
    namespace: str
    name: str
    container: str
    image: str
    program: Program
    version: Version | None
    """Of CoreDNS; None if the image does not tell it."""
    ready: int
    """Pods that are ready."""
    wanted: int
    """Pods wanted."""
    corefile: FoundCorefile | None
    stub_domains: StubDomains | None
    nameservers: tuple[str, ...] = (NODE,)
    """Those in the resolv.conf of its pods, NODE for those of the node; empty if a ConfigMap has that file."""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class NodeLocal:
    """A cache on every node that pods ask instead of the Service."""

    server: Server
    addresses: tuple[str, ...]
    """The addresses on which it listens, its own link-local address first."""
    passes_on: bool
    """Whether it forwards `.` to the cluster's DNS. If not, queries for public names never reach the main Corefile."""


@dataclass(frozen=True, slots=True)
class Found:
    """The result of discovery. It is valid once nothing is wanted."""

    where: ServiceRef
    service: FoundService | None = None
    server: Server | None = None
    """The workload behind the Service; None, and a fault, if it is unknown."""
    node_local: NodeLocal | None = None
    faults: tuple[Fault, ...] = ()
    asked: tuple[Request, ...] = ()
    """Every request on which it rests, and so the RBAC rights that discovery needs."""
    wanted: tuple[Request, ...] = ()
    """The requests that still have to be made."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the cluster's DNS: those of its Service, then those of the cache on the nodes."""
        service = self.service.addresses if self.service else ()
        return (*service, *(self.node_local.addresses if self.node_local else ()))

    @property
    def asked_by_pods(self) -> Server | None:
        """The workload that decides about public names: the nodes' cache, unless it forwards them."""
        if self.node_local is not None and not self.node_local.passes_on:
            return self.node_local.server
        return self.server

    @property
    def complete(self) -> bool:
        """Whether everything was read."""
        return not self.wanted and not any(fault.blame is Blame.ACCESS for fault in self.faults)


def _parsed(text: str, scope: Scope = Scope.BLOCKS) -> Corefile | None:
    try:
        return parse_corefile(text, scope)
    except CorefileError:
        return None

"""Node-local DNS: a cache on every node, which pods ask instead of the DNS Service.

The law: if its server block for `.` does not forward to the cluster's DNS, no query for a public name ever reaches the
main Corefile, and an install there has no effect. So the upstreams of that block are read, never assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dnsproxy.cluster_dns.arguments import local_addresses, upstream_service
from dnsproxy.cluster_dns.cluster_service import addresses_of
from dnsproxy.cluster_dns.found import FoundCorefile, NodeLocal, Server
from dnsproxy.cluster_dns.image import Program, program_of
from dnsproxy.cluster_dns.requests import DAEMON_SET, SERVICE, Blame, Fault, Requests
from dnsproxy.cluster_dns.servers import labels_of, make_server, pod_of
from dnsproxy.corefile.forward_directive import parse_forward
from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.placing import find_root_block
from dnsproxy.corefile.zones import ROOT
from sidecar.kubernetes.structs.network import Service
from sidecar.kubernetes.structs.workload import Container, Workload
from sidecar.values.endpoints import is_address

LABELS: Final = frozenset(["node-local-dns", "nodelocaldns"])
"""Values of the label `k8s-app` of such a cache."""
CLUSTER_DNS: Final = "__PILLAR__CLUSTER__DNS__"
"""The placeholder for the address of the upstream Service (kubernetes/dns, cmd/node-cache/app/configmap.go)."""


def find_node_local(requests: Requests, service: Service, daemon_sets: Sequence[Workload]) -> NodeLocal | None:
    """The cache on the nodes; None if there is none, or, with a fault, if it cannot be read."""
    caches = [one for one in daemon_sets if _is_cache(one)]
    if not caches:
        return None
    if len(caches) > 1:
        names = ", ".join(one.metadata.name for one in caches)
        text = f"several DaemonSets cache DNS on the nodes ({names}); only {caches[0].metadata.name} was looked at"
        requests.report(Fault(Blame.CONTENTS, text))
    server = make_server(requests, DAEMON_SET, caches[0])
    if server is None:
        return None
    container = next(one for one in pod_of(caches[0]).containers or () if one.name == server.container)
    cluster = addresses_of(service)
    listening = _listens_at(container, server.corefile)
    return NodeLocal(
        server,
        tuple(sorted(listening, key=lambda address: address in cluster)),
        passes_on=_passes_on(requests, server, container, cluster),
    )


def _is_cache(workload: Workload) -> bool:
    images = [container.image or "" for container in pod_of(workload).containers or ()]
    return labels_of(workload).get("k8s-app") in LABELS or any(
        program_of(image) is Program.NODE_CACHE for image in images
    )


def _listens_at(container: Container, corefile: FoundCorefile | None) -> tuple[str, ...]:
    """The addresses of its flag, or else of `bind` in its blocks."""
    value = corefile.value if corefile else None
    blocks = value.blocks if value else ()
    bound = [word.text for block in blocks for directive in block.named("bind") for word in directive.arguments]
    try:
        told = local_addresses(container)
    except ValueError:
        told = ()
    return tuple(dict.fromkeys(filter(is_address, told or bound)))


def _passes_on(requests: Requests, server: Server, container: Container, cluster: Sequence[str]) -> bool:
    asked = _root_upstreams(server.corefile)
    if not asked:
        return False
    known = {CLUSTER_DNS, *cluster}
    if not asked <= known and all(map(is_address, asked)):
        known |= set(_upstream_addresses(requests, server.namespace, container))
    return asked <= known


def _root_upstreams(corefile: FoundCorefile | None) -> set[str]:
    """The upstreams of the block for `.`; empty if they are unknown."""
    value = corefile.value if corefile else None
    if value is None:
        return set()
    try:
        forwards = [parse_forward(directive) for directive in find_root_block(value).named("forward")]
    except CorefileError:
        return set()
    root = next((forward for forward in forwards if forward.serves(ROOT)), None)
    return {upstream.removesuffix(":53") for upstream in root.upstreams} if root else set()


def _upstream_addresses(requests: Requests, namespace: str, container: Container) -> tuple[str, ...]:
    """The ClusterIPs of the Service to which node-cache forwards: the same pods as the DNS Service, another address."""
    try:
        name = upstream_service(container)
    except ValueError:
        return ()
    found = requests.get(SERVICE, namespace, name)
    return addresses_of(found) if isinstance(found, Service) else ()

"""Discovery: from the objects of a cluster to what serves its DNS.

The law: `find` is a function of the answers so far. It returns what is known and what still has to be read; the caller
reads that and calls again until nothing is wanted (read.py). No content of a cluster raises an exception.
"""

from __future__ import annotations

from collections.abc import Mapping

from dnsproxy.cluster_dns.cluster_service import ELSEWHERE, find_service, make_service, selector_of
from dnsproxy.cluster_dns.found import Found, Server, ServiceRef
from dnsproxy.cluster_dns.node_local import find_node_local
from dnsproxy.cluster_dns.requests import DAEMON_SET, DEPLOYMENT, Answer, Blame, Fault, Kind, Request, Requests
from dnsproxy.cluster_dns.servers import labels_of, make_server, pods_of
from sidecar.kubernetes.structs.network import Service
from sidecar.kubernetes.structs.workload import Workload

_Workloads = Mapping[Kind[Workload], tuple[Workload, ...] | None]
"""None for a list that could not be read."""


def find(answers: Mapping[Request, Answer], where: ServiceRef | None = None) -> Found:
    """What these answers show about the cluster's DNS."""
    where = where or ServiceRef()
    requests = Requests(answers)
    service = find_service(requests, where)
    server = node_local = None
    if service is not None:
        workloads = _read_workloads(requests, service, service.metadata.namespace or where.namespace)
        node_local = find_node_local(requests, service, workloads[DAEMON_SET] or ())
        server = _find_server(requests, service, workloads)
    return Found(
        where=where,
        service=make_service(service) if service is not None else None,
        server=server,
        node_local=node_local,
        faults=tuple(requests.faults),
        asked=tuple(requests.asked),
        wanted=requests.wanted,
    )


def _read_workloads(requests: Requests, service: Service, namespace: str) -> _Workloads:
    if (namespace, service.metadata.name) in ELSEWHERE:
        # By name: no Role can grant a list in a namespace that most clusters do not have.
        one = requests.peek(DAEMON_SET, namespace, service.metadata.name)
        if isinstance(one, Workload) and selector_of(service).items() <= labels_of(one).items():
            return {DEPLOYMENT: (), DAEMON_SET: (one,)}
        if requests.wanted:
            return {DEPLOYMENT: None, DAEMON_SET: None}
    listed = {kind: requests.list(kind, namespace) for kind in (DEPLOYMENT, DAEMON_SET)}
    return {kind: found if isinstance(found, tuple) else None for kind, found in listed.items()}


def _find_server(requests: Requests, service: Service, workloads: _Workloads) -> Server | None:
    selector = selector_of(service)
    seen = [(kind, one) for kind, found in workloads.items() for one in found or ()]
    matching = [(kind, one) for kind, one in seen if selector.items() <= labels_of(one).items()]
    # A workload scaled to zero answers no queries, such as a kube-dns that was replaced by CoreDNS.
    running = [(kind, one) for kind, one in matching if pods_of(one)[1]] or matching
    name = f"Service {service.metadata.namespace}/{service.metadata.name}"
    if not running and None in workloads.values():
        return None
    if not running:
        shown = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
        text = f"no Deployment and no DaemonSet has the pods that {name} selects ({shown})"
        requests.report(Fault(Blame.CONTENTS, text, "if the provider runs the DNS itself, configure the names there"))
        return None
    servers = [server for kind, one in running if (server := make_server(requests, kind, one))]
    if len(set(map(_configuration, servers))) > 1:
        text = (
            f"several workloads answer for {name}, each with its own configuration: {' and '.join(map(str, servers))}"
        )
        requests.report(Fault(Blame.CONTENTS, text))
        return None
    # They read one Corefile, so it has to suit the oldest version; an unknown version may be the oldest.
    return min(servers, key=lambda server: server.version or ()) if servers else None


def _configuration(server: Server) -> tuple[str, str]:
    return (str(server.corefile.source), server.corefile.key) if server.corefile else (str(server), "")

"""Reading the cluster's DNS: the installer's discovery, told as facts.

The law: nothing is found out here that `dnsproxy status` does not know; this only keeps what a diagnosis needs of it.
"""

from __future__ import annotations

from dnsproxy.cluster_dns.asked import places_to_ask
from dnsproxy.cluster_dns.found import Found
from dnsproxy.cluster_dns.image import format_version
from dnsproxy.cluster_dns.traces import find_traces
from dnsproxy.doctor.facts import ClusterDns, Stanza


def make_dns(found: Found) -> ClusterDns:
    """The facts of what was found."""
    service, server, cache = found.service, found.server, found.node_local
    decides = found.asked_by_pods
    version = format_version(server.version) if server and server.version else ""
    return ClusterDns(
        service=f"{service.namespace}/{service.name}" if service else "",
        addresses=service.addresses if service else (),
        server=f"{server}: {server.program.value} {version}".strip() if server else "",
        ask_at=tuple(map(str, places_to_ask(found))),
        node_local=str(cache.server) if cache else "",
        node_local_addresses=cache.addresses if cache else (),
        node_local_passes_on=bool(cache and cache.passes_on),
        stanzas=tuple(
            Stanza(str(trace.target), trace.method.value, trace.zones, tuple(map(str, trace.addresses)), trace.fault)
            for trace in find_traces(found)
        ),
        where=str(decides) if decides else "",
        decides=_sources(found),
        faults=tuple(map(str, found.faults)),
    )


def _sources(found: Found) -> tuple[str, ...]:
    """The ConfigMaps of the workload that decides about public names."""
    server = found.asked_by_pods
    corefile = server.corefile if server else None
    sources = [corefile.source] if corefile else []
    sources += [hook.source for hook in (corefile.hooks if corefile else ()) if hook.source is not None]
    sources += [file.source for file in (corefile.files if corefile else ())]
    sources += [server.stub_domains.source] if server and server.stub_domains else []
    return tuple(dict.fromkeys(map(str, sources)))

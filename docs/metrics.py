"""The metrics of every program, read from its collectors.

The law: the collectors report on a server that was never started, so a new metric appears in the guide by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import trio
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from dnsproxy.dns.names import to_wire
from dnsproxy.dnstap.numbers import DnstapNumbers
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.install.watch.watcher_status import WatchCollector, WatchStatus
from dnsproxy.ip_mode.watch.watch_status import IpModeCollector
from dnsproxy.operate.report.steering_status import SteeringCollector, SteeringStatus
from dnsproxy.primary.primary import Primary
from dnsproxy.primary.settings import RpzSettings
from dnsproxy.publish.publisher_status import PublishCollector, PublishStatus
from dnsproxy.replica.replica import Replica, table_zone_of
from dnsproxy.replica.replica_registry import ReplicaRegistry
from dnsproxy.replica.settings import ReplicaSettings
from dnsproxy.secondary.source import RpzSource
from dnsproxy.serve.dnstap_part import dnstap_metrics
from dnsproxy.serve.metrics import ServerCollector
from dnsproxy.serve.zone_report import ZoneReport
from dnsproxy.server.dns_server import DnsServer
from dnsproxy.workers.numbers import PoolNumbers
from proxy.admin.metrics import RelayCollector, RouteCollector, RouteCountCollector, RouteCounts
from proxy.relay.counters import Counters
from proxy.serve.access_log import AccessLog
from proxy.serve.fleet import Fleet
from proxy.tap.tap import Tap
from sidecar.admin.port import BuildCollector
from sidecar.kubernetes.follower_status import FollowerStatus
from wholeip.agent.metrics import AgentCollector
from wholeip.agent.status import AgentStatus

_ZONE: Final = to_wire("rpz.example.org")


async def _collected() -> Mapping[str, list[Metric]]:
    server = DnsServer(forwarding=ForwardSettings(()))
    keeper = TableKeeper(
        Registry(targets=Targets(), guards=Guards()), ttl=5, publish=lambda _: None, sources=["Ingress"]
    )
    statuses = [FollowerStatus("Ingress")]
    zones = ZoneReport(_primary(keeper), _replica())
    collectors: Mapping[str, Sequence[Collector]] = {
        "every program, by its prefix": [BuildCollector(prefix) for prefix in ("dnsproxy", "proxy", "wholeip")],
        "`dnsproxy serve`": [
            ServerCollector(
                server,
                keeper,
                lambda: statuses,
                more=lambda: (*zones.metrics(), *dnstap_metrics(DnstapNumbers(int))),
                workers=PoolNumbers(server),
            )
        ],
        "`dnsproxy operate`": [SteeringCollector(SteeringStatus())],
        "`dnsproxy operate` and `dnsproxy install --watch`": [WatchCollector(WatchStatus())],
        "`dnsproxy ip-mode --watch`": [IpModeCollector([])],
        "the publishers": [PublishCollector(PublishStatus("", ""))],
        "`proxy`": [
            RelayCollector(Counters()),
            RouteCollector(list),
            RouteCountCollector(RouteCounts),
            Fleet([]),
            AccessLog(Tap(), 1),
        ],
        "`wholeip run`": [AgentCollector(AgentStatus())],
    }
    return {name: [metric for one in several for metric in one.collect()] for name, several in collectors.items()}


def _primary(keeper: TableKeeper) -> Primary:
    return Primary(RpzSettings(_ZONE), keeper, ttl=5, is_synced=lambda: True)


def _replica() -> Replica:
    settings = ReplicaSettings((RpzSource(_ZONE, "192.0.2.53"),))
    return Replica(settings, ReplicaRegistry(table_zone_of(settings)), snapshot=None)


def format_metrics() -> str:
    """A table for each program."""
    return "\n".join(line for name, metrics in trio.run(_collected).items() for line in _format_program(name, metrics))


def _format_program(name: str, metrics: Sequence[Metric]) -> Iterator[str]:
    yield from (f"Metrics of {name}:", "", "| metric | kind | meaning |", "| --- | --- | --- |")
    for metric in metrics:
        suffix = "_total" if metric.type == "counter" else ""
        # prometheus_client keeps the label names even while there are no samples.
        labels: Sequence[str] = getattr(metric, "_labelnames", ())
        shown = f"{metric.name}{suffix}{{{','.join(labels)}}}" if labels else f"{metric.name}{suffix}"
        yield f"| `{shown}`{{#{metric.name}}} | {metric.type} | {metric.documentation} |"
    yield ""

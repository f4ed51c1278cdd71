"""`dnsproxy publish-hosts`: settings in, an exit status out.

The law: a hosts file needs no cluster, and a ConfigMap no hosts file. Status 1 is for what an operator has to fix,
status 3 for what could not be found out.
"""

from __future__ import annotations

from pathlib import Path

import structlog

from dnsproxy.cluster_dns.read import load_client
from dnsproxy.publish.configmaps.target import ConfigMapTarget
from dnsproxy.publish.hosts.rules import ROOT
from dnsproxy.publish.hosts.target import HostsTarget, check_name
from dnsproxy.publish.program import run_publisher
from dnsproxy.publish.publisher_status import PublishStatus
from dnsproxy.publish.settings import HostsSettings, Mode
from sidecar.values.errors import StartError

log = structlog.get_logger("dnsproxy.publish")


async def run_publish_hosts(settings: HostsSettings) -> int:
    """Do what the settings say; the exit status. Raises StartError."""
    common, to = settings.common, settings.to
    status = PublishStatus(source=str(common.source), target=str(to))
    if not isinstance(to, Path):
        async with await load_client(kubeconfig=common.kubeconfig, context=common.context) as client:
            return await run_publisher(ConfigMapTarget(client, to, zones=common.zones, status=status), common, status)
    if not settings.force and (fault := check_name(to)):
        raise StartError(f"--to {fault}")
    if ROOT in settings.rules.zones and common.mode is not Mode.REMOVE:
        log.warning("with --zone . this node accepts any hostname that an object of the cluster claims")
    target = HostsTarget(to, rules=settings.rules, status=status)
    return await run_publisher(target, common, status, preview=target.preview)

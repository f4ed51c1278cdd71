"""`dnsproxy publish-external-dns`: settings in, an exit status out.

The law: the namespace of the credentials is used if no other is given; a target needs a cluster in every mode.
"""

from __future__ import annotations

from dnsproxy.cluster_dns.read import load_client
from dnsproxy.publish.externaldns.manifests import Style
from dnsproxy.publish.externaldns.target import ExternalDnsTarget
from dnsproxy.publish.program import run_publisher
from dnsproxy.publish.publisher_status import PublishStatus
from dnsproxy.publish.settings import ExternalDnsSettings, Mode


async def run_publish_external_dns(settings: ExternalDnsSettings) -> int:
    """Do what the settings say; the exit status. Raises StartError."""
    common = settings.common
    async with await load_client(kubeconfig=common.kubeconfig, context=common.context) as client:
        style = Style(
            kind=settings.kind,
            namespace=settings.namespace or client.cluster.namespace,
            instance=settings.instance,
            ttl=settings.ttl,
            annotation_prefixes=settings.annotation_prefixes,
            labels=settings.labels,
            annotations=settings.annotations,
            publisher=str(common.source),
        )
        status = PublishStatus(source=str(common.source), target=f"{style.kind.shown}s in {style.namespace}")
        target = ExternalDnsTarget(
            client,
            style,
            zones=common.zones,
            allow_empty=settings.allow_empty,
            # --remove names the instance alone, and its operator means all of it.
            take_over=settings.take_over or common.mode is Mode.REMOVE,
            status=status,
        )
        return await run_publisher(target, common, status, preview=target.preview)

"""A program that stays in a cluster: its admin port, its client of the API server, and one nursery for its tasks.

The law: all of them end with the block. There is nothing to finish after a signal: a guarded write is made completely
or not at all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import trio

from sidecar.admin.port import AdminPort, open_admin_port
from sidecar.kubernetes.config import find_cluster
from sidecar.kubernetes.http import ApiClient
from sidecar.values.endpoints import Endpoint
from sidecar.values.exit_status import ExitStatus

GRACE: Final = 1.0
"""Seconds after a signal."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How to reach the API server, and where to serve the admin port."""

    kubeconfig: str | None = None
    context: str | None = None
    admin: Endpoint | None = None
    admin_hosts: tuple[str, ...] = ()
    """The names by which the admin port may be asked."""


def access_of(flags: Mapping[str, Any]) -> ClusterAccess:
    """The access that these flags describe: those of kubeconfig_options and admin_option."""
    return ClusterAccess(flags["kubeconfig"], flags["context"], flags["admin"], flags["admin_host"])


@dataclass(frozen=True, slots=True)
class Running:
    """What a running program has."""

    client: ApiClient
    port: AdminPort
    nursery: trio.Nursery


@asynccontextmanager
async def cluster_program(access: ClusterAccess) -> AsyncIterator[Running]:
    """Everything for the time of a block, at whose end the tasks are cancelled. Raises StartError with status 3."""
    with open_admin_port(access.admin, hosts=access.admin_hosts) as port:
        cluster = await find_cluster(kubeconfig=access.kubeconfig, context=access.context, status=ExitStatus.UNKNOWN)
        async with ApiClient(cluster) as client, trio.open_nursery() as nursery:
            yield Running(client, port, nursery)
            nursery.cancel_scope.cancel()

"""Ending `dnsproxy operate` around a removal of the stanza: its pods before it, as they restore it, its objects after.

The law: only its Deployment, the route Services with its label, and its Lease are deleted, all in one namespace.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.operate_objects import LEASE, MANAGER
from dnsproxy.install.run.stanza_writers import SECONDS
from sidecar.kubernetes.errors import ApiError
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection, ObjectMeta
from sidecar.kubernetes.one_shot import list_all
from sidecar.kubernetes.relay_routes import MANAGED_BY
from sidecar.kubernetes.removal import Ended, delete_object, end_workload, is_there
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus


class _Service(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


async def end_operate(
    client: ApiClient,
    operate: ObjectRef,
    *,
    seconds: float = SECONDS,
    on_wait: Callable[[float], None] = lambda _: None,
) -> None:
    """Delete the Deployment, and wait until its pods have ended. Raises StartError; nothing else was changed then."""
    try:
        ended = await end_workload(client, _path_of(operate), seconds=seconds, on_wait=on_wait)
    except ApiError as error:
        raise StartError(f"operate cannot be ended: {error}; nothing was removed", status=ExitStatus.UNKNOWN) from error
    if ended is Ended.REMAINS:
        raise StartError(
            f"the pods of {operate.namespace}/{operate.name} do not end, and would restore the stanza: remove a lost "
            "node with `kubectl delete node`; nothing else was removed",
            status=ExitStatus.NO,
        )
    if ended is Ended.AGAIN:
        raise _is_back(operate)


async def delete_objects_of_operate(client: ApiClient, operate: ObjectRef) -> int:
    """Delete its route Services and its Lease; how many Services. Raises StartError, also if operate is there again."""
    namespace = operate.namespace
    services = f"/api/v1/namespaces/{namespace}/services"
    made = Collection("Service", services, _Service, label_selector=f"{MANAGED_BY}={MANAGER}")
    try:
        if await is_there(client, _path_of(operate)):
            raise _is_back(operate)
        found = await list_all(client, made)
        for one in found.values():
            await delete_object(client, f"{services}/{one.metadata.name}")
        await delete_object(client, f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{LEASE}")
    except ApiError as error:
        raise StartError(f"operate's Services and Lease are left: {error}", status=ExitStatus.NO) from error
    return len(found)


def _is_back(operate: ObjectRef) -> StartError:
    return StartError(
        f"another program has created {operate.namespace}/{operate.name} again, which restores the stanza: suspend it "
        "(Argo CD, Flux) and run this again",
        status=ExitStatus.NO,
    )


def _path_of(operate: ObjectRef) -> str:
    return f"/apis/apps/v1/namespaces/{operate.namespace}/deployments/{operate.name}"

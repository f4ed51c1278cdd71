"""The cluster that a program is to follow, read once at its start.

The law: what is wrong with it ends the program with one line; nothing here asks the API server yet.
"""

from __future__ import annotations

from functools import partial

import trio

from sidecar.errors import StartError
from sidecar.kubernetes.config import Cluster, ClusterConfigError, load_cluster


async def find_cluster(
    *, kubeconfig: str | None, context: str | None, flag: str | None = None, status: int = 2
) -> Cluster:
    """As load_cluster, which may run a credential plugin, in a thread: that may take its time.

    Raises StartError with the status, and with the flag that asked for a cluster, if one did.
    """
    load = partial(load_cluster, kubeconfig=kubeconfig, context=context)
    try:
        return await trio.to_thread.run_sync(load, abandon_on_cancel=True)
    except ClusterConfigError as error:
        raise StartError(f"{flag}: {error}" if flag else str(error), status=status) from error

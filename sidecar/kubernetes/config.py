"""Finds the cluster: by kubeconfig, or from the pod's own service account.

The law: a wrong configuration is a ClusterConfigError, or in find_cluster a StartError of one line; nothing here sends
a request to the API server. Loading may run a plugin, so it belongs in a thread once an event loop runs. A pod needs
no reader of kubeconfigs, which is imported where one is named.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import trio

from sidecar.kubernetes.cluster import Cluster, ClusterConfigError, Tls, check_tls
from sidecar.values.errors import StartError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet puts `token`, `ca.crt` and `namespace` into every pod."""


async def find_cluster(
    *, kubeconfig: str | None, context: str | None, flag: str | None = None, status: int = 2
) -> Cluster:
    """As load_cluster, in a thread, because a credential plugin may take its time.

    Raises StartError with the status, and with the name of the flag that needs a cluster, if one does.
    """
    load = partial(load_cluster, kubeconfig=kubeconfig, context=context)
    try:
        return await trio.to_thread.run_sync(load, abandon_on_cancel=True)
    except ClusterConfigError as error:
        raise StartError(f"{flag}: {error}" if flag else str(error), status=status) from error


def load_cluster(
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Cluster:
    """The cluster of the flags, else of KUBECONFIG, else the pod's own, else of ~/.kube/config.

    `kubeconfig` may be several files joined by colons, as in KUBECONFIG. May run a plugin, so it may block.
    Raises ClusterConfigError.
    """
    files = kubeconfig or environment.get("KUBECONFIG")
    if not files and not context and environment.get("KUBERNETES_SERVICE_HOST"):
        return load_in_cluster(environment=environment, service_account=service_account)
    from sidecar.kubernetes.kubeconfig import load_kubeconfig  # noqa: PLC0415  # it imports YAML

    return load_kubeconfig(files or str(Path.home() / ".kube" / "config"), context=context)


def load_in_cluster(*, environment: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Cluster:
    """The cluster that this pod runs in. Raises ClusterConfigError."""
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT") or "443"
    if not host:
        raise ClusterConfigError("KUBERNETES_SERVICE_HOST is not set, so this is not a pod; use --kubeconfig FILE")
    read_authorization = partial(_read_bearer, service_account / "token")
    read_authorization()
    cluster = Cluster(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        origin="the pod's service account",
        # The kubelet renews the file well before the token expires; at one request per minute, reading it each time
        # is cheaper than tracking its expiry.
        read_authorization=read_authorization,
        reload=partial(load_in_cluster, environment=environment, service_account=service_account),
        tls=Tls(ca=_read(service_account / "ca.crt")),
        namespace=_read_namespace(service_account / "namespace"),
    )
    check_tls(cluster.tls, source=str(service_account / "ca.crt"))
    return cluster


def _read_bearer(path: Path) -> str:
    token = _read(path).strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ClusterConfigError(f"{path} contains no token")
    return f"Bearer {token}"


def _read_namespace(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig").strip() or "default"
    except (OSError, UnicodeDecodeError):
        return "default"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        hint = "does the pod have automountServiceAccountToken: false?"
        reason = error.strerror if isinstance(error, OSError) else error
        raise ClusterConfigError(f"{path}: {reason}; {hint}") from error

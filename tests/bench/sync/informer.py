"""The `kubernetes` package's own informer on all Ingresses: a process that says how many it has, once it has them.

    python -m tests.bench.sync.informer KUBECONFIG COUNT

The law: used as its documentation shows; the process then waits to be looked at and ended.
"""

from __future__ import annotations

import sys
import time

from kubernetes import client, config
from kubernetes.informer import SharedInformer

READY = "synced"
_LOOK_SECONDS = 0.01


def main(kubeconfig: str, count: int) -> None:
    """Follow until ended."""
    config.load_kube_config(kubeconfig)  # type: ignore[no-untyped-call]  # the package has no annotations
    informer = SharedInformer(client.NetworkingV1Api().list_ingress_for_all_namespaces)  # type: ignore[no-untyped-call]
    added = 0

    def note(_: object) -> None:
        nonlocal added
        added += 1

    informer.add_event_handler("ADDED", note)  # type: ignore[no-untyped-call]
    informer.start()  # type: ignore[no-untyped-call]
    while added < count:
        time.sleep(_LOOK_SECONDS)
    print(READY, added, flush=True)  # noqa: T201  # what it is for
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

"""`python -m tests.cluster.nodes.enforcer KUBECONFIG`: keeps the cluster's NetworkPolicies in the kernel of its node.

The law: a thin shell around policies.py; each change of a pod, a policy or a namespace replaces the whole ruleset in
one transaction. It runs until it is terminated.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
import trio

from sidecar.kubernetes.config import load_cluster
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import Changes, follow
from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable
from tests.cluster.nodes.policies import Object, format_rules

_PAUSE: Final = 0.05
"""Seconds to collect simultaneous changes."""


class Labelled(ObjectMeta, frozen=True, rename="camel"):
    """With the labels that selectors use."""

    labels: dict[str, str] | None = None


class Anything(msgspec.Struct, frozen=True, rename="camel"):
    """An object of the API server, parsed."""

    metadata: Labelled
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] | None = None


KINDS: Final = {
    "Pod": "/api/v1/pods",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/networkpolicies",
    "Namespace": "/api/v1/namespaces",
}


async def main(kubeconfig: str) -> None:
    """Enforce until cancelled."""
    known: dict[str, dict[str, Object]] = {kind: {} for kind in KINDS}
    changed = trio.Event()

    def take(kind: str, changes: Changes[Anything]) -> None:
        for key, one in changes.items():
            if one is None:
                known[kind].pop(key, None)
            elif isinstance(one, Unreadable):
                raise TypeError(one.reason)
            else:
                known[kind][key] = msgspec.to_builtins(one)
        changed.set()

    async with ApiClient(load_cluster(kubeconfig=kubeconfig)) as client, trio.open_nursery() as nursery:
        for kind, path in KINDS.items():
            on_change: Callable[[Changes[Anything]], None] = partial(take, kind)
            nursery.start_soon(partial(follow, client, Collection(kind, path, Anything), on_change=on_change))
        while True:
            await changed.wait()
            await trio.sleep(_PAUSE)
            changed = trio.Event()
            rules = format_rules(*(tuple(known[kind].values()) for kind in KINDS))
            # nft is in system folders, which a PATH may lack.
            await trio.run_process(["nft", "-f", "-"], stdin=rules.encode(), stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    trio.run(main, sys.argv[1])

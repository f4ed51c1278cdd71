"""The cluster DNS of a distribution (tests/kit/clusters) as objects of a real API server, for the duration of a block.

The law: its objects are in their own namespaces, under their own names; afterwards none of them is there any more, and
no namespace that was made for them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from tests.kit.apiserver import ApiServer
from tests.kit.manifest_cluster import Manifest, manifests

PATHS: Final = {
    "Service": "/api/v1/namespaces/{}/services",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
    "Ingress": "/apis/networking.k8s.io/v1/namespaces/{}/ingresses",
}
"""Of the collections, without the namespace."""
_numbers = itertools.count()


def writable(manifest: Manifest) -> Manifest:
    """The object in a form for any API server, whose Services have addresses of its own range."""
    made: dict[str, Any] = json.loads(json.dumps(manifest))
    for key in ("resourceVersion", "managedFields"):
        made["metadata"].pop(key, None)
    made.pop("status", None)
    for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if made.get("spec", {}).get(key) not in ("None", ["None"]):
            made.get("spec", {}).pop(key, None)
    return made


@contextmanager
def recorded_cluster(server: ApiServer, name: str) -> Iterator[None]:
    """The objects of a distribution, each as its owner wrote it."""
    objects = manifests(name)
    with ExitStack() as stack:
        for namespace in sorted({one["metadata"]["namespace"] for one in objects} - {"kube-system"}):
            stack.enter_context(_namespace(server, namespace))
        for one in objects:
            path = PATHS[one["kind"]].format(one["metadata"]["namespace"])
            server.request("POST", f"{path}?fieldManager={_writer(one) or f'{name}-{next(_numbers)}'}", writable(one))
            stack.callback(server.request, "DELETE", f"{path}/{one['metadata']['name']}")
        yield


def _writer(manifest: Manifest) -> str:
    """The program that wrote it, as recorded; content that kubectl writes counts as a person's."""
    fields = manifest["metadata"].get("managedFields") or [{"manager": ""}]
    return str(fields[-1]["manager"])


@contextmanager
def _namespace(server: ApiServer, name: str) -> Iterator[None]:
    server.create_namespace(name)
    yield
    path = f"/api/v1/namespaces/{name}"
    server.request("DELETE", path)
    # What the namespace controller does once a namespace is empty.
    server.request("PUT", f"{path}/finalize", {"metadata": {"name": name}, "spec": {"finalizers": []}})

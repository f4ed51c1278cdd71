"""Versions: the kinds of the Gateway API with their versions, for watched_kinds.py.

The law: the most stable version that is served. The fields that are read here are the same in all versions.
https://gateway-api.sigs.k8s.io/concepts/versioning/
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final

from dnsproxy.sources.gateway import structs
from dnsproxy.sources.gateway.kinds import (
    GATEWAY,
    GROUP,
    GRPC_ROUTE,
    HTTP_ROUTE,
    LISTENER_SET,
    TLS_ROUTE,
    X_GROUP,
    X_LISTENER_SET,
)
from dnsproxy.sources.watched_kinds import WatchedKind, choose_collections, version_paths
from sidecar.kubernetes.objects import Collection

WATCHED: Final = (
    WatchedKind(GATEWAY, GROUP, ("v1", "v1beta1", "v1alpha2"), "gateways", structs.Gateway, optional=False),
    WatchedKind(LISTENER_SET, GROUP, ("v1",), "listenersets", structs.ListenerSet),
    WatchedKind(X_LISTENER_SET, X_GROUP, ("v1alpha1",), "xlistenersets", structs.ListenerSet),
    WatchedKind(HTTP_ROUTE, GROUP, ("v1", "v1beta1", "v1alpha2"), "httproutes", structs.Route, optional=False),
    WatchedKind(GRPC_ROUTE, GROUP, ("v1", "v1alpha2"), "grpcroutes", structs.Route),
    WatchedKind(TLS_ROUTE, GROUP, ("v1", "v1alpha3", "v1alpha2"), "tlsroutes", structs.Route),
)

VERSION_PATHS: Final = tuple(version_paths(WATCHED, {}))
"""What to query for the resources of each version; 404 means that the API server does not have it."""

RESOURCES: Final = frozenset(one.resource for one in WATCHED)
"""The resources of all kinds."""

NAMESPACES: Final = Collection("Namespace", "/api/v1/namespaces", structs.Namespace, optional=True)
"""For listeners that admit by label: if RBAC hides Namespaces, those admit no route."""


def choose_gateway_collections(served: Mapping[str, Set[str]]) -> dict[str, Collection[Any]]:
    """The collection to read for each kind that is served. `served`: the names of resources by VERSION_PATHS."""
    return choose_collections(WATCHED, served, {})

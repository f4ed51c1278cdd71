"""Versions: which version of each kind to list and watch, of those that the API server has.

The law: the most stable version that is served. A kind that is not served is off and does not affect the others. The
fields that are read here are the same in all versions. https://gateway-api.sigs.k8s.io/concepts/versioning/
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import msgspec

from dnsproxy.sources.gateway import structs
from dnsproxy.sources.gateway.kinds import (
    GATEWAY,
    GROUPS,
    GRPC_ROUTE,
    HTTP_ROUTE,
    LISTENER_SET,
    TLS_ROUTE,
    X_LISTENER_SET,
)
from sidecar.kubernetes.errors import Garbled, shown
from sidecar.kubernetes.objects import Collection

GatewayCollection = Collection[structs.Gateway] | Collection[structs.ListenerSet] | Collection[structs.Route]


@dataclass(frozen=True, slots=True)
class _Served:
    """The resource and versions of a kind."""

    resource: str
    versions: tuple[str, ...]
    """The best first."""
    type: type[structs.Gateway] | type[structs.ListenerSet] | type[structs.Route]
    optional: bool = True
    """As Collection.optional: few clusters use these kinds, so RBAC may not allow them."""


_KINDS: Final[Mapping[str, _Served]] = MappingProxyType(
    {
        GATEWAY: _Served("gateways", ("v1", "v1beta1", "v1alpha2"), structs.Gateway, optional=False),
        LISTENER_SET: _Served("listenersets", ("v1",), structs.ListenerSet),
        X_LISTENER_SET: _Served("xlistenersets", ("v1alpha1",), structs.ListenerSet),
        HTTP_ROUTE: _Served("httproutes", ("v1", "v1beta1", "v1alpha2"), structs.Route, optional=False),
        GRPC_ROUTE: _Served("grpcroutes", ("v1", "v1alpha2"), structs.Route),
        TLS_ROUTE: _Served("tlsroutes", ("v1", "v1alpha3", "v1alpha2"), structs.Route),
    }
)

GROUP_VERSIONS: Final = tuple(
    dict.fromkeys(f"{GROUPS[kind]}/{version}" for kind, served in _KINDS.items() for version in served.versions)
)
"""What to query at `/apis/GROUP/VERSION`; 404 means that the API server does not have it."""

RESOURCES: Final = frozenset(served.resource for served in _KINDS.values())
"""The resources of all kinds."""

NAMESPACES: Final = Collection("Namespace", "/api/v1/namespaces", structs.Namespace, optional=True)
"""For listeners that admit by label: if RBAC hides Namespaces, those admit no route."""


class _Resource(msgspec.Struct, frozen=True):
    name: str
    verbs: tuple[str, ...] | None = None


class _ResourceList(msgspec.Struct, frozen=True):
    resources: tuple[_Resource, ...] | None = None


def parse_resources(body: bytes) -> frozenset[str]:
    """The resources in an APIResourceList, the answer to GET `/apis/GROUP/VERSION`, that can be listed and watched.

    Raises Garbled for anything else.
    """
    try:
        resources = msgspec.json.decode(body, type=_ResourceList).resources
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Garbled(f"not a list of resources ({error}): {shown(body)}") from error
    return frozenset(one.name for one in resources or () if {"list", "watch"} <= set(one.verbs or ()))


def choose_collections(served: Mapping[str, Set[str]]) -> dict[str, GatewayCollection]:
    """The collection to follow for each kind that is served. `served`: the names of resources by `GROUP/VERSION`."""
    chosen: dict[str, GatewayCollection] = {}
    for kind, one in _KINDS.items():
        group = GROUPS[kind]
        version = next(
            (version for version in one.versions if one.resource in served.get(f"{group}/{version}", ())), None
        )
        if version is not None:
            path = f"/apis/{group}/{version}/{one.resource}"
            chosen[kind] = Collection(  # type: ignore[assignment]
                kind, path, one.type, optional=one.optional, discovered=True
            )
    return chosen

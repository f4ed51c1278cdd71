"""Objects of the Gateway API as in a manifest, short enough for a table of tests."""

from __future__ import annotations

from typing import Any

import msgspec

from dnsproxy.sources.gateway import structs
from dnsproxy.sources.gateway.kinds import GATEWAY, LISTENER_SET, X_GROUP, X_LISTENER_SET

ACCEPTED = {"conditions": [{"type": "Accepted", "status": "True"}, {"type": "Programmed", "status": "Unknown"}]}
"""The status of a Gateway that a controller serves, and that has no address yet."""

OLD, NEW = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"


def metadata(place: str, *, created: str = OLD, **more: Any) -> dict[str, Any]:
    """`place`: NAMESPACE/NAME."""
    namespace, _, name = place.rpartition("/")
    return {"name": name, "namespace": namespace, "creationTimestamp": created, "resourceVersion": "1", **more}


def listener(hostname: str | None = None, name: str = "https", **more: Any) -> dict[str, Any]:
    """Protocol HTTPS on port 443, for routes of all namespaces, unless `more` overrides that."""
    allowed = {"namespaces": {"from": "All"}}
    made = {"name": name, "protocol": "HTTPS", "port": 443, "allowedRoutes": allowed, **more}
    return made | ({"hostname": hostname} if hostname is not None else {})


def gateway(*listeners: Any, place: str = "infra/main", class_name: str = "public", **more: Any) -> structs.Gateway:
    """`more`: `created`, `annotations`, `labels` for the metadata, `status`, the rest for the spec. Accepted."""
    about = {key: more.pop(key) for key in ("created", "annotations", "labels") if key in more}
    status = more.pop("status", ACCEPTED)
    spec = {"gatewayClassName": class_name, "listeners": list(listeners), **more}
    return msgspec.convert({"metadata": metadata(place, **about), "spec": spec, "status": status}, structs.Gateway)


def listener_set(*listeners: Any, place: str = "web/extra", parent: Any = None, **about: Any) -> structs.ListenerSet:
    """For the Gateway infra/main, unless `parent` is given."""
    parent = {"name": "main", "namespace": "infra"} if parent is None else parent
    spec = {"parentRef": parent, "listeners": list(listeners)}
    return msgspec.convert({"metadata": metadata(place, **about), "spec": spec}, structs.ListenerSet)


def parent_ref(place: str = "infra/main", kind: str = GATEWAY, **more: Any) -> dict[str, Any]:
    """A parentRef with all its fields."""
    namespace, _, name = place.rpartition("/")
    group = {"group": X_GROUP} if kind == X_LISTENER_SET else {}
    return {"name": name, "namespace": namespace, "kind": kind, **group, **more}


TO_GATEWAY = parent_ref()
TO_SET = parent_ref("web/extra", LISTENER_SET)


TO_HTTPS = {"filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301}}]}
"""A rule that only redirects."""
TO_BACKEND = {"backendRefs": [{"name": "app", "port": 80}]}


def route(
    *hostnames: Any, place: str = "web/app", parents: Any = (TO_GATEWAY,), rules: Any = None, **about: Any
) -> structs.Route:
    """Attached to the Gateway infra/main, unless `parents` is given."""
    written = msgspec.Raw(msgspec.json.encode(rules))
    spec = {"parentRefs": list(parents), "hostnames": list(hostnames), "rules": written}
    return msgspec.convert({"metadata": metadata(place, **about), "spec": spec}, structs.Route)


def namespace(name: str, **labels: str) -> structs.Namespace:
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, structs.Namespace)


def manifest(one: msgspec.Struct) -> Any:
    """The object as JSON has it."""
    return msgspec.json.decode(msgspec.json.encode(one))


ALL_SETS = {"namespaces": {"from": "All"}}
"""`allowedListeners` that admit every ListenerSet."""

SELECTED = {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "web"}}}}
"""For `allowedRoutes` and `allowedListeners`."""

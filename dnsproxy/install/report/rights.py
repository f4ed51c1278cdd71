"""The RBAC that a plan takes to read, write and watch, as Roles that name every object that can be named.

The law: these rights allow the whole plan, its uninstall, and nothing else. RBAC cannot grant `list` by name, so it is
granted for a namespace. https://kubernetes.io/docs/reference/access-authn-authz/rbac/ Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import yaml

from dnsproxy.cluster_dns.requests import CONFIG_MAP, Request
from dnsproxy.install.change.config_map import ConfigMapChange, is_made
from dnsproxy.install.watch.followed import followed
from sidecar.kubernetes.events.event import GROUP, PLURAL

NAME: Final = "dnsproxy-install"
WATCH_NAME: Final = "dnsproxy-install-watch"
_VERBS: Final = ("get", "list", "watch", "patch", "create", "delete")


@dataclass(frozen=True, slots=True)
class Grant:
    """One verb on one object, or on all of a kind in a namespace."""

    namespace: str
    """Empty for all of them."""
    group: str
    plural: str
    name: str | None
    verb: str


def grants_of(asked: Iterable[Request], changes: Iterable[ConfigMapChange]) -> tuple[Grant, ...]:
    """The rights to read these requests, to write these changes, and to delete what they create."""
    read = [Grant(one.namespace, one.kind.group, one.kind.plural, one.name, one.verb) for one in asked]
    written = [
        Grant(change.source.namespace, CONFIG_MAP.group, CONFIG_MAP.plural, change.source.name, verb)
        for change in changes
        for verb in ("patch", change.verb, *(["delete"] if is_made(change) else []))
    ]
    return tuple(dict.fromkeys([*read, *written]))


def watch_grants_of(asked: Iterable[Request], changes: Iterable[ConfigMapChange]) -> tuple[Grant, ...]:
    """The additional rights to watch what was read, and to create Events for what is written.

    To list and watch one object by a field selector takes the right for its name only.
    """
    watched_requests = followed(asked)
    watched = [
        Grant(one.namespace, one.kind.group, one.kind.plural, one.name, verb)
        for one in watched_requests
        for verb in ("list", "watch")
    ]
    namespaces = [*(change.source.namespace for change in changes), *(one.namespace for one in watched_requests)]
    events = [Grant(namespace, GROUP, PLURAL, None, "create") for namespace in namespaces]
    return tuple(dict.fromkeys([*watched, *events]))


def make_roles(grants: Iterable[Grant], name: str = NAME) -> list[dict[str, Any]]:
    """A Role for each namespace, and a ClusterRole for requests in all namespaces."""
    by_namespace: dict[str, list[Grant]] = {}
    for grant in grants:
        by_namespace.setdefault(grant.namespace, []).append(grant)
    return [_role(name, namespace, granted) for namespace, granted in by_namespace.items()]


def format_roles(grants: Iterable[Grant], name: str = NAME) -> str:
    """The Roles as YAML documents."""
    return yaml.safe_dump_all(make_roles(grants, name), explicit_start=True, sort_keys=False)


def _role(name: str, namespace: str, grants: list[Grant]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": metadata,
        "rules": _rules(grants),
    }


def _rules(grants: list[Grant]) -> list[dict[str, Any]]:
    """One rule for the names with the same verbs, and one for each kind to list."""
    verbs: dict[tuple[str, str, str | None], set[str]] = {}
    for grant in grants:
        verbs.setdefault((grant.group, grant.plural, grant.name), set()).add(grant.verb)
    names: dict[tuple[str, str, tuple[str, ...], bool], list[str]] = {}
    for (group, plural, name), granted in verbs.items():
        ordered = tuple(verb for verb in _VERBS if verb in granted)
        names.setdefault((group, plural, ordered, name is None), []).extend([] if name is None else [name])
    return [
        {
            "apiGroups": [group],
            "resources": [plural],
            **({} if is_list else {"resourceNames": sorted(named)}),
            "verbs": list(ordered),
        }
        for (group, plural, ordered, is_list), named in names.items()
    ]

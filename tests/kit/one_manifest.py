"""The rights of one manifest for every cluster: `dnsproxy serve` and `dnsproxy install --watch`, without a value.

The law: objects are named wherever RBAC can name them. To list and watch one object by a field selector takes the right
for its name alone. A Role in a namespace that most clusters do not have cannot be applied, so what OpenShift has in its
own namespace is in the ClusterRoles, by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dnsproxy.install.report.rights import Grant

OWN: Final = "switchback"
DNS: Final = "kube-system"

UPSTREAM_CONFIG_MAPS: Final = (
    f"{DNS}/nodelocaldns",
    f"{DNS}/coredns",
    f"{DNS}/rke2-coredns-rke2-coredns",
    f"{DNS}/kube-dns",
    "openshift-dns/dns-default",
)
"""The values of --upstream-configmap. The first is what kubespray's pods ask, if it is there. kube-dns comes after the
Corefiles: a cluster that was moved from kube-dns to CoreDNS keeps its ConfigMap."""

Manifest = Mapping[str, Any]
Rule = dict[str, Any]


def _rule(group: str, resources: Iterable[str], verbs: str, names: Iterable[str] = ()) -> Rule:
    named = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": list(resources), **named, "verbs": verbs.split()}


def _role(namespace: str, *rules: Rule) -> Manifest:
    return {"kind": "Role", "metadata": {"namespace": namespace}, "rules": list(rules)}


def _cluster_role(*rules: Rule) -> Manifest:
    return {"kind": "ClusterRole", "metadata": {}, "rules": list(rules)}


_GATEWAY_API: Final = ("gateways", "listenersets", "httproutes", "grpcroutes", "tlsroutes")

SERVE: Final = (
    _cluster_role(
        _rule("networking.k8s.io", ["ingresses", "ingressclasses"], "list watch"),
        _rule("gateway.networking.k8s.io", _GATEWAY_API, "list watch"),
        _rule("", ["namespaces"], "list watch"),
        _rule("", ["configmaps"], "list watch", ["dns-default"]),
    ),
    # The route Services of --target auto, and whether a pod of each is ready.
    _role(OWN, _rule("", ["services"], "list watch"), _rule("discovery.k8s.io", ["endpointslices"], "list watch")),
    _role(
        DNS,
        _rule("", ["configmaps"], "list watch", ["coredns", "kube-dns", "nodelocaldns", "rke2-coredns-rke2-coredns"]),
    ),
)
"""Of `dnsproxy serve`."""

_SERVICES: Final = ("coredns", "kube-dns", "kube-dns-upstream", "rke2-coredns-rke2-coredns")
_READ: Final = ("coredns", "coredns-custom", "kube-dns", "node-local-dns", "nodelocaldns", "rke2-coredns-rke2-coredns")

INSTALL: Final = (
    _cluster_role(
        # The hosts, where no dnsproxy says its zones.
        _rule("networking.k8s.io", ["ingresses"], "list"),
        _rule("", ["services", "configmaps"], "get list watch", ["dns-default"]),
        _rule("apps", ["daemonsets"], "get list watch", ["dns-default"]),
    ),
    _role(
        OWN,
        _rule("", ["services"], "get list watch", ["dnsproxy"]),
        _rule("discovery.k8s.io", ["endpointslices"], "list watch"),
        _rule("apps", ["deployments", "daemonsets"], "list watch"),
        _rule("events.k8s.io", ["events"], "create"),
    ),
    _role(
        DNS,
        _rule("", ["services"], "get list watch", _SERVICES),
        _rule("apps", ["deployments", "daemonsets"], "list watch"),
        _rule("", ["configmaps"], "get list watch", _READ),
        # The Corefiles that keep an edit; those that are made where they are missing are taken away again.
        _rule("", ["configmaps"], "patch", ["coredns", "nodelocaldns"]),
        _rule("", ["configmaps"], "create patch delete", ["coredns-custom", "kube-dns"]),
        _rule("events.k8s.io", ["events"], "create"),
    ),
)
"""Of `dnsproxy install --watch` and of `dnsproxy uninstall`."""


def is_granted(grant: Grant, roles: Iterable[Manifest]) -> bool:
    """Whether one of these roles grants it."""
    return any(
        role["metadata"].get("namespace") in (None, grant.namespace) and _allows(rule, grant)
        for role in roles
        for rule in role["rules"]
    )


def _allows(rule: Mapping[str, Any], grant: Grant) -> bool:
    names = rule.get("resourceNames")
    return (
        grant.group in rule["apiGroups"]
        and grant.plural in rule["resources"]
        and grant.verb in rule["verbs"]
        and (names is None or grant.name in names)
    )

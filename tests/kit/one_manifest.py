"""The rights and the list of ConfigMaps of the one installation for every cluster, as the files in deploy/ have them.

The law: kustomize adds no right to those files and takes none away; tests/deploy/test_manifests.py compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from dnsproxy.install.report.rights import Grant
from tests.kit.laws import ROOT

OWN: Final = "switchback"
DNS: Final = "kube-system"

Manifest = Mapping[str, Any]

FILES: Final = {
    "dnsproxy": ("base/dnsproxy-account.yaml", "components/gateway-api/rights.yaml"),
    "operate": tuple(f"components/operate/{name}.yaml" for name in ("account", "cluster-dns", "writing", "routes")),
}
"""By account, in deploy/."""


def _objects(file: str) -> list[Manifest]:
    return list(yaml.safe_load_all((ROOT / "deploy" / file).read_text(encoding="utf-8")))


def _roles(account: str) -> tuple[Manifest, ...]:
    """The Roles and ClusterRoles of an account, each with its namespace."""
    found = [one for file in FILES[account] for one in _objects(file) if one["kind"] in {"Role", "ClusterRole"}]
    own = {"Role": {"namespace": OWN}, "ClusterRole": {}}
    return tuple({**one, "metadata": own[one["kind"]] | one["metadata"]} for one in found)


def _config_maps(variable: str) -> tuple[str, ...]:
    """The values of a variable of dnsproxy."""
    (base,) = _objects("base/kustomization.yaml")
    literals = [line for one in base["configMapGenerator"] for line in one.get("literals", ())]
    (value,) = (line.partition("=")[2] for line in literals if line.startswith(f"{variable}="))
    return tuple(value.split())


UPSTREAM_CONFIG_MAPS: Final = _config_maps("DNSPROXY_UPSTREAM_CONFIGMAP")
"""The values of --upstream-configmap. The first is what kubespray's pods ask, if it is there. kube-dns comes after the
Corefiles: a cluster that was moved from kube-dns to CoreDNS keeps its ConfigMap."""
UPSTREAM_IMPORTS: Final = _config_maps("DNSPROXY_UPSTREAM_IMPORTS")
"""The values of --upstream-imports."""
SERVE: Final = _roles("dnsproxy")
OPERATE: Final = _roles("operate")
"""Of `dnsproxy operate`, and of `dnsproxy uninstall`, which runs with its account."""


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

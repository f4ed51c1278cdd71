"""ServiceAccounts of a real API server that have only the given rights, and their kubeconfigs.

The law: a role is a manifest with its kind, rules and, for a Role, its namespace; names are unique on the API server.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.kit.allowed import wait_until_allowed
from tests.kit.apiserver import ApiServer

RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_numbers = itertools.count()

Rules = Iterable[Mapping[str, Any]]
Manifest = Mapping[str, Any]


def role(namespace: str, rules: Rules) -> Manifest:
    """Rights in one namespace."""
    return {"kind": "Role", "metadata": {"namespace": namespace}, "rules": list(rules)}


def cluster_role(rules: Rules) -> Manifest:
    """Rights in every namespace."""
    return {"kind": "ClusterRole", "metadata": {}, "rules": list(rules)}


def create_account(server: ApiServer, namespace: str, name: str, roles: Iterable[Manifest]) -> str:
    """Create a ServiceAccount that has only these roles, and wait until it has them. Returns its token."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    server.request("POST", accounts, {"metadata": {"name": name}})
    for one in roles:
        _bind(server, {"kind": "ServiceAccount", "name": name, "namespace": namespace}, one)
    return str(server.request("POST", f"{accounts}/{name}/token", {"spec": {}})["status"]["token"])


def wait_until_rights_are_read(server: ApiServer) -> None:
    """Wait until the API server's authorizer has read the roles and bindings of now: it grants newer ones."""
    everywhere, inside = (
        [{"apiGroups": ["test.example.org"], "resources": [one], "verbs": ["get"]}] for one in ("everywhere", "inside")
    )
    create_account(server, "default", f"newest-{next(_numbers)}", [cluster_role(everywhere), role("default", inside)])


def write_kubeconfig(server: ApiServer, token: str, path: Path) -> Path:
    """The API server's own kubeconfig with another token, usable in any folder. Returns `path`."""
    config = yaml.safe_load(server.kubeconfig.read_text(encoding="utf-8"))
    config["users"] = [{"name": "token", "user": {"token": token}}]
    trusted = {"server": server.url, "certificate-authority": str(server.ca_file)}
    config["clusters"] = [{"name": "test", "cluster": trusted}]
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def _bind(server: ApiServer, subject: Mapping[str, str], role: Manifest) -> None:
    kind, namespace = role["kind"], role["metadata"].get("namespace")
    # A unique name: tests share the API server, and a ClusterRole has no namespace.
    name = f"{subject['name']}-{next(_numbers)}"
    folder = f"{RBAC}/namespaces/{namespace}" if kind == "Role" else RBAC
    metadata = {"name": name, **({"namespace": namespace} if kind == "Role" else {})}
    server.request("POST", f"{folder}/{kind.lower()}s", {"metadata": metadata, "rules": role["rules"]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    binding = {"metadata": metadata, "subjects": [dict(subject)], "roleRef": reference}
    server.request("POST", f"{folder}/{kind.lower()}bindings", binding)
    account = (subject["name"], subject["namespace"])
    wait_until_allowed(server.request, account, role["rules"], namespace=namespace or "")

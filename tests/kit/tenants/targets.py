"""Services of tenants that their objects name as targets, and the right to read them, which the owner gives."""

from __future__ import annotations

from typing import Any

from tests.kit.accounts import RBAC
from tests.kit.tenants.scene import Scene
from tests.kit.tenants.tenant import Tenant


def service(name: str, **spec: Any) -> dict[str, Any]:
    """The manifest of a Service."""
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def readable(scene: Scene, tenant: Tenant, name: str) -> None:
    """The owner lets dnsproxy read one Service of a tenant."""
    rules = [{"apiGroups": [""], "resources": ["services"], "resourceNames": [name], "verbs": ["list", "watch"]}]
    folder = f"{RBAC}/namespaces/{tenant.namespace}"
    scene.server.request("POST", f"{folder}/roles", {"metadata": {"name": "target"}, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "target"}
    subject = {"kind": "ServiceAccount", "name": "dnsproxy", "namespace": "switchback"}
    binding = {"metadata": {"name": "target"}, "subjects": [subject], "roleRef": reference}
    scene.server.request("POST", f"{folder}/rolebindings", binding)

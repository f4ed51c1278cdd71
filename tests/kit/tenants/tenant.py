"""A tenant: an account with the role `edit` in one namespace, and its calls to the API server.

The law: it acts only with its own token. The rights are those that the API server itself aggregates into `edit`; the
controller manager, which fills that role, does not run here.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.deploy.putting import path_of
from tests.kit.accounts import RBAC
from tests.kit.allowed import wait_until_allowed
from tests.kit.apiserver import ingress
from tests.kit.tenants.session import Session

EDIT: Final = ("system:aggregate-to-view", "system:aggregate-to-edit", "tenants-gateways")
"""The last one is ours: who lets tenants use the Gateway API adds it to `edit`."""
GATEWAY_RIGHTS: Final = {
    "metadata": {"name": "tenants-gateways"},
    "rules": [
        {
            "apiGroups": ["gateway.networking.k8s.io"],
            "resources": ["gateways", "httproutes", "grpcroutes", "tlsroutes", "listenersets"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
        }
    ],
}
SHOWN_BY: Final = (
    {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": ["get"]},
    {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": ["create"]},
    {"apiGroups": ["gateway.networking.k8s.io"], "resources": ["gateways"], "verbs": ["create"]},
)
"""One right of each role in `EDIT`, which the API server grants some time after the binding."""
ALLOWED_LABEL: Final = {"switchback.dev/annotations": "allowed"}


@dataclass(frozen=True)
class Tenant:
    """One account, in the namespace of its name."""

    session: Session
    namespace: str
    token: str

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Create an object in its namespace. Fails if the API server refuses it."""
        whole = {**manifest, "metadata": {**manifest["metadata"], "namespace": self.namespace}}
        path = path_of(whole).rpartition("/")[0]
        status, said = self.call("POST", path, whole)
        assert status == http.client.CREATED, said

    def ingress(
        self,
        *hosts: str,
        name: str = "web",
        ingress_class: str | None = "public",
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Create an Ingress."""
        self.create(
            ingress(name, list(hosts), namespace=self.namespace, ingress_class=ingress_class, annotations=annotations)
        )

    def edit(self, manifest: Mapping[str, Any]) -> None:
        """Replace an object, whose age stays."""
        whole = {**manifest, "metadata": {**manifest["metadata"], "namespace": self.namespace}}
        status, said = self.call("PUT", path_of(whole), whole)
        assert status == http.client.OK, said

    def edit_ingress(self, *hosts: str, name: str = "web", ingress_class: str | None = "public") -> None:
        """Replace the hosts of an Ingress."""
        self.edit(ingress(name, list(hosts), namespace=self.namespace, ingress_class=ingress_class))

    def delete_ingress(self, name: str = "web") -> None:
        path = f"/apis/networking.k8s.io/v1/namespaces/{self.namespace}/ingresses/{name}"
        status, said = self.call("DELETE", path)
        assert status == http.client.OK, said

    def call(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        """The status and the text of any call."""
        return self.session.call(method, path, body, token=self.token)


def create_tenant(server: Session, namespace: str, *, labels: Mapping[str, str] | None = None) -> Tenant:
    """A namespace with its account. Only the owner of the cluster can give it labels."""
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace, "labels": dict(labels or {})}})
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    server.request("POST", accounts, {"metadata": {"name": "tenant"}})
    for role in EDIT:
        bind(server, namespace, role, account=("tenant", namespace))
    wait_until_allowed(server.request, ("tenant", namespace), SHOWN_BY, namespace=namespace)
    token = server.request("POST", f"{accounts}/tenant/token", {"spec": {}})["status"]["token"]
    return Tenant(server, namespace, str(token))


def bind(server: Session, namespace: str, role: str, *, account: tuple[str, str]) -> None:
    """Bind a ClusterRole to an account `(name, namespace)` in one namespace."""
    name = f"{account[0]}-{role.replace(':', '-')}"
    subject = {"kind": "ServiceAccount", "name": account[0], "namespace": account[1]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    binding = {"metadata": {"name": name}, "subjects": [subject], "roleRef": reference}
    server.request("POST", f"{RBAC}/namespaces/{namespace}/rolebindings", binding)


def set_status(server: Session, namespace: str, names: Sequence[str], address: str) -> None:
    """What the controller writes: the address of its load balancer."""
    patch = {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}
    for name in names:
        path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses/{name}/status"
        server.request("PATCH", path, patch)

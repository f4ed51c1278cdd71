"""Calls to an API server as a ServiceAccount, with a token requested as a kubelet requests it.

The law: calls are real (a list lists, a watch begins); only a call that would change something is a dry run, which has
the same authorisation.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kit.accounts import wait_until_rights_are_read, write_kubeconfig
from tests.kit.apiserver import ApiServer

_GROUPS: Final = {
    "ingresses": "/apis/networking.k8s.io/v1",
    "ingressclasses": "/apis/networking.k8s.io/v1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
    "servicecidrs": "/apis/networking.k8s.io/v1",
    "ipaddresses": "/apis/networking.k8s.io/v1",
    "deployments": "/apis/apps/v1",
    "daemonsets": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "roles": "/apis/rbac.authorization.k8s.io/v1",
    "clusterrolebindings": "/apis/rbac.authorization.k8s.io/v1",
    "endpointslices": "/apis/discovery.k8s.io/v1",
    "jobs": "/apis/batch/v1",
    "cronjobs": "/apis/batch/v1",
    "mutatingadmissionpolicies": "/apis/admissionregistration.k8s.io/v1",
    "mutatingadmissionpolicybindings": "/apis/admissionregistration.k8s.io/v1",
    "clienttrafficpolicies": "/apis/gateway.envoyproxy.io/v1alpha1",
    "felixconfigurations": "/apis/crd.projectcalico.org/v1",
    "xlistenersets": "/apis/gateway.networking.x-k8s.io/v1alpha1",
    "gatewayclasses": "/apis/gateway.networking.k8s.io/v1",
    "gateways": "/apis/gateway.networking.k8s.io/v1",
    "httproutes": "/apis/gateway.networking.k8s.io/v1",
    "grpcroutes": "/apis/gateway.networking.k8s.io/v1",
    "tlsroutes": "/apis/gateway.networking.k8s.io/v1",
    "listenersets": "/apis/gateway.networking.k8s.io/v1",
    "dnsendpoints": "/apis/externaldns.k8s.io/v1alpha1",
    "ingressroutes": "/apis/traefik.io/v1alpha1",
    "ingressroutetcps": "/apis/traefik.io/v1alpha1",
    "ingressroutes.traefik.containo.us": "/apis/traefik.containo.us/v1alpha1",
    "ingressroutetcps.traefik.containo.us": "/apis/traefik.containo.us/v1alpha1",
    "routes": "/apis/route.openshift.io/v1",
    "httpproxies": "/apis/projectcontour.io/v1",
    "virtualservices": "/apis/networking.istio.io/v1",
    "gateways.networking.istio.io": "/apis/networking.istio.io/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "events": "/apis/events.k8s.io/v1",
}
_METHODS: Final = {
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}


@dataclass(frozen=True)
class Call:
    """One call: `list ingresses`, `watch services relay in switchback`, `list gateways.networking.istio.io` ..."""

    verb: str
    resource: str
    name: str = ""
    namespace: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        words = [self.verb, self.resource + (f"/{self.subresource}" if self.subresource else ""), self.name]
        return " ".join(word for word in [*words, f"in {self.namespace}" if self.namespace else ""] if word)

    @property
    def method(self) -> str:
        return _METHODS.get(self.verb, "GET")

    @property
    def content(self) -> str | None:
        """The body. The API server takes a deletion's options from the body, whatever the query says."""
        if self.method == "GET":
            return None
        return json.dumps({"dryRun": ["All"]} if self.method == "DELETE" else {})

    @property
    def path(self) -> str:
        """Lists and watches of one name use a field selector, because RBAC recognises a name only there."""
        parts = [_GROUPS.get(self.resource, "/api/v1")]
        parts += ["namespaces", self.namespace] if self.namespace else []
        parts += [self.resource.partition(".")[0]]
        options: list[str] = []
        if self.verb in {"list", "watch"}:
            options += [f"fieldSelector=metadata.name%3D{self.name}"] if self.name else []
            options += ["watch=true", "resourceVersion=0", "timeoutSeconds=1"] if self.verb == "watch" else []
        elif (self.verb not in {"create", "deletecollection"} and self.name) or self.subresource:
            parts += [self.name]
        parts += [self.subresource] if self.subresource else []
        options += ["dryRun=All"] if self.verb in _METHODS else []
        return "/".join(parts) + (f"?{'&'.join(options)}" if options else "")


def parse_call(text: str) -> Call:
    """`VERB RESOURCE[/SUBRESOURCE] [NAME] [in NAMESPACE]`."""
    words, _, namespace = text.partition(" in ")
    verb, resource, *name = words.split()
    plural, _, subresource = resource.partition("/")
    return Call(verb, plural, name[0] if name else "", namespace, subresource)


@dataclass(frozen=True)
class Caller:
    """A client with a token."""

    server: ApiServer
    token: str

    def allowed(self, calls: Iterable[str]) -> list[str]:
        """The calls among these, as `parse_call` reads them, that are allowed, in their order.

        An allowed call may still be invalid for other reasons, which do not count.
        """
        with self.connection() as connection:
            return [one for one in calls if self._is_allowed(connection, parse_call(one))]

    def _is_allowed(self, connection: http.client.HTTPSConnection, call: Call) -> bool:
        kind = "application/merge-patch+json" if call.verb == "patch" else "application/json"
        headers = {"authorization": f"Bearer {self.token}", "content-type": kind}
        connection.request(call.method, call.path, call.content, headers)
        response = connection.getresponse()
        if call.verb == "watch" and response.status == http.client.OK:
            # It does not end by itself; the next call connects again.
            connection.close()
            return True
        said = response.read()
        assert response.status != http.client.UNAUTHORIZED, said
        # Pod Security and other admission plugins forbid too; only RBAC uses these words.
        return not (response.status == http.client.FORBIDDEN and b"cannot " + call.verb.encode() in said)

    @contextmanager
    def connection(self) -> Iterator[http.client.HTTPSConnection]:
        """A connection for a call of another form."""
        context = ssl.create_default_context(cafile=str(self.server.ca_file))
        connection = http.client.HTTPSConnection("127.0.0.1", self.server.port, context=context, timeout=30)
        try:
            yield connection
        finally:
            connection.close()

    def write_kubeconfig(self, path: Path) -> Path:
        """A kubeconfig with this token, for a program."""
        return write_kubeconfig(self.server, self.token, path)


def account(server: ApiServer, namespace: str, name: str) -> Caller:
    """A ServiceAccount, with a token of its own (TokenRequest), and the rights that exist now."""
    wait_until_rights_are_read(server)
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    answer = server.request("POST", path, {"spec": {"expirationSeconds": 3600}})
    return Caller(server, answer["status"]["token"])

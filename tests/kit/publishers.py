"""The publishers' cluster: a namespace, an account with only the documented rights, and DNSEndpoints."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from dnsproxy.admin.publication import format_document
from dnsproxy.publish.externaldns.manifests import Kind
from tests.kit.accounts import create_account, role, write_kubeconfig
from tests.kit.apiserver import TOKEN, ApiServer, running_apiserver
from tests.kit.polling import poll_until
from tests.kit.prepared_program import shared
from tests.kit.programs import program
from tests.kit.publications import publication

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION: Final = "dnsendpoints.externaldns.k8s.io"
SECONDS: Final = 60

ENDPOINT_RIGHTS: Final = (
    {
        "apiGroups": ["externaldns.k8s.io"],
        "resources": ["dnsendpoints"],
        "verbs": ["list", "create", "patch", "delete"],
    },
)
"""For --output dnsendpoint, in the namespace of the objects."""
SERVICE_RIGHTS: Final = (
    {"apiGroups": [""], "resources": ["services"], "verbs": ["list", "create", "patch", "delete"]},
)
"""For --output service."""
MAP_RIGHTS: Final = (
    {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["node-hosts", "node-hosts-2", "node-hosts-3"],
        "verbs": ["get", "create", "patch", "delete"],
    },
)
"""For publish-hosts --to-configmap: by name, one for each possible part."""

RIGHTS: Final = {Kind.DNS_ENDPOINT: ENDPOINT_RIGHTS, Kind.SERVICE: SERVICE_RIGHTS}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server for the tests of one module: definitions apply to the whole cluster. Import it where it is used."""
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as one:
        define_dnsendpoint(one)
        yield one


@pytest.fixture(name="kind", params=list(Kind), ids=[kind.value for kind in Kind])
def each_kind(request: pytest.FixtureRequest) -> Kind:
    """Each kind of object that external-dns reads. Import it where it is used."""
    chosen: Kind = request.param
    return chosen


@dataclass
class Place:
    """A namespace, and a kubeconfig of an account in it with only these rights."""

    server: ApiServer
    folder: Path
    name: str
    rights: Sequence[Mapping[str, Any]]
    kubeconfig: Path = field(init=False)

    def __post_init__(self) -> None:
        """Create both."""
        self.server.create_namespace(self.name)
        self.kubeconfig = self._make_account()
        self.names = self.folder / f"{self.name}.json.gz"

    def has(self, *rows: str) -> None:
        """Set the present table."""
        self.names.write_bytes(format_document(publication(*rows)).octets)

    def publish(self, command: str, *arguments: str) -> tuple[int, str, str]:
        """Run a publisher until it exits: status, stdout and stderr."""
        settings = {
            "DNSPROXY_FROM_FILE": str(self.names),
            "DNSPROXY_KUBECONFIG": str(self.kubeconfig),
            "DNSPROXY_NAMESPACE": self.name,
            "DNSPROXY_INSTANCE": "main",
        }
        done = shared("dnsproxy").run(command, *arguments, environment={**os.environ, **settings})
        return done.returncode, done.stdout, done.stderr

    def objects(self, collection: str) -> list[Any]:
        """All DNSEndpoints of the namespace."""
        found: list[Any] = self.server.request("GET", f"{collection}?limit=500")["items"]
        return found

    def _make_account(self) -> Path:
        token = create_account(self.server, self.name, "publisher", [role(self.name, self.rights)])
        return write_kubeconfig(self.server, token, self.folder / f"kubeconfig-{self.name}")


def define_dnsendpoint(server: ApiServer) -> None:
    """Install external-dns's own definition of DNSEndpoint, and wait until it is served."""
    manifest = Path(program("dnsendpoint")) / "dnsendpoints.externaldns.k8s.io.yaml"
    if _ask(server, "GET", f"{CRDS}/{DEFINITION}")[0] != http.client.OK:
        status, answer = _ask(server, "POST", CRDS, manifest.read_bytes())
        assert status == http.client.CREATED, answer
    served = "/apis/externaldns.k8s.io/v1alpha1/dnsendpoints"
    poll_until(lambda: _ask(server, "GET", served)[0] == http.client.OK, "DNSEndpoint is served", seconds=SECONDS)


def _ask(server: ApiServer, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
    with server.connection() as connection:
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/yaml"}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        octets = response.read()
        return response.status, json.loads(octets) if octets.startswith(b"{") else octets

"""A real etcd and kube-apiserver on free loopback ports, for the duration of a `with` block or of a test session.

Synchronous, because pytest-trio has no session-wide fixtures. It ends only the processes that it started, by handle.
"""

from __future__ import annotations

import base64
import http.client
import json
import signal
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
import yaml

from tests.kit.etcd import EtcdServer
from tests.kit.ports import free_ports
from tests.kit.processes import end_process, wait_for
from tests.kit.programs import built_versions, program

TOKEN = "switchback-admin-token"
_UNANSWERED = 5.0
"""Seconds after which `serves` counts a request as not answered."""
_CLIENT_FILES = ("certificate", "key")


@dataclass
class ApiServer:
    """A running API server; `kill` and `start` keep the port and etcd's data."""

    folder: Path
    port: int
    etcd: EtcdServer
    service_range: str = "10.96.0.0/16"
    version: str = ""
    """`v1.34.4`; empty: the newest that `make peers` built."""
    flags: tuple[str, ...] = ()
    """Besides those that every API server of the tests has."""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False, kw_only=True)

    @property
    def etcd_port(self) -> int:
        return self.etcd.port

    @property
    def process_id(self) -> int:
        """Of the API server without its etcd."""
        assert self._process is not None
        return self._process.pid

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        """The token of a member of system:masters."""
        return TOKEN

    @property
    def ca_file(self) -> Path:
        """Of the authority that issued its certificate, and those of its clients."""
        return self.folder / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        """Written at the start. Its current context `test` uses the token; `_write_kubeconfig` adds others."""
        return self.folder / "kubeconfig"

    def start(self) -> None:
        """Start it and wait for /readyz."""
        with (self.folder / "kube-apiserver.log").open("ab") as log:
            self._process = subprocess.Popen(self._command(), stdout=log, stderr=log)
        wait_for(self._is_ready, process=self._process, log=self.folder / "kube-apiserver.log")
        self._write_kubeconfig()

    def kill(self) -> None:
        """SIGKILL, and wait for the process to end."""
        end_process(self._process)
        self._process = None

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """It is stopped for the duration of a block, without ending: connections are accepted, and nothing answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def request(self, method: str, path: str, body: object = None, *, content_type: str = "application/json") -> Any:
        """One request over its own connection. Returns the decoded response. Fails on any status other than 2xx."""
        with self.connection() as connection:
            return send(connection, method, path, body, content_type=content_type)

    def status_of(self, path: str, *, seconds: float = 30) -> int:
        """The status of one GET. Raises TimeoutError."""
        with self.connection(seconds=seconds) as connection:
            connection.request("GET", path, headers={"authorization": f"Bearer {TOKEN}"})
            response = connection.getresponse()
            response.read()
            return response.status

    def serves(self, path: str) -> bool:
        """Whether a GET succeeds, for polling: a new definition's storage may let a request wait for etcd for ever."""
        try:
            return self.status_of(path, seconds=_UNANSWERED) == http.client.OK
        except TimeoutError:
            return False

    @contextmanager
    def connection(self, *, seconds: float = 30) -> Iterator[http.client.HTTPSConnection]:
        """A connection for several requests with `send`; `seconds` for each answer."""
        context = ssl.create_default_context(cafile=str(self.ca_file))
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=seconds)
        try:
            yield connection
        finally:
            connection.close()

    def create_ingress(self, name: str, hosts: list[str], **options: Any) -> Any:
        """Create an Ingress; `options` as for `ingress`."""
        manifest = ingress(name, hosts, **options)
        return self.request("POST", collection_path(manifest["metadata"]["namespace"]), manifest)

    def patch_ingress(self, name: str, patch: Mapping[str, Any], *, namespace: str = "default") -> Any:
        """A JSON merge patch (RFC 7386)."""
        path = f"{collection_path(namespace)}/{name}"
        return self.request("PATCH", path, patch, content_type="application/merge-patch+json")

    def delete_ingress(self, name: str, *, namespace: str = "default") -> Any:
        return self.request("DELETE", f"{collection_path(namespace)}/{name}")

    def allow_annotations(self, namespace: str = "default", value: str | None = "allowed") -> None:
        """Let the annotations of a namespace's objects count; None ends that."""
        patch = {"metadata": {"labels": {"switchback.dev/annotations": value}}}
        self.request("PATCH", f"/api/v1/namespaces/{namespace}", patch, content_type="application/merge-patch+json")

    def create_namespace(self, name: str) -> Any:
        return self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def delete_all_ingresses(self, *, namespace: str = "default") -> Any:
        return self.request("DELETE", collection_path(namespace))

    def compact(self) -> None:
        """Have etcd drop every revision but the last, as the API server does every five minutes."""
        revision = self._ask_etcd("range", {"key": "AA=="})["header"]["revision"]
        self._ask_etcd("compaction", {"revision": revision, "physical": True})

    def _ask_etcd(self, method: str, body: Mapping[str, Any]) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.etcd_port, timeout=30)
        try:
            connection.request("POST", f"/v3/kv/{method}", json.dumps(body))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def _command(self) -> list[str]:
        return [
            built_versions("kube-apiserver")[self.version] if self.version else program("kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            f"--tls-cert-file={self.folder / 'server.cer'}",
            f"--tls-private-key-file={self.folder / 'server.key'}",
            f"--service-account-key-file={self.folder / 'sa.key'}",
            f"--service-account-signing-key-file={self.folder / 'sa.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--client-ca-file={self.folder / 'ca.crt'}",
            "--authorization-mode=RBAC",
            f"--service-cluster-ip-range={self.service_range}",
            "--disable-admission-plugins=ServiceAccount",
            *self.flags,
        ]

    def _is_ready(self) -> bool:
        try:
            return self.status_of("/readyz") == http.client.OK
        except (OSError, http.client.HTTPException):
            return False

    def _write_kubeconfig(self) -> None:
        server: dict[str, Any] = {"server": self.url}
        trusted = server | {"certificate-authority": "ca.crt"}
        certificate = {f"client-{kind}-data": encoded(self.folder / f"client.{kind[:3]}") for kind in _CLIENT_FILES}
        clusters = {
            "test": trusted,
            "certificate": trusted,
            "named": trusted | {"tls-server-name": "kubernetes.default.svc"},
            "misnamed": trusted | {"tls-server-name": "other.example.org"},
            "insecure": server | {"insecure-skip-tls-verify": True},
            "untrusted": server,
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster} for name, cluster in clusters.items()],
            "users": [{"name": "token", "user": {"token": TOKEN}}, {"name": "certificate", "user": certificate}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": user_of(name)}} for name in clusters],
            "current-context": "test",
        }
        self.kubeconfig.write_text(yaml.safe_dump(config), encoding="utf-8")


async def in_thread(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call the API server from a worker thread, so that the tasks of this thread continue meanwhile."""
    return await trio.to_thread.run_sync(partial(function, *arguments, **keywords))


def user_of(context: str) -> str:
    return "certificate" if context == "certificate" else "token"


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def write_keys(folder: Path) -> None:
    """The key that signs service account tokens, and certificates of the server and of a client in system:masters.

    On elliptic curves: the RSA key that it would make for itself is a fifth of what its start takes.
    """
    authority = trustme.CA()
    server = authority.issue_cert("127.0.0.1", "localhost", "kubernetes.default.svc")
    client = authority.issue_cert("someone.example.org", organization_name="system:masters", common_name="someone")
    authority.cert_pem.write_to_path(folder / "ca.crt")
    for name, issued in (("server", server), ("client", client)):
        issued.private_key_pem.write_to_path(folder / f"{name}.key")
        issued.cert_chain_pems[0].write_to_path(folder / f"{name}.cer")
    authority.issue_cert(common_name="signer").private_key_pem.write_to_path(folder / "sa.key")


@contextmanager
def running_apiserver(
    folder: Path,
    *,
    service_range: str = ApiServer.service_range,
    version: str = ApiServer.version,
    flags: tuple[str, ...] = ApiServer.flags,
) -> Iterator[ApiServer]:
    """A separate API server, which writes all its files below `folder`.

    With a range of loopback addresses, programs on this machine can listen on the addresses of its Services.
    """
    write_keys(folder)
    (folder / "tokens.csv").write_text(f"{TOKEN},admin,1,system:masters\n", encoding="utf-8")
    with ExitStack() as stack:
        etcd_port, peer_port, port = free_ports(3)
        etcd = EtcdServer(folder, etcd_port, peer_port)
        stack.callback(etcd.kill)
        etcd.start()
        server = ApiServer(folder, port, etcd, service_range, version, flags)
        stack.callback(server.kill)
        server.start()
        yield server


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """One API server for the whole session; each test uses its own namespace, and deletes its Ingresses.

    Import it in the conftest.py of the folder: each module that imports it starts another one, to the session's end.
    """
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as server:
        yield server


def ingress(
    name: str,
    hosts: list[str],
    *,
    namespace: str = "default",
    ingress_class: str | None = None,
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The manifest of an Ingress with one rule for each host, all of them under TLS."""
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rules = [
        {"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}} for host in hosts
    ]
    spec: dict[str, Any] = {"rules": rules, "tls": [{"hosts": hosts, "secretName": "tls"}]}
    if ingress_class is not None:
        spec["ingressClassName"] = ingress_class
    metadata = {"name": name, "namespace": namespace, "annotations": dict(annotations or {})}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}


def collection_path(namespace: str) -> str:
    return f"/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses"


def send(
    connection: http.client.HTTPSConnection,
    method: str,
    path: str,
    body: object = None,
    *,
    content_type: str = "application/json",
) -> Any:
    """One request as the administrator over an open connection."""
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": content_type}
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    assert response.status in range(200, 300), f"{method} {path}: {response.status} {answer}"
    return answer

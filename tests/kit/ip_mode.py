"""Services of type LoadBalancer on a real API server, their statuses as providers write them, and the policy.

The law: whether a policy is in effect is asked of the API server, by a dry run; it reads its policies once a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from dnsproxy.ip_mode.policy import format_policy
from dnsproxy.ip_mode.selection import Selection
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import DEPLOY
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.polling import poll_until
from tests.kit.programs import built_versions

COMPONENT: Final = DEPLOY / "components" / "ip-mode"

BETA_FLAGS: Final = (
    "--feature-gates=MutatingAdmissionPolicy=true",
    "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
)
"""With them, an API server of 1.34 or 1.35 serves v1beta1."""
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
SELECTED: Final = {"switchback.dev/ip-mode": "Proxy"}
PORTS: Final = ({"name": "https", "port": 443, "protocol": "TCP"},)

Entry = Mapping[str, Any]


@dataclass
class Services:
    """The Services of one namespace."""

    server: ApiServer
    namespace: str

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/services"

    def create(self, *, annotations: Mapping[str, str] | None = None, **spec: Any) -> str:
        """A new Service; `spec` by the names of the API. Returns its name."""
        metadata = {"generateName": "web-", "annotations": dict(annotations or {})}
        body = {"metadata": metadata, "spec": {"type": "LoadBalancer", "ports": PORTS, **spec}}
        return str(self.server.request("POST", self.path, body)["metadata"]["name"])

    def get(self, name: str) -> Any:
        return self.server.request("GET", f"{self.path}/{name}")

    def patch_status(self, name: str, status: Any, *, content_type: str = MERGE, query: str = "") -> Any:
        """The Service after a merge patch of its status."""
        body = {"status": status} if content_type == MERGE else status
        return self.server.request("PATCH", f"{self.path}/{name}/status{query}", body, content_type=content_type)

    def would_write(self, name: str, entries: Sequence[Entry]) -> list[Entry]:
        """What the API server would store if a provider wrote these entries."""
        return entries_of(self.patch_status(name, status_of(entries), query="?dryRun=All"))

    def modes(self, name: str) -> list[str]:
        """The ipMode of each entry that a provider would get for two addresses."""
        return [entry["ipMode"] for entry in self.would_write(name, [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}])]

    def wait_for_mode(self, name: str, mode: str) -> None:
        """Wait until the next write of a provider gets this ipMode."""
        poll_until(lambda: set(self.modes(name)) == {mode}, f"the API server writes ipMode {mode}", seconds=30)


def status_of(entries: Sequence[Entry]) -> dict[str, Any]:
    """A Service's status with these entries."""
    return {"loadBalancer": {"ingress": list(entries)}}


def entries_of(service: Any) -> list[Entry]:
    """The entries of a Service's status."""
    found: list[Entry] = service["status"].get("loadBalancer", {}).get("ingress", [])
    return found


def apply_text(server: ApiServer, text: str, folder: Path) -> None:
    """`kubectl apply` of printed manifests, octet for octet."""
    file = folder / "printed.yaml"
    file.write_text(text, encoding="utf-8")
    kubectl(server, "apply", "-f", str(file))


@dataclass(frozen=True)
class Release:
    """An API server to start, and the version of the policy that it serves."""

    version: str
    api_version: str
    flags: tuple[str, ...] = ()


RELEASES: Final = (
    Release("v1.34.4", "v1beta1", BETA_FLAGS),
    Release("v1.35.4", "v1beta1", BETA_FLAGS),
    Release("v1.36.3", "v1"),
)


@pytest.fixture(scope="module", params=RELEASES, ids=lambda release: release.version)
def release(request: pytest.FixtureRequest) -> Release:
    found: Release = request.param
    if found.version not in built_versions("kube-apiserver"):
        pytest.skip(f"missing peer: kube-apiserver {found.version} (`make peers` or `make world-peers` brings it)")
    return found


@pytest.fixture(scope="module")
def server(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server with the policy."""
    folder = tmp_path_factory.mktemp("ip-mode")
    with running_apiserver(folder, version=release.version, flags=release.flags) as one:
        if release.api_version == "v1":
            kubectl(one, "apply", "-k", str(COMPONENT))
        else:
            apply_text(one, format_policy(release.api_version, Selection()), folder)
        yield one


@pytest.fixture(scope="module")
def services(server: ApiServer) -> Services:
    """Its Services, from the moment at which the policy is in effect."""
    server.create_namespace("shop")
    found = Services(server, "shop")
    found.wait_for_mode(found.create(annotations=SELECTED), "Proxy")
    return found

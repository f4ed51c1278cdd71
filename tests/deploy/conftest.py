"""One API server for all tests that apply deploy/, because its start takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.kubectl import KINDS, LABEL, kubectl
from tests.deploy.manifests import BASE
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.networks import root
from tests.kit.operate_stage.stage import operate_stage
from tests.kit.programs import program

__all__ = ["operate_stage", "root"]

CONTROLLERS = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ingress-nginx"}}
"""The namespace of an ingress controller, as a cluster with the fault has it."""


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """It knows the definitions outside Kubernetes' core, and has no object of ours; see `bare`."""
    with running_apiserver(tmp_path_factory.mktemp("deploy")) as server:
        definitions = (f"{program('gateway-api')}/standard", program("prometheus-operator"), program("dnsendpoint"))
        files = [word for one in definitions for word in ("-f", one)]
        kubectl(server, "apply", "--server-side", *files)
        # ip-mode-watch has its rights in the namespace of the Service that it names.
        kubectl(server, "apply", "-f", "-", given=[CONTROLLERS])
        yield server


@pytest.fixture(scope="module")
def bare(api_server: ApiServer) -> Iterator[ApiServer]:
    """The same, without objects of ours again at the module's end, so that the next module starts clean."""
    yield api_server
    api_server.delete_all_ingresses()
    kubectl(api_server, "delete", f"{KINDS},namespaces", "-A", "-l", LABEL, "--wait=false")
    for name in kubectl(api_server, "get", "namespaces", "-l", LABEL, "-o", "name").split():
        end_namespace(api_server, name.removeprefix("namespace/"))


@pytest.fixture(scope="module")
def applied(bare: ApiServer) -> ApiServer:
    """The same with the base applied."""
    kubectl(bare, "apply", "-k", str(BASE))
    return bare


def end_namespace(server: ApiServer, name: str) -> None:
    """The controller manager's last step: without finalizers the namespace is deleted."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}
    server.request("PUT", f"/api/v1/namespaces/{name}/finalize", body)

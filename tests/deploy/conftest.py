"""One API server for all tests that apply what is in deploy/, because its start costs more than most of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.kubectl import kubectl
from tests.peers.apiserver import ApiServer, running_apiserver
from tests.peers.programs import program


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """It knows the objects that are not Kubernetes' own, and has nothing of ours; see `bare`."""
    with running_apiserver(tmp_path_factory.mktemp("deploy")) as server:
        definitions = (f"{program('gateway-api')}/standard", program("prometheus-operator"), program("dnsendpoint"))
        files = [word for one in definitions for word in ("-f", one)]
        kubectl(server, "apply", "--server-side", *files)
        yield server


@pytest.fixture(scope="module")
def bare(api_server: ApiServer) -> Iterator[ApiServer]:
    """The same, given back at the module's end without rights of ours, which the next one's accounts would have."""
    yield api_server
    api_server.delete_all_ingresses()
    kinds = "roles,rolebindings,clusterroles,clusterrolebindings"
    kubectl(api_server, "delete", kinds, "-A", "-l", "app.kubernetes.io/part-of=switchback")

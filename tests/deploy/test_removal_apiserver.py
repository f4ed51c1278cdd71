"""`deploy/remove.sh` on a real control plane: no object, no Lease, no route Service and no line in the DNS is left."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.deploy.control_plane import (
    PEERS,
    PodsOfJobs,
    labelled,
    namespace_is_there,
    operate_has_run,
    running_control_plane,
)
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import DEPLOY, INSTALLATION, compose
from tests.deploy.test_applying_again import FORMER
from tests.kit.apiserver import ApiServer
from tests.kit.polling import poll_until
from tests.kit.programs import program
from tests.kit.recorded_cluster import PATHS, recorded_cluster

pytestmark = [pytest.mark.peer(*PEERS), pytest.mark.timeout(400)]

COREFILE: Final = f"{PATHS['ConfigMap'].format('kube-system')}/coredns"
SECONDS: Final = 100.0


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with running_control_plane(tmp_path_factory.mktemp("control-plane")) as server:
        yield server


def remove(server: ApiServer, folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["sh", str(DEPLOY / "remove.sh"), str(folder)]
    environment = {**os.environ, "KUBECTL": f"{program('kubectl')} --kubeconfig={server.kubeconfig}"}
    environment["SECONDS_TO_WAIT"] = str(int(SECONDS))
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("layouts", ["new", "former", "former, and new over it"])
def test_nothing_is_left_and_the_dns_is_as_before(control_plane: ApiServer, tmp_path: Path, layouts: str) -> None:
    server = control_plane
    assert labelled(server) == []
    with recorded_cluster(server, "kubeadm"):
        before = server.request("GET", COREFILE)["data"]
        if "former" in layouts:
            kubectl(server, "apply", "-f", str(FORMER))
        if "new" in layouts:
            kubectl(server, "apply", "-k", str(INSTALLATION))
        operate_has_run(server, tmp_path, "operate" if "new" in layouts else "installer")
        assert server.request("GET", COREFILE)["data"] != before
        job = PodsOfJobs(server, tmp_path)
        with job.played():
            done = remove(server, compose_owners(tmp_path))
        assert done.returncode == 0, done.stdout + done.stderr + job.said
        assert server.request("GET", COREFILE)["data"] == before
        poll_until(lambda: not namespace_is_there(server), "the namespace ends", seconds=SECONDS)
        assert labelled(server) == []
        # It may run again.
        assert remove(server, compose_owners(tmp_path)).returncode == 0


def compose_owners(folder: Path) -> Path:
    there = folder / "my-cluster"
    there.mkdir(exist_ok=True)
    return compose(there, with_components=[])

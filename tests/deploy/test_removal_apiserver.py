"""`deploy/remove.sh` on a real control plane: no object, no Lease, no route Service and no line in the DNS is left.

The garbage collector and the namespace controller are real; the pod of the uninstalling Job is played, with its token.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from dnsproxy.operate.decide.facts import ListenPort, Route
from dnsproxy.operate.decide.route_manifest import manifest_of
from tests.deploy.calls import account
from tests.deploy.kubectl import LABEL, kubectl
from tests.deploy.manifests import DEPLOY, INSTALLATION, compose
from tests.deploy.test_applying_again import FORMER
from tests.deploy.test_operate_rights import SLICE, ready_slice
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.operate_stage.programs import running
from tests.kit.polling import poll_until
from tests.kit.programs import program
from tests.kit.recorded_cluster import PATHS, recorded_cluster

pytestmark = [
    pytest.mark.peer("etcd", "kube-apiserver", "kube-controller-manager", "kubectl"),
    pytest.mark.timeout(400),
]

OWN: Final = "/api/v1/namespaces/switchback"
JOBS: Final = "/apis/batch/v1/namespaces/switchback/jobs"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/switchback/leases"
COREFILE: Final = f"{PATHS['ConfigMap'].format('kube-system')}/coredns"
SECONDS: Final = 100.0
DEPRECATED: Final = ("componentstatuses", "endpoints")
"""Kinds that the API server warns of; it makes the second ones itself."""


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    folder = tmp_path_factory.mktemp("control-plane")
    log = folder / "controllers.log"
    with running_apiserver(folder) as server:
        command = [
            program("kube-controller-manager"),
            f"--kubeconfig={server.kubeconfig}",
            "--controllers=garbage-collector-controller,namespace-controller",
            "--leader-elect=false",
            "--secure-port=0",
        ]
        with running(command, log, lambda: b"Garbage collector: all resource monitors" in log.read_bytes()):
            yield server


@dataclass
class JobOfTheUninstaller:
    """What the Job's pod does, with the account of its CronJob."""

    server: ApiServer
    folder: Path
    said: str = ""

    @contextmanager
    def played(self) -> Iterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=self._play, args=[ended])
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _play(self, ended: threading.Event) -> None:
        while not ended.wait(0.2):
            for job in self.server.request("GET", JOBS)["items"]:
                if not job.get("status", {}).get("conditions"):
                    self._uninstall(job)

    def _uninstall(self, job: Any) -> None:
        spec = job["spec"]["template"]["spec"]
        config = account(self.server, "switchback", spec["serviceAccountName"]).write_kubeconfig(self.folder / "job")
        (container,) = spec["containers"]
        words = [*container["command"], *container["args"], "--kubeconfig", str(config), "--timeout", "0"]
        command = [sys.executable, "-m", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})
        self.said = done.stdout + done.stderr
        words_of_end = ("SuccessCriteriaMet", "Complete") if done.returncode == 0 else ("FailureTarget", "Failed")
        time = "2026-01-01T00:00:00Z"
        times = {"startTime": time, **({"completionTime": time} if done.returncode == 0 else {})}
        conditions = [{"type": kind, "status": "True", "lastTransitionTime": time} for kind in words_of_end]
        path = f"{JOBS}/{job['metadata']['name']}/status"
        status = {"status": {"conditions": conditions, **times}}
        self.server.request("PATCH", path, status, content_type="application/merge-patch+json")


def operate_has_run(server: ApiServer, folder: Path, accounted: str) -> None:
    """What `dnsproxy operate` leaves: the stanza, a route Service, its Lease, and beside them a Service of people."""
    server.request("PATCH", SLICE, ready_slice(), content_type="application/apply-patch+yaml")
    config = account(server, "switchback", accounted).write_kubeconfig(folder / "kubeconfig")
    command = [sys.executable, "-m", "dnsproxy", "install", "--kubeconfig", str(config), "--timeout", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    selector = (("app.kubernetes.io/name", "relay"),)
    for name, ours in (("relay-nginx", True), ("by-hand", False)):
        ports = (ListenPort(443, 20_443 + ours),)
        route = Route(name, ours=ours, relay_to="web/controller", headers="v1", ports=ports, selector=selector)
        manifest = manifest_of(route, namespace="switchback")
        if not ours:
            del manifest["metadata"]["labels"]
        server.request("POST", f"{OWN}/services", manifest)
    server.request("POST", LEASES, {"metadata": {"name": "switchback-operate"}, "spec": {"holderIdentity": "a"}})


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
        job = JobOfTheUninstaller(server, tmp_path)
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


def namespace_is_there(server: ApiServer) -> bool:
    names = kubectl(server, "get", "namespaces", "-o", "name").split()
    return "namespace/switchback" in names


def labelled(server: ApiServer) -> list[str]:
    """Every object of ours, of whatever kind; what is in our namespace goes with it."""
    listed = kubectl(server, "api-resources", "--verbs=list", "-o", "name").split()
    kinds = ",".join(one for one in listed if one not in DEPRECATED)
    return kubectl(server, "get", kinds, "-A", "-l", LABEL, "-o", "name", "--ignore-not-found").split()

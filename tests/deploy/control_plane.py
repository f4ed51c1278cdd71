"""A real control plane for tests of an uninstallation: the garbage collector, namespaces that end, the pods of Jobs.

The law: what nodes do is played. The pod of a Job runs as a process with the Job's account; its end becomes the Job's.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dnsproxy.operate.decide.facts import ListenPort, Route
from dnsproxy.operate.decide.route_manifest import manifest_of
from tests.deploy.calls import account
from tests.deploy.kubectl import LABEL, kubectl
from tests.deploy.test_operate_rights import SLICE, ready_slice
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.operate_stage.programs import running
from tests.kit.prepared_program import play
from tests.kit.programs import program

PEERS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
OWN: Final = "/api/v1/namespaces/switchback"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/switchback/leases"
DEPRECATED: Final = ("componentstatuses", "endpoints")
"""Kinds that the API server warns of; it makes the second ones itself."""


@contextmanager
def running_control_plane(folder: Path) -> Iterator[ApiServer]:
    """An API server whose deletions are carried out."""
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
class PodsOfJobs:
    """What the pods of Jobs do, each with the account of its Job, beside `--timeout 0` for those of the stanza.

    A pod with the name of a node is on that node, whose kernel is not ours: it succeeds, and the node is noted.
    """

    server: ApiServer
    folder: Path
    said: str = ""
    nodes: tuple[str, ...] = ()
    fail: bool = False
    """Whether they fail before they do anything."""

    @contextmanager
    def played(self) -> Iterator[None]:
        """Play them until the end of the block."""
        ended = threading.Event()
        thread = threading.Thread(target=self._play, args=[ended])
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _play(self, ended: threading.Event) -> None:
        # A Job may wait for another one.
        threads: dict[str, threading.Thread] = {}
        while not ended.wait(0.2):
            for job in self.server.request("GET", "/apis/batch/v1/jobs")["items"]:
                uid = job["metadata"]["uid"]
                if not job.get("status", {}).get("conditions") and uid not in threads:
                    threads[uid] = threading.Thread(target=self._end, args=[job])
                    threads[uid].start()
        for thread in threads.values():
            thread.join()

    def _end(self, job: Any) -> None:
        done = not self.fail and self._run(job)
        words_of_end = ("SuccessCriteriaMet", "Complete") if done else ("FailureTarget", "Failed")
        time = "2026-01-01T00:00:00Z"
        times = {"startTime": time, **({"completionTime": time} if done else {})}
        conditions = [{"type": kind, "status": "True", "lastTransitionTime": time} for kind in words_of_end]
        path = f"/apis/batch/v1/namespaces/{job['metadata']['namespace']}/jobs/{job['metadata']['name']}/status"
        status = {"status": {"conditions": conditions, **times}}
        self.server.request("PATCH", path, status, content_type="application/merge-patch+json")

    def _run(self, job: Any) -> bool:
        spec, namespace = job["spec"]["template"]["spec"], job["metadata"]["namespace"]
        if "nodeName" in spec:
            self.nodes += (spec["nodeName"],)
            return True
        config = account(self.server, namespace, spec["serviceAccountName"]).write_kubeconfig(
            self.folder / job["metadata"]["uid"]
        )
        (container,) = spec["containers"]
        words = [*container["command"], *container["args"], "--kubeconfig", str(config)]
        words += ["--timeout", "0"] if container["command"] == ["dnsproxy"] and "doctor" not in words else []
        command = [sys.executable, "-m", *words]
        done = play(command, {**os.environ, "NO_COLOR": "1"})
        self.said += done.stdout + done.stderr
        return done.returncode == 0


def operate_has_run(server: ApiServer, folder: Path, accounted: str) -> None:
    """What `dnsproxy operate` leaves: the stanza, a route Service, its Lease, and beside them a Service of people."""
    server.request("PATCH", SLICE, ready_slice(), content_type="application/apply-patch+yaml")
    config = account(server, "switchback", accounted).write_kubeconfig(folder / "kubeconfig")
    command = [sys.executable, "-m", "dnsproxy", "install", "--kubeconfig", str(config), "--timeout", "0"]
    done = play(command)
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


def namespace_is_there(server: ApiServer) -> bool:
    names = kubectl(server, "get", "namespaces", "-o", "name").split()
    return "namespace/switchback" in names


def labelled(server: ApiServer) -> list[str]:
    """Every object of ours, of whatever kind; what is in our namespace goes with it."""
    listed = kubectl(server, "api-resources", "--verbs=list", "-o", "name").split()
    kinds = ",".join(one for one in listed if one not in DEPRECATED)
    return kubectl(server, "get", kinds, "-A", "-l", LABEL, "-o", "name", "--ignore-not-found").split()

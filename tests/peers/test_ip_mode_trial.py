"""`dnsproxy ip-mode --check --trial` on a real API server, with a data plane that reads the Service's status.

The data plane is a listener: while ipMode is Proxy it answers as the load balancer would, and otherwise it closes as a
controller that misses the PROXY header. tests/cluster has a real kube-proxy and a real load balancer.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kit.altered import altered
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.polling import poll_until
from tests.kit.ports import free_ports
from tests.kit.prepared_program import play
from tests.peers.test_ip_mode_check import HCLOUD, MERGE, METALLB, create_kube_proxy, ip_mode, write_status

pytestmark = [pytest.mark.peer("kube-apiserver"), pytest.mark.peer("etcd")]

ADDRESS = "127.0.0.1"
PATIENT: Final = 100.0
"""Seconds of a trial, and of its restoring, in which a busy machine does what has to happen before their end."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with running_apiserver(tmp_path_factory.mktemp("trial")) as api:
        create_kube_proxy(api)
        yield api


@dataclass
class Balancer:
    """The address of one Service."""

    api: ApiServer
    name: str
    port: int
    answers: bool = True
    always: bool = False
    """Whether it answers whatever ipMode is."""
    seen_proxy: int = 0
    namespace: str = "default"

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/services/{self.name}"

    @property
    def modes(self) -> list[str]:
        found = self.api.request("GET", self.path)["status"]["loadBalancer"]["ingress"]
        return [one["ipMode"] for one in found]

    def serve(self, listener: socket.socket) -> None:
        """Until the listener is closed."""
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.settimeout(10)
                    connection.recv(4096)
                    is_proxy = self.is_proxy()
                    self.seen_proxy += is_proxy
                    if self.always or (is_proxy and self.answers):
                        connection.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")

    def is_proxy(self) -> bool:
        with suppress(OSError, AssertionError):
            return self.modes == ["Proxy"]
        # The API server is away; a data plane keeps what it has.
        return True


@contextmanager
def balancer(api: ApiServer, name: str, annotations: dict[str, str] | None = None) -> Iterator[Balancer]:
    (port,) = free_ports(1)
    spec = {"type": "LoadBalancer", "ports": [{"name": "http", "port": port}], "selector": {"app": name}}
    metadata = {"name": name, "annotations": HCLOUD if annotations is None else annotations}
    api.request("POST", "/api/v1/namespaces/default/services", {"metadata": metadata, "spec": spec})
    write_status(api, name, ADDRESS)
    one = Balancer(api, name, port)
    with socket.create_server((ADDRESS, port)) as listener:
        thread = threading.Thread(target=one.serve, args=(listener,))
        thread.start()
        try:
            yield one
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def command(one: Balancer, *arguments: str) -> list[str]:
    words = [sys.executable, "-m", "dnsproxy", "ip-mode", "--kubeconfig", str(one.api.kubeconfig)]
    return [*words, "--check", "--service", f"default/{one.name}", "--trial", "--output", "json", *arguments]


def in_pod() -> dict[str, str]:
    return {**os.environ, "KUBERNETES_SERVICE_HOST": ADDRESS}


def run(one: Balancer, *arguments: str, status: int) -> Any:
    done = play(command(one, *arguments), in_pod())
    assert done.returncode == status, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert document["status"] == status
    return document["services"][0]


def test_a_balancer_that_answers_with_proxy_helps_and_the_status_is_restored(server: ApiServer) -> None:
    with balancer(server, "answers") as one:
        service = run(one, "--yes", status=0)
        assert service["trial"]["answer"] == "yes"
        assert "closed" in " ".join(service["trial"]["before"])
        assert "answered" in " ".join(service["trial"]["after"])
        assert (service["trial"]["restored"], one.modes) == (True, ["VIP"])


def test_a_balancer_that_answers_nothing_does_not_help_and_the_status_is_restored(server: ApiServer) -> None:
    with balancer(server, "mute") as one:
        one.answers = False
        service = run(one, "--yes", status=1)
        assert (service["trial"]["answer"], service["helps"]) == ("no", "no")
        assert one.seen_proxy > 1
        assert one.modes == ["VIP"]


REFUSED = [
    pytest.param("announced", METALLB, ["--yes"], "clients from outside are cut off", id="MetalLB"),
    pytest.param("unknown", {}, ["--yes"], "--balancer-ends-connections", id="an unknown provider"),
]


@pytest.mark.parametrize(("name", "annotations", "arguments", "said"), REFUSED)
def test_a_service_that_could_be_harmed_is_never_written(
    server: ApiServer, name: str, annotations: dict[str, str], arguments: list[str], said: str
) -> None:
    with balancer(server, name, annotations) as one:
        before = server.request("GET", one.path)["metadata"]["resourceVersion"]
        done = subprocess.run(command(one, *arguments), capture_output=True, text=True, check=False, env=in_pod())
        assert (done.returncode, json.loads(done.stdout)["status"]) == (1, 1)
        assert said in done.stderr
        assert server.request("GET", one.path)["metadata"]["resourceVersion"] == before


def test_without_a_yes_nothing_is_written(server: ApiServer) -> None:
    with balancer(server, "unasked") as one:
        done = subprocess.run(
            command(one), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=in_pod()
        )
        assert done.returncode == 2
        assert "--yes" in done.stderr
        assert one.modes == ["VIP"]
        assert one.seen_proxy == 0


def test_a_balancer_that_answers_before_is_not_written(server: ApiServer) -> None:
    with balancer(server, "answered") as one:
        one.always = True
        service = run(one, "--yes", status=0)
        assert "before ipMode was written" in service["trial"]["failure"]
        assert one.seen_proxy == 0


def test_a_policy_that_keeps_proxy_is_reported_as_a_status_that_is_not_restored(
    server: ApiServer, tmp_path: Path
) -> None:
    with balancer(server, "kept") as one, trying(one, tmp_path, restores=20.0) as running:
        # It returns when the policy is in effect.
        applied = ip_mode(server, "--apply", "--service", "default/kept")
        assert applied.returncode == 0, applied.stderr
        try:
            running.send_signal(signal.SIGTERM)
            stdout, _ = running.communicate(timeout=120)
            document = json.loads(stdout)
            trial = document["services"][0]["trial"]
            assert (running.returncode, document["status"]) == (3, 3)
            assert (trial["restored"], one.modes) == (False, ["Proxy"])
        finally:
            assert ip_mode(server, "--remove").returncode == 0
        words = shlex.split(trial["restore_with"])
        assert words[:5] == ["kubectl", "-n", "default", "patch", "service"]
        # The policy works for a moment after its removal.
        poll_until(lambda: patched(server, one, words[-1]) == ["VIP"], "the printed patch restores", seconds=60)


def patched(server: ApiServer, one: Balancer, patch: str) -> list[str]:
    """The ipModes after the patch of the printed command."""
    server.request("PATCH", f"{one.path}/status", json.loads(patch), content_type="application/json-patch+json")
    return one.modes


@contextmanager
def trying(one: Balancer, folder: Path, *, restores: float = PATIENT) -> Iterator[subprocess.Popen[str]]:
    """A trial that has written Proxy, and gets no answer; it lasts until it is ended."""
    one.answers = False
    words = command(one, "--yes")
    where = "dnsproxy.ip_mode.check.trial"
    environment = {**in_pod(), **altered(folder, {f"{where}.LASTS": PATIENT, f"{where}.RESTORES": restores})}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as running:
        try:
            poll_until(lambda: one.seen_proxy > 0 or running.poll() is not None, "the trial writes Proxy", seconds=60)
            assert running.poll() is None
            yield running
        finally:
            running.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda one: one.name)
def test_a_signal_ends_the_trial_and_the_status_is_restored(
    server: ApiServer, number: signal.Signals, tmp_path: Path
) -> None:
    with balancer(server, f"ended-by-{number.name.lower()}") as one, trying(one, tmp_path) as running:
        running.send_signal(number)
        running.wait(timeout=60)
        assert one.modes == ["VIP"]


def test_an_api_server_that_is_away_for_a_while_delays_the_restoring(server: ApiServer, tmp_path: Path) -> None:
    with balancer(server, "away") as one, trying(one, tmp_path) as running:
        server.kill()
        running.send_signal(signal.SIGTERM)
        server.start()
        running.wait(timeout=90)
        assert one.modes == ["VIP"]


def test_a_provider_that_writes_meanwhile_keeps_its_entry(server: ApiServer, tmp_path: Path) -> None:
    with balancer(server, "rewritten") as one, trying(one, tmp_path) as running:
        body = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.77", "ipMode": "Proxy"}]}}}
        server.request("PATCH", f"{one.path}/status", body, content_type=MERGE)
        running.send_signal(signal.SIGTERM)
        running.wait(timeout=60)
        # Its address was not there before the trial, so that its mode is the provider's own.
        assert one.modes == ["Proxy"]

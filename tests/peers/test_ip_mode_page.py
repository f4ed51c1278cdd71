"""The commands of the guide's page on ip-mode, run in the page's order of sections on a real API server.

The page's load balancer is a listener on 127.0.0.1 (tests/peers/test_ip_mode_trial.py), which the outputs are compared
without. A kubelet is missing: what takes a pod is parsed alone, and the trial's Job is run here, with its account.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from docs.fences import Fence, Mode, find_fences
from tests.deploy.calls import account
from tests.deploy.manifests import DEPLOY
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.ip_mode import Services, entries_of, status_of
from tests.kit.ip_mode_documents import PAGE, compare, table
from tests.kit.polling import poll_until
from tests.kit.ports import free_ports
from tests.kit.processes import end_process
from tests.kit.programs import built_versions, program
from tests.peers.test_ip_mode_check import HCLOUD, create_kube_proxy, write_ingress_status
from tests.peers.test_ip_mode_trial import ADDRESS, Balancer

pytestmark = [pytest.mark.peer("kube-apiserver", "etcd", "kubectl"), pytest.mark.timeout(400)]

SPACE: Final = "ingress-nginx"
NAME: Final = "ingress-nginx-controller"
SHOWN_ADDRESS: Final = "203.0.113.10"
OLDER: Final = "v1.34.4"
"""An API server that serves no policies by default."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_SECONDS: Final = re.compile(r"after \d+ s")


def section(heading: str) -> list[Fence]:
    """The blocks below a heading."""
    _, found, rest = PAGE.partition(f"\n## {heading}\n")
    assert found, heading
    return list(find_fences(rest.partition("\n## ")[0]))


def commands(heading: str) -> list[str]:
    """The blocks below a heading that are for an API server."""
    return [fence.body for fence in section(heading) if fence.mode is Mode.CLUSTER]


def outputs(heading: str) -> list[str]:
    return [fence.body for fence in section(heading) if fence.language == "text"]


@dataclass
class World:
    """The page's cluster: its controller's Service, with a load balancer whose provider wrote VIP."""

    server: ApiServer
    folder: Path
    port: int

    @property
    def services(self) -> Services:
        return Services(self.server, SPACE)

    @property
    def modes(self) -> list[str]:
        return [entry["ipMode"] for entry in entries_of(self.services.get(NAME))]

    def create(self) -> None:
        """The Service, with the status that its provider writes."""
        spec = {"type": "LoadBalancer", "ports": [{"name": "http", "port": self.port}], "selector": {"app": "nginx"}}
        body = {"metadata": {"name": NAME, "annotations": HCLOUD}, "spec": spec}
        self.server.request("POST", self.services.path, body)
        self.write_vip()
        assert self.modes == ["VIP"]

    def write_vip(self) -> None:
        """As the provider does."""
        self.services.patch_status(
            NAME, status_of([{"ip": ADDRESS, "ipMode": "VIP"}]), query="?fieldManager=hcloud-ccm"
        )

    def environment(self, kubeconfig: Path | None = None) -> dict[str, str]:
        """A shell on a computer of the owner's."""
        path = f"{Path(sys.executable).parent}:{Path(program('kubectl')).parent}:{os.environ['PATH']}"
        mine = {one: text for one, text in os.environ.items() if one != "KUBERNETES_SERVICE_HOST"}
        return {**mine, "PATH": path, "KUBECONFIG": str(kubeconfig or self.server.kubeconfig), "NO_COLOR": "1"}

    def run(self, script: str, *, status: int = 0) -> str:
        """The output of a block of the page, which names its own address of the load balancer."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace(SHOWN_ADDRESS, ADDRESS)],
            env=self.environment(), cwd=DEPLOY.parent, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert done.returncode == status, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def as_shown(self, text: str) -> str:
        """An output as the page has it: with its address, and without what differs from run to run."""
        return normalized(text.replace(f"{ADDRESS}:{self.port}", f"{SHOWN_ADDRESS}:80").replace(ADDRESS, SHOWN_ADDRESS))


def normalized(text: str) -> str:
    return _SECONDS.sub("after N s", _TIME.sub("TIME", text)).strip()


@contextmanager
def world(folder: Path, version: str = "") -> Iterator[World]:
    with ExitStack() as stack:
        server = stack.enter_context(running_apiserver(folder, version=version))
        create_kube_proxy(server)
        server.create_namespace(SPACE)
        (port,) = free_ports(1)
        server.create_ingress("shop", ["app.example.org"])
        write_ingress_status(server, "shop", ADDRESS)
        one = World(server, folder, port)
        one.create()
        yield one


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("page")) as one:
        # The component doctor as the page takes it: beside an overlay.
        one.server.create_namespace("switchback")
        one.run("kubectl apply -k deploy/components/doctor")
        yield one


@pytest.fixture
def fresh(cluster: World) -> World:
    """The cluster with a Service that nobody but its provider has written."""
    cluster.server.request("DELETE", f"{cluster.services.path}/{NAME}")
    cluster.create()
    return cluster


TESTED: Final = (
    "Check",
    "Try it for half a minute",
    "Apply, and see that it took",
    "Which Kubernetes",
    "Take it back",
    "JSON",
)
"""The sections whose commands a test below runs."""


def test_every_section_with_commands_for_a_cluster_is_run() -> None:
    headings = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert [one for one in headings if commands(one)] == list(TESTED)


def test_only_what_takes_a_pod_is_not_run() -> None:
    parsed = [fence.body for fence in find_fences(PAGE) if fence.mode is Mode.PARSE]
    assert [shlex.split(one)[0] for one in parsed] == ["kubectl", "kubectl"]
    assert all(re.search(r"^kubectl (-n \S+ )?(run|logs) ", one) for one in parsed)
    assert all(len(one.splitlines()) == 1 for one in parsed)


def test_the_check_is_as_shown_and_writes_nothing(fresh: World) -> None:
    before = fresh.services.get(NAME)
    (command,), (shown,) = commands("Check"), outputs("Check")
    assert fresh.as_shown(fresh.run(command)) == normalized(shown)
    assert fresh.services.get(NAME) == before


@contextmanager
def balancing(one: World, *, answers: bool) -> Iterator[Balancer]:
    """The load balancer, which answers while ipMode is Proxy, or never."""
    balancer = Balancer(one.server, NAME, one.port, answers=answers, namespace=SPACE)
    with socket.create_server((ADDRESS, one.port)) as listener:
        thread = threading.Thread(target=balancer.serve, args=(listener,))
        thread.start()
        try:
            yield balancer
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def trial_job(one: World) -> Iterator[tuple[list[str], dict[str, str]]]:
    """The command and the environment of the pod of the page's Job, from its creation to its deletion."""
    create, delete, _ = commands("Try it for half a minute")
    one.run(create)
    job = one.server.request("GET", "/apis/batch/v1/namespaces/switchback-doctor/jobs/trial")
    spec = job["spec"]["template"]["spec"]
    caller = account(one.server, "switchback-doctor", spec["serviceAccountName"])
    kubeconfig = caller.write_kubeconfig(one.folder / "trial.kubeconfig")
    (container,) = spec["containers"]
    assert container["command"] == ["dnsproxy"]
    in_pod = {**one.environment(kubeconfig), "KUBERNETES_SERVICE_HOST": ADDRESS}
    try:
        yield [sys.executable, "-m", "dnsproxy", *container["args"]], in_pod
    finally:
        one.run(delete)


def test_the_trial_is_as_shown_with_the_rights_that_the_page_gives_and_is_restored(fresh: World) -> None:
    (shown,) = outputs("Try it for half a minute")
    with trial_job(fresh) as (command, environment), balancing(fresh, answers=True) as balancer:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert balancer.seen_proxy > 0
    assert fresh.modes == ["VIP"]
    # The page has the lines that --check has not.
    lines = normalized(shown).splitlines()
    assert [line for line in fresh.as_shown(done.stdout).splitlines() if line in lines] == lines
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SPACE}/roles"
    assert fresh.server.request("GET", path)["items"] == []


def test_after_sigkill_the_status_stays_and_the_pages_command_restores_it(fresh: World) -> None:
    *_, restore = commands("Try it for half a minute")
    with trial_job(fresh) as (command, environment), balancing(fresh, answers=False) as balancer:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            poll_until(lambda: balancer.seen_proxy > 0 or process.poll() is not None, "Proxy is written", seconds=60)
            process.send_signal(signal.SIGKILL)
            process.wait(30)
        finally:
            end_process(process)
    assert process.returncode == -signal.SIGKILL
    assert fresh.modes == ["Proxy"]
    fresh.run(restore)
    assert fresh.modes == ["VIP"]


def test_applied_it_is_seen_and_taken_back_it_is_gone(fresh: World) -> None:
    apply, look = commands("Apply, and see that it took")
    dry, real = apply.splitlines()
    fresh.run(dry)
    assert fresh.modes == ["VIP"]
    fresh.run(real)
    (shown,) = outputs("Apply, and see that it took")
    assert fresh.run(look).strip() == shown.strip()
    fresh.write_vip()
    assert fresh.modes == ["Proxy"]
    (remove,) = commands("Take it back")
    fresh.run(remove)
    assert fresh.modes == ["VIP"]
    path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    assert fresh.server.request("GET", path)["items"] == []


def test_before_1_36_the_watch_writes_after_the_provider(tmp_path: Path) -> None:
    if OLDER not in built_versions("kube-apiserver"):
        pytest.skip(f"missing peer: kube-apiserver {OLDER} (`make peers` brings it)")
    (line,) = commands("Which Kubernetes")
    with world(tmp_path, OLDER) as one:
        (admin,) = free_ports(1)
        # Its default port may be in use on this machine.
        environment = {**one.environment(), "DNSPROXY_ADMIN": f"127.0.0.1:{admin}"}
        process = subprocess.Popen(["bash", "-c", f"exec {line}"], env=environment, stderr=subprocess.DEVNULL)
        try:
            for _ in range(2):
                poll_until(lambda: one.modes == ["Proxy"] or process.poll() is not None, "Proxy", seconds=60)
                assert process.poll() is None
                one.write_vip()
            poll_until(lambda: one.modes == ["Proxy"], "Proxy again", seconds=60)
            process.terminate()
            assert process.wait(30) == 0
        finally:
            end_process(process)


def documents(one: World) -> Sequence[Any]:
    """What the page's commands with `--output json` print: --check, --apply, --remove."""
    (lines,) = commands("JSON")
    return [json.loads(one.run(line)) for line in lines.splitlines()]


def test_the_documents_have_the_keys_and_types_of_the_page(fresh: World) -> None:
    checked, *others = documents(fresh)
    assert (checked["mode"], [other["mode"] for other in others]) == ("check", ["apply", "remove"])
    assert compare([checked], table("--check"))[1] == []
    assert compare(others, table("--apply and --remove"))[1] == []
    assert fresh.modes == ["VIP"]

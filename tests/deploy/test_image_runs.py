"""The programs run from the image as in a pod: with its account, as its user, and without what the image leaves out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from release.buildah import run_buildah
from tests.deploy.containers import image, in_pod, running, sources
from tests.deploy.image import Image, buildah, command_in
from tests.kit.apiserver import ApiServer, apiserver
from tests.kit.ports import free_ports
from tests.kit.programs import program

__all__ = ["apiserver", "image", "sources"]

pytestmark = [pytest.mark.peer("buildah", "debian-base", "dig", "etcd", "kube-apiserver"), pytest.mark.timeout(900)]


@pytest.fixture
def account(apiserver: ApiServer, tmp_path: Path) -> list[str]:
    """The options of a pod of that cluster, with all rights there."""
    return in_pod(tmp_path, port=apiserver.port, authority=apiserver.ca_file.read_text(), token=apiserver.token)


def test_it_serves_names_without_root(image: Image, tmp_path: Path) -> None:
    port, admin = free_ports(2)
    with image.container() as container:
        words = ["dnsproxy", "serve", f"--listen=127.0.0.1:{port}", f"--admin=127.0.0.1:{admin}"]
        words += ["--host=app.example.org=192.0.2.80", "--upstream=127.0.0.1:9"]
        with running(container, *words, log=tmp_path / "log"):
            dig = [program("dig"), "@127.0.0.1", "-p", str(port), "+short", "+time=10", "app.example.org"]
            assert subprocess.run(dig, capture_output=True, text=True, check=True).stdout.split() == ["192.0.2.80"]


@pytest.mark.parametrize(
    ("words", "event"),
    [
        ("dnsproxy serve --source=ingress --target=192.0.2.80 --listen=127.0.0.1:{0} --upstream=127.0.0.1:9", "synced"),
        ("dnsproxy operate --method=print --routes-namespace=default", "leading"),
        ("proxy --route=127.0.0.1:{0}=127.0.0.1:9 --routes-from=services", "synced"),
    ],
    ids=["serve", "operate", "proxy"],
)
def test_a_program_follows_the_cluster_with_a_pods_account(
    image: Image, account: list[str], tmp_path: Path, words: str, event: str
) -> None:
    port, admin = free_ports(2)
    command = [*words.format(port).split(), f"--admin=127.0.0.1:{admin}"]
    with (
        image.container() as container,
        running(container, *command, log=tmp_path / "log", event=event, options=account),
    ):
        pass


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("doctor", 0, "every host"),
        ("status", 1, "service "),
        ("ip-mode", 0, "apiVersion: "),
    ],
)
def test_a_command_reads_the_cluster_with_a_pods_account(
    image: Image, account: list[str], command: str, status: int, said: str
) -> None:
    with image.container() as container:
        done = run_buildah(command_in(container, "dnsproxy", command, options=account))
    assert done.returncode == status, done.stderr
    assert said in done.stdout
    assert "Traceback" not in done.stderr


def test_a_kubeconfig_with_a_plugin_is_refused_with_the_package_to_install(image: Image, tmp_path: Path) -> None:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1"}}],
        "users": [{"name": "u", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    with image.container() as container:
        buildah("copy", "--quiet", "--chmod", "644", container, str(tmp_path / "config"), "/config")
        done = run_buildah(command_in(container, "dnsproxy", "doctor", "--kubeconfig", "/config"))
    assert "/config, context x: " in done.stderr
    assert "pip install kubernetes" in done.stderr
    assert "Traceback" not in done.stderr

"""Containers of the project's image: their output, servers in them, and the account of a pod.

The law: no process outlives its block. The image is built once for a module that imports the fixture `image`.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from release.buildah import run_buildah
from tests.conftest import refuse
from tests.deploy.image import Image, build_image, command_in, copy_sources
from tests.kit.processes import wait_for

ACCOUNT: Final = "/run/secrets/kubernetes.io/serviceaccount"
"""A pod's account, without the link /var/run in front."""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_sources(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def image(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    refuse_without_root()
    name, folder = f"localhost/switchback-test:{os.getpid()}", tmp_path_factory.mktemp("build")
    built = build_image(name, folder=folder, context=sources)
    yield built
    built.remove()


def refuse_without_root() -> None:
    """Before anything is built."""
    if os.geteuid() != 0:
        refuse("building an image without a daemon needs root")


def output(container: str, *words: str) -> str:
    """The output of a command that succeeds."""
    done = run_buildah(command_in(container, *words))
    assert done.returncode == 0, done.stderr
    return done.stdout


def packages_in(image: Image) -> set[tuple[str, str]]:
    """The name and version of each installed Python package."""
    with image.mounted() as root:
        folders = [
            path.name.removesuffix(".dist-info") for path in root.glob("app/lib/python3*/site-packages/*.dist-info")
        ]
    names = (folder.lower().replace("_", "-").rpartition("-") for folder in folders)
    return {(name, version) for name, _, version in names}


@contextmanager
def running(
    container: str,
    *words: str,
    log: Path,
    event: str = "serving",
    options: Sequence[str] = (),
    inside: Sequence[str] = (),
) -> Iterator[None]:
    """A server in a container until the end of the block; it begins when the server has logged an event.

    `inside` is a command line that runs another, such as one of unshare.
    """
    with log.open("wb") as stderr:
        command = [*inside, *command_in(container, *words, options=options)]
        process = subprocess.Popen(command, stderr=stderr, start_new_session=True)
    try:
        wait_for(lambda: f'"event": "{event}"' in log.read_text(), process=process, log=log)
        yield
    finally:
        # buildah is only the parent of the server: the process group has all processes, and only ours.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def in_pod(folder: Path, *, port: int, authority: str, token: str) -> list[str]:
    """The options with which a command runs as in a pod: an account, and an API server at a port of this machine."""
    account = folder / "account"
    account.mkdir()
    # The pod's user is not the owner.
    account.chmod(0o755)
    for name, text in {"token": token, "ca.crt": authority, "namespace": "default"}.items():
        (account / name).write_text(text)
    server = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
    return [f"--volume={account}:{ACCOUNT}:ro", *(f"--env={name}={value}" for name, value in server.items())]

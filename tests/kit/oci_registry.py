"""A real registry of images on the loopback address, and skopeo, which copies images to and from it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

from tests.kit.ports import free_ports
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program

_ACCEPTED: Final = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json"


@contextmanager
def registry(folder: Path) -> Iterator[int]:
    """The port of a registry on the loopback address, until the end of the block."""
    (port,) = free_ports(1)
    settings = {
        "version": "0.1",
        "storage": {"filesystem": {"rootdirectory": str(folder / "registry")}},
        "http": {"addr": f"127.0.0.1:{port}"},
    }
    (folder / "registry.yml").write_text(json.dumps(settings))
    with (folder / "registry.log").open("wb") as log:
        command = [program("docker-registry"), "serve", str(folder / "registry.yml")]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_for(lambda: is_listening(port), process=process, log=folder / "registry.log")
        yield port
    finally:
        end_process(process)


def skopeo(*words: str, inside: Sequence[str] = ()) -> None:
    """Run skopeo, by another command if that one's line is given; its output is the reason if it fails."""
    done = subprocess.run([*inside, program("skopeo"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def digest_in(port: int, repository: str, reference: str) -> str | None:
    """The digest that a registry has under a tag or a digest; None if it has nothing."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("HEAD", f"/v2/{repository}/manifests/{reference}", headers={"accept": _ACCEPTED})
        return connection.getresponse().headers["docker-content-digest"]
    finally:
        connection.close()

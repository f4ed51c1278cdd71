"""The project's image, really built by buildah on a Debian from debootstrap, without a registry.

The law: this machine's settings for a package index (certificates) are mounted during the build, and are neither in the
image nor in the Dockerfile. Storage is outside the tree and used by no other tool.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from release.buildah import Buildah
from tests.kit.oci_registry import skopeo
from tests.kit.programs import peers_cache, program

PROJECT: Final = Path(__file__).parents[2]
BASE: Final = "localhost/switchback-base:v12"
BASE_ARM64: Final = "localhost/switchback-base-arm64:v12"
"""Nothing in it can run here."""
REVISION: Final = "0123456789abcdef0123456789abcdef01234567"
"""Of every image here."""
_CERTIFICATES: Final = Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"))
_INSIDE: Final = "/run/build-certificates.crt"


@dataclass(frozen=True)
class Image:
    """An image in buildah's storage."""

    name: str

    @property
    def document(self) -> Any:
        """Its OCI configuration: `config`, `rootfs` ..."""
        return json.loads(buildah("inspect", "--type", "image", self.name))["OCIv1"]

    @contextmanager
    def container(self) -> Iterator[str]:
        """A container of it, in which no process runs yet."""
        name = buildah("from", "--pull-never", self.name).strip()
        try:
            yield name
        finally:
            buildah("rm", name)

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """The files of the image."""
        with self.container() as name:
            yield Path(buildah("mount", name).strip())

    def save(self, file: Path, *, name: str) -> None:
        """Write it under a name as an archive for containerd and docker."""
        file.unlink(missing_ok=True)
        buildah("push", "--quiet", self.name, f"docker-archive:{file}:{name}")

    def remove(self) -> None:
        # Not --force: of an equal image of another run it would take the name too.
        buildah("rmi", self.name)


def copy_sources(folder: Path) -> Path:
    """Copy the project's current sources, so that concurrent edits change nothing. Returns the folder."""
    ignored = shutil.ignore_patterns(".*", "__pycache__", "dist")
    copied = Path(shutil.copytree(PROJECT, folder / "sources", ignore=ignored))
    shutil.copy2(PROJECT / ".dockerignore", copied)
    return copied


def build_image(
    name: str,
    *,
    folder: Path,
    context: Path,
    target: str = "programs",
    index: str = "",
    base: str = BASE,
) -> Image:
    """Build the Dockerfile in `context`, up to a target and from a package index if given. Takes a quarter of a minute.

    `folder` is for files that only the build sees.
    """
    make_base()
    # A label of this image alone: images with equal labels are one to buildah, and who removes one removes both. A
    # build of a later stage also removes the image of the stage before it.
    label = f"--label=test={name}-{os.getpid()}"
    options = [*build_options(folder), "--timestamp=0", f"--target={target}", label, f"--build-arg=REVISION={REVISION}"]
    options += [f"--build-arg=PIP_INDEX_URL={index}"] if index else []
    options += [f"--build-arg=BASE={base}"]
    buildah("bud", "--quiet", *options, "--tag", name, str(context))
    return Image(name)


def read_image(archive: str, *, machine: str) -> Image:
    """An image of an archive (`oci-archive:FILE:TAG`) for a machine (amd64, arm64), under a name of this process.

    `buildah pull` would give it the name in the archive: that of every other image of the release that is here, which
    would then have none and be pruned.
    """
    name = f"localhost/switchback-read-{machine}:{os.getpid()}"
    place = f"containers-storage:[{_driver()}@{_storage()}/root+{_storage()}/run]{name}"
    choice = ["--override-os=linux", f"--override-arch={machine}"]
    # Under the lock: the image is in the storage before it has its name.
    skopeo(*choice, "copy", "--quiet", archive, place, inside=_locked("--shared"))
    return Image(name)


def build_options(folder: Path) -> list[str]:
    """What a build needs on a machine without a registry, and whose package index may have a certificate of its own."""
    return ["--isolation=chroot", "--network=host", "--pull-never", *_mounts(folder)]


def command_in(container: str, *words: str, options: Sequence[str] = ()) -> list[str]:
    """The command line that runs a command in the container, in this machine's network."""
    return [*buildah_command(), "run", "--isolation", "chroot", *options, container, "--", *words]


def buildah(*arguments: str, inside: Sequence[str] = ()) -> str:
    """Run buildah, in another network if the command line of one is given. Returns its output.

    Raises release.buildah.BuildFailed.
    """
    return Buildah([*inside, *buildah_command()]).run(*arguments)


def forget_unnamed() -> None:
    """Remove images that lost their name to a later build; each run would leave some hundred megabytes."""
    # The stages of a running build have no names either: while one runs, nothing is removed, and the next run does it.
    alone = [*_locked("--exclusive", "--nonblock"), *_buildah(), "rmi", "--prune", "--force"]
    subprocess.run(alone, capture_output=True, check=False)


def has_image(name: str) -> bool:
    """Whether the storage has an image. A listing of all fails while another run removes one of its own."""
    asked = [*buildah_command(), "inspect", "--type", "image", "--format", "{{.FromImageID}}", name]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def buildah_command() -> list[str]:
    """The program with the storage of the tests; images without names stay while it runs."""
    return [*_locked("--shared"), *_buildah()]


def _locked(*how: str) -> list[str]:
    """The beginning of a command that holds the storage's lock."""
    _storage().mkdir(parents=True, exist_ok=True)
    return ["flock", "--no-fork", *how, str(_storage() / "builds.lock")]


def _storage() -> Path:
    return peers_cache() / "buildah"


def _driver() -> str:
    return os.environ.get("STORAGE_DRIVER", "overlay")


def _buildah() -> list[str]:
    storage = _storage()
    return [program("buildah"), f"--root={storage}/root", f"--runroot={storage}/run", f"--storage-driver={_driver()}"]


def make_base() -> None:
    """The base image, built once from the root folder of `make peers`."""
    _make_base(BASE, "debian-base")


def make_base_arm64() -> None:
    """The same for arm64, of which nothing is configured and nothing can run here."""
    # The variant, because without it buildah does not find the image by the platform linux/arm64.
    _make_base(BASE_ARM64, "debian-base-arm64", "--arch=arm64", "--variant=v8")


def _make_base(name: str, peer: str, *options: str) -> None:
    if has_image(name):
        return
    container = buildah("from", "scratch").strip()
    try:
        buildah("add", "--quiet", container, str(Path(program(peer)) / "root.tar"), "/")
        buildah("config", *options, container)
        buildah("commit", "--quiet", container, name)
    finally:
        buildah("rm", container)


def _mounts(folder: Path) -> list[str]:
    """The machine's trusted certificates, and the settings that make pip and uv trust them too."""
    (folder / "pip.conf").write_text(f"[global]\ncert = {_INSIDE}\n", encoding="utf-8")
    (folder / "uv").mkdir(exist_ok=True)
    (folder / "uv" / "uv.toml").write_text("system-certs = true\n", encoding="utf-8")
    pairs = {
        str(_CERTIFICATES): _INSIDE,
        f"{_CERTIFICATES} ": "/etc/ssl/certs/ca-certificates.crt",
        str(folder / "pip.conf"): "/etc/pip.conf",
        str(folder / "uv"): "/etc/uv",
    }
    return [f"--volume={source.strip()}:{target}:ro" for source, target in pairs.items()]

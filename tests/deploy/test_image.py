"""The image builds, runs without root, and contains nothing of the machine that built it."""

from __future__ import annotations

import os
import signal
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import refuse
from tests.deploy.image import BASE, PROJECT, BuildFailed, Image, build_image, command_in, copy_sources
from tests.kit.ports import free_ports
from tests.kit.processes import wait_for
from tests.kit.programs import program

pytestmark = [
    pytest.mark.peer("buildah", "debian-base", "dig"),
    # It takes a minute on an idle machine.
    pytest.mark.timeout(900),
]

MOST_MEGABYTES = 160
"""The size limit in MB on top of the base. It was 125 when this was written."""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_sources(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def image(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    if os.geteuid() != 0:
        refuse("building an image without a daemon needs root")
    name, folder = f"localhost/switchback-test:{os.getpid()}", tmp_path_factory.mktemp("build")
    built = build_image(name, folder=folder, context=sources)
    yield built
    built.remove()


def test_every_program_says_its_help(image: Image) -> None:
    with image.container() as container:
        for words in (["dnsproxy"], ["dnsproxy", "serve"], ["proxy"], ["wholeip"], ["wholeip", "run"]):
            assert "Usage:" in output(container, *words, "--help")


def test_it_serves_names_without_root(image: Image, tmp_path: Path) -> None:
    port, admin = free_ports(2)
    with image.container() as container:
        words = ["dnsproxy", "serve", f"--listen=127.0.0.1:{port}", f"--admin=127.0.0.1:{admin}"]
        words += ["--host=app.example.org=192.0.2.80", "--upstream=127.0.0.1:9"]
        with running(container, *words, log=tmp_path / "log"):
            dig = [program("dig"), "@127.0.0.1", "-p", str(port), "+short", "+time=10", "app.example.org"]
            assert subprocess.run(dig, capture_output=True, text=True, check=True).stdout.split() == ["192.0.2.80"]


def test_it_runs_as_a_numeric_user_without_rights(image: Image) -> None:
    config = image.document["config"]
    assert config["User"] == "65532:65532"
    with image.container() as container:
        who = "import os; print(os.getuid(), os.getgid())"
        assert output(container, "/app/bin/python", "-c", who).split() == ["65532", "65532"]


def test_its_labels_and_health_are_as_kubernetes_wants_them(image: Image) -> None:
    config = image.document["config"]
    with (PROJECT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    labels = {name.rpartition(".")[2]: value for name, value in config["Labels"].items()}
    assert labels["version"] == project["version"]
    assert labels["licenses"] == project["license"]
    assert "Healthcheck" not in config


def test_the_machine_that_built_it_left_no_trace(image: Image) -> None:
    with image.mounted() as root:
        assert not (root / "etc" / "pip.conf").exists()
        assert not (root / "etc" / "uv").exists()
        assert not list((root / "run").glob("*.crt"))
        assert "build-certificates" not in (root / "app" / "pyvenv.cfg").read_text()
        certificates = (root / "etc" / "ssl" / "certs" / "ca-certificates.crt").read_bytes()
    with Image(BASE).mounted() as base:
        assert certificates == (base / "etc" / "ssl" / "certs" / "ca-certificates.crt").read_bytes()


def test_no_file_belongs_to_the_user_or_is_writable_by_all(image: Image) -> None:
    with image.mounted() as root:
        for path in (root / "app").rglob("*"):
            status = path.lstat()
            assert (status.st_uid, status.st_gid) == (0, 0), path
            assert path.is_symlink() or not status.st_mode & 0o022, path


def test_what_is_locked_is_what_is_in_it(image: Image) -> None:
    with (PROJECT / "uv.lock").open("rb") as file:
        locked = {(one["name"], one["version"]) for one in tomllib.load(file)["package"]}
    found = packages_in(image)
    assert {name for name, _ in found} >= {"switchback", "trio", "msgspec", "click"}
    assert found <= locked
    assert not {name for name, _ in found} & {"pytest", "mypy", "ruff", "uv", "hypothesis"}


def test_it_starts_from_byte_code(image: Image) -> None:
    """The root is read-only: without byte code every start would compile all modules again."""
    with image.mounted() as root:
        (packages,) = (root / "app" / "lib").glob("python3*/site-packages")
        for name in ("dnsproxy", "proxy", "sidecar", "trio", "msgspec", "click"):
            sources = [one for one in (packages / name).glob("*.py") if one.stat().st_size]
            compiled = {one.name.partition(".")[0] for one in (packages / name / "__pycache__").glob("*.pyc")}
            assert {one.stem for one in sources} <= compiled, name


def test_it_is_small(image: Image) -> None:
    with image.mounted() as root:
        octets = sum(path.lstat().st_size for path in (root / "app").rglob("*") if path.is_file())
    assert octets < MOST_MEGABYTES * 1_000_000


def test_the_same_sources_make_the_same_layers(image: Image, sources: Path, tmp_path: Path) -> None:
    again = build_image(f"localhost/switchback-again:{os.getpid()}", folder=tmp_path, context=sources)
    try:
        assert again.document["rootfs"] == image.document["rootfs"]
    finally:
        again.remove()


def test_another_package_index_gives_the_same_packages(image: Image, sources: Path, tmp_path: Path) -> None:
    with (PROJECT / "uv.lock").open("rb") as file:
        (index,) = {one["source"]["registry"] for one in tomllib.load(file)["package"] if "registry" in one["source"]}
    name = f"localhost/switchback-index:{os.getpid()}"
    other = build_image(name, folder=tmp_path, context=sources, index=index)
    try:
        assert packages_in(other) == packages_in(image)
        with other.container() as container:
            assert "Usage:" in output(container, "dnsproxy", "serve", "--help")
    finally:
        other.remove()


def test_no_other_package_index_is_asked(sources: Path, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    index = f"http://127.0.0.1:{port}/simple"
    with pytest.raises(BuildFailed, match=f"/simple/uv/|{port}"):
        build_image(f"localhost/switchback-closed:{os.getpid()}", folder=tmp_path, context=sources, index=index)


def test_with_nftables_it_has_the_program_that_wholeip_runs(sources: Path, tmp_path: Path) -> None:
    name = f"localhost/switchback-nftables:{os.getpid()}"
    image = build_image(name, folder=tmp_path, context=sources, target="with-nftables")
    try:
        assert image.document["config"]["User"] == "65532:65532"
        with image.container() as container:
            assert output(container, "nft", "--version").startswith("nftables v1.")
            assert "Usage:" in output(container, "wholeip", "uninstall", "--help")
    finally:
        image.remove()


def packages_in(image: Image) -> set[tuple[str, str]]:
    """The name and version of each installed package."""
    listing = "import importlib.metadata as m; print(*(f'{d.name}=={d.version}' for d in m.distributions()))"
    with image.container() as container:
        words = output(container, "/app/bin/python", "-c", listing).lower().replace("_", "-").split()
    return {(name, version) for name, _, version in (word.partition("==") for word in words)}


def output(container: str, *words: str) -> str:
    done = subprocess.run(command_in(container, *words), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def running(container: str, *words: str, log: Path) -> Iterator[None]:
    """A server in a container until the end of the block."""
    with log.open("wb") as stderr:
        process = subprocess.Popen(command_in(container, *words), stderr=stderr, start_new_session=True)
    try:
        wait_for(lambda: '"serving"' in log.read_text(), process=process, log=log)
        yield
    finally:
        # buildah is only the parent of the server: the process group has all processes, and only ours.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

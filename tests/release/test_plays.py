"""What users get, played as they would: the wheel, the source archive and the zipapp, each in an empty environment."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from release.zipapp import PYTHONS
from sidecar.values.build import DISTRIBUTION
from tests.kit.ports import free_ports
from tests.kit.processes import end_process, wait_for
from tests.kit.programs import find_program, program
from tests.kit.scraping import is_ready
from tests.release.clones import IMAGE, PROJECT, VERSION, make_clone, release

MACHINES: Mapping[str, int] = {"x86_64": 62, "aarch64": 183}
"""The number of each in an ELF header (e_machine)."""
UV = str(Path(sys.executable).with_name("uv"))
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: a, user: {token: x}}]
"""
NAMES_AND_VERSION = """
from importlib.metadata import packages_distributions, version
(name,) = set(packages_distributions()["dnsproxy"])
print(name, version(name))
"""
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_clone(tmp_path_factory.mktemp("clone") / "repository")


@pytest.fixture(scope="module")
def dist(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plays")
    done = release(clone, folder / "dist", "--image", IMAGE, "--only", "wheel,zipapp")
    assert done.returncode == 0, done.stderr
    return folder / "dist"


@pytest.fixture(scope="module")
def zipapp(dist: Path) -> Path:
    return dist / "switchback.pyz"


def python_of(version: str) -> str | None:
    """An installed Python of this minor version, that of the system first."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [
        f"/usr/bin/python{version}",
        *map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))),
    ]
    candidates += [shutil.which(f"python{version}") or "", sys.executable]
    question = "import sys; sys.exit(f'{sys.version_info.major}.{sys.version_info.minor}' != sys.argv[1])"
    for one in filter(os.path.exists, candidates):
        if subprocess.run([one, "-c", question, version], check=False, capture_output=True).returncode == 0:
            return one
    return None


FOUND = {version: found for version in PYTHONS if (found := python_of(version)) is not None}


@pytest.fixture(scope="module", params=PYTHONS)
def python(request: pytest.FixtureRequest) -> str:
    if request.param not in FOUND:
        pytest.skip(f"no Python {request.param} is installed")
    return FOUND[request.param]


def test_the_python_that_runs_the_tests_is_among_them() -> None:
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in FOUND


# --- The wheel and the source archive ---


@pytest.mark.parametrize(
    "name", [f"switchback_dns-{VERSION}-py3-none-any.whl", f"switchback_dns-{VERSION}.tar.gz"], ids=["wheel", "sdist"]
)
def test_what_is_installed_into_an_empty_environment_plays_the_demo(dist: Path, tmp_path: Path, name: str) -> None:
    environment = tmp_path / "environment"
    # By the lock, whose wheels are in uv's cache since `make` filled the environment of these tests.
    locked = [UV, "sync", "--quiet", "--frozen", "--no-dev", "--no-install-project", "--python", sys.executable]
    fresh = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(environment)}
    subprocess.run(locked, check=True, cwd=PROJECT, env=fresh)
    install = [UV, "pip", "install", "--quiet", "--no-deps", "--python", str(environment / "bin" / "python")]
    subprocess.run([*install, str(dist / name)], check=True, cwd=tmp_path)
    shown = alone([str(environment / "bin" / "python"), "-c", NAMES_AND_VERSION], tmp_path)
    assert shown.stdout.split() == [DISTRIBUTION, VERSION]
    for command in ("dnsproxy", "proxy", "wholeip", "kubectl-switchback"):
        shown = alone([str(environment / "bin" / command), "--help"], tmp_path)
        assert shown.returncode == 0, shown.stderr
    played = alone([str(environment / "bin" / "dnsproxy"), "demo"], tmp_path)
    assert (played.returncode, played.stderr) == (0, "")
    assert "steps succeeded" in played.stdout


# --- The lines of the README for a laptop ---


README_LINES = re.findall(r"^(?:uv|uvx|pipx) .*", (PROJECT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)


def typed(line: str, clone: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """A line as a user types it in a checkout: without the project installed, and with no cluster that answers."""
    programs = home / "programs"
    if not programs.exists():
        programs.mkdir()
        for name in ("uv", "uvx"):
            (programs / name).symlink_to(Path(UV).with_name(name))
        if found := find_program("pipx"):
            (programs / "pipx").symlink_to(found)
        (home / "config").write_text(KUBECONFIG)
    ours = ("PYTHON", "VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT", "XDG_", "PIPX_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    env |= {
        "HOME": str(home),
        "PATH": f"{programs}:{home}/.local/bin:/usr/bin:/bin",
        "KUBECONFIG": str(home / "config"),
    }
    env |= {"UV_PYTHON": sys.executable, "PIPX_DEFAULT_PYTHON": sys.executable}
    command = ["sh", "-c", line]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=clone, env=env)


def test_the_readme_has_a_line_for_each_tool() -> None:
    assert [line.split()[0] for line in README_LINES] == ["uvx", "uv", "pipx"]


def test_the_readme_runs_the_doctor_without_an_installation(clone: Path, tmp_path: Path) -> None:
    (line,) = [one for one in README_LINES if one.startswith("uvx ")]
    asked = typed(line, clone, tmp_path)
    assert asked.returncode == 3, asked.stderr
    assert "Error: the API server at http://127.0.0.1:9 " in asked.stderr
    assert not (tmp_path / ".local" / "bin").exists()


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(one, id=one.split()[0], marks=[pytest.mark.peer("pipx")] if one.startswith("pipx ") else [])
        for one in README_LINES
        if not one.startswith("uvx ")
    ],
)
def test_the_readme_installs_every_program(line: str, clone: Path, tmp_path: Path) -> None:
    done = typed(line, clone, tmp_path)
    assert done.returncode == 0, done.stderr
    programs = {one.name for one in (tmp_path / ".local" / "bin").iterdir()}
    assert programs >= {"dnsproxy", "proxy", "wholeip", "kubectl-switchback", "kubectl_complete-switchback"}
    assert typed("dnsproxy --version", clone, tmp_path).stdout == f"dnsproxy, version {VERSION}\n"


# --- The zipapp ---


def alone(command: Sequence[str], home: Path) -> subprocess.CompletedProcess[str]:
    """Run a command without our environment, in a folder of its own."""
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=home, env=env)


def test_the_zipapp_plays_the_demo(zipapp: Path, python: str, tmp_path: Path) -> None:
    """From an empty HOME; its children are other processes, which must find the packages too."""
    for _ in range(2):
        played = alone([python, str(zipapp), "demo"], tmp_path)
        assert (played.returncode, played.stderr) == (0, "")
        assert "steps succeeded" in played.stdout


def test_the_zipapp_reads_a_kubeconfig(zipapp: Path, python: str, tmp_path: Path) -> None:
    """The kubernetes package imports much; a part that we take out must not be missed."""
    (tmp_path / "config").write_text(KUBECONFIG)
    command = [python, str(zipapp), "doctor", "app.example.org", "--kubeconfig", "config"]
    asked = alone(command, tmp_path)
    assert asked.returncode == 3
    assert asked.stderr.startswith("Error: the API server at http://127.0.0.1:9 (config, context a) could not be asked")


@pytest.fixture
def served(zipapp: Path, tmp_path: Path) -> Iterator[str]:
    """The admin port of `switchback.pyz serve`."""
    port, admin = (f"127.0.0.1:{one}" for one in free_ports(2))
    log = tmp_path / "log"
    words = ["serve", "--listen", port, "--admin", admin, "--host", "app.example.org=192.0.2.10"]
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, zipapp, *words],
            stderr=stderr,
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        )
    try:
        wait_for(lambda: is_ready(admin), process=process, log=log)
        yield admin
    finally:
        end_process(process)


def test_the_zipapp_finds_its_data_files(served: str) -> None:
    """The status page is made of files beside the modules."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{served}/", timeout=10) as reply:
        page = reply.read().decode()
    files = set(re.findall(r'(?:href|src)="([a-z]+\.(?:css|js|svg))"', page))
    assert {"style.css", "icon.svg"} <= files
    for name in files:
        with opener.open(f"http://{served}/{name}", timeout=10) as reply:
            assert (reply.status, reply.read() != b"") == (200, True)


def test_every_compiled_module_is_there_for_every_python_and_processor(zipapp: Path) -> None:
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    with zipfile.ZipFile(zipapp) as archive:
        for name in archive.namelist():
            if not name.endswith(".so"):
                continue
            matched = re.fullmatch(r"(.*)\.cpython-3(\d+)-(\w+)-linux-gnu\.so", name)
            assert matched is not None, name
            module, minor, machine = matched.groups()
            header = archive.read(name)[:20]
            assert (header[:4], int.from_bytes(header[18:20], "little")) == (b"\x7fELF", MACHINES[machine]), name
            found[module].add((f"3.{minor}", machine))
    every = {(version, machine) for version in PYTHONS for machine in MACHINES}
    assert {module for module, pairs in found.items() if pairs != every} == set()
    assert {Path(module).parent.name for module in found} >= {"msgspec", "markupsafe", "yaml"}


def test_the_zipapp_says_how_it_was_built(zipapp: Path) -> None:
    with zipfile.ZipFile(zipapp) as archive:
        environment = json.loads(archive.read("environment.json"))
    assert environment["entry_point"] == "dnsproxy.cli:run_as_called"
    assert environment["built_at"] == "2023-11-14 22:13:20"


# --- The plugin of kubectl ---


@pytest.mark.peer("kubectl")
def test_the_plugins_archive_is_a_plugin_that_kubectl_runs(dist: Path, tmp_path: Path) -> None:
    subprocess.run(["tar", "-xf", str(dist / f"kubectl-switchback-{VERSION}.tar.gz"), "-C", str(tmp_path)], check=True)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["LICENSE", "kubectl-switchback"]
    env = {"HOME": str(tmp_path / "home"), "PATH": f"{tmp_path}:{Path(sys.executable).parent}:/usr/bin:/bin"}
    (tmp_path / "home").mkdir()
    command = [program("kubectl"), "switchback", "doctor", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: kubectl switchback doctor [OPTIONS] [HOST]")
    # The archive has one program; the guide's link is what makes kubectl complete its words.
    (tmp_path / "kubectl_complete-switchback").symlink_to("kubectl-switchback")
    command = [program("kubectl"), "__complete", "switchback", "doc"]
    words = subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout
    assert [one.partition("\t")[0] for one in words.splitlines()] == ["doctor", ":4"]


def test_the_plugins_manifest_has_the_digest_of_its_archive(dist: Path) -> None:
    archive = (dist / f"kubectl-switchback-{VERSION}.tar.gz").read_bytes()
    manifest = (dist / "krew-switchback.yaml").read_text(encoding="utf-8")
    assert manifest.count(f"sha256: {hashlib.sha256(archive).hexdigest()}\n") == 2
    assert manifest.count(f"/v{VERSION}/kubectl-switchback-{VERSION}.tar.gz\n") == 2

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.programs import GUARD, ProgramGuard, built_versions, find_program


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of peers without any."""
    folder = tmp_path / "peers"
    monkeypatch.setenv("SWITCHBACK_PEERS", str(folder))
    return folder


def put_program(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def test_a_program_on_the_path_is_no_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_program(tmp_path / "bin/kubectl")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_program("kubectl") is None


@pytest.mark.parametrize(
    "versions",
    [
        pytest.param(["v1.2.0", "v1.3.0"], id="one digit"),
        pytest.param(["v0.8.0", "v0.10.0"], id="two digits"),
        pytest.param(["v1.9.4-18483da30c7f", "v1.21.2-08483da30c7f"], id="with a hash"),
        pytest.param(["v7b99cf786409", "v1bf9dc49824a"], id="hashes, the newest last"),
    ],
)
def test_the_newest_built_version_is_taken_before_a_recorded_program(cache: Path, versions: list[str]) -> None:
    for seconds, version in enumerate(versions):
        put_program(cache / f"nginx-{version}/nginx")
        os.utime(cache / f"nginx-{version}", (seconds, seconds))
    (cache / "system").mkdir()
    (cache / "system/nginx").symlink_to(put_program(cache / "elsewhere/nginx"))
    assert find_program("nginx") == str(cache / f"nginx-{versions[-1]}/nginx")
    assert [*built_versions("nginx")] == versions


def test_a_recorded_program_is_taken_until_it_is_removed(cache: Path) -> None:
    file = put_program(cache / "elsewhere/dig")
    (cache / "system").mkdir()
    (cache / "system/dig").symlink_to(file)
    assert find_program("dig") == str(file)
    file.unlink()
    assert find_program("dig") is None


@pytest.fixture
def guard() -> ProgramGuard:
    guard = ProgramGuard()
    guard.peers = frozenset()
    return guard


def start(guard: ProgramGuard, program: str, environment: dict[str, str] | None = None) -> None:
    guard.audit("subprocess.Popen", (program, [program], None, environment))


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(sys.executable, id="this Python"),
        pytest.param("sh", id="the shell"),
        pytest.param("no-such-program", id="nothing"),
        pytest.param(str(Path(sys.executable).parent / "dnsproxy"), id="our program"),
    ],
)
def test_a_test_starts_our_programs_and_a_shell(guard: ProgramGuard, program: str) -> None:
    start(guard, program)


def test_a_test_starts_no_program_of_the_computer(guard: ProgramGuard) -> None:
    with pytest.raises(AssertionError, match=r"name it with @pytest\.mark\.peer"):
        start(guard, str(shutil.which("ls") and shutil.which("id")))
    assert len(guard.refused) == 1


def test_a_named_program_is_that_of_the_record(guard: ProgramGuard, cache: Path) -> None:
    real = Path(str(shutil.which("id"))).resolve()
    (cache / "system").mkdir(parents=True)
    (cache / "system/id").symlink_to(real)
    guard.peers = frozenset({"id"})
    start(guard, "id")
    start(guard, "id", {"PATH": str(real.parent)})
    with pytest.raises(AssertionError):
        start(guard, "wc", {"PATH": os.defpath})


def test_the_guard_is_in_force_here(pytestconfig: pytest.Config) -> None:
    with pytest.raises(AssertionError, match="name it with"):
        subprocess.run(["id"], check=False)
    pytestconfig.stash[GUARD].refused.clear()

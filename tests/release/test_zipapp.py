"""Folders of packages for several platforms become one. The file itself: test_plays.py, test_build.py."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from release.zipapp import PYTHONS, begin_with, format_check, merge, pure_packages, without
from sidecar.values.errors import StartError


def folder_of(where: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        (where / name).write_text(text)
    return where


def merged(where: Path) -> dict[str, str]:
    return {str(one.relative_to(where)): one.read_text() for one in where.rglob("*") if one.is_file()}


def test_compiled_modules_are_put_beside_each_other(tmp_path: Path) -> None:
    for machine in ("x86_64", "aarch64"):
        files = {"a/__init__.py": "same", f"a/b.cpython-313-{machine}-linux-gnu.so": machine}
        merge(folder_of(tmp_path / machine, files), tmp_path / "all")
    assert merged(tmp_path / "all") == {
        "a/__init__.py": "same",
        "a/b.cpython-313-x86_64-linux-gnu.so": "x86_64",
        "a/b.cpython-313-aarch64-linux-gnu.so": "aarch64",
    }


@pytest.mark.parametrize("name", ["a/b.abi3.so", "a/version.py", "a-1.dist-info/METADATA", "a.pth"])
def test_a_file_that_differs_is_an_error(tmp_path: Path, name: str) -> None:
    merge(folder_of(tmp_path / "1", {name: "one"}), tmp_path / "all")
    with pytest.raises(StartError, match="differs between platforms"):
        merge(folder_of(tmp_path / "2", {name: "two"}), tmp_path / "all")


@pytest.mark.parametrize("name", ["a-1.dist-info/WHEEL", "a-1.dist-info/sboms/a.json"])
def test_the_tags_and_the_parts_of_a_wheel_may_differ(tmp_path: Path, name: str) -> None:
    for text in ("one", "two"):
        merge(folder_of(tmp_path / text, {name: text}), tmp_path / "all")
    assert merged(tmp_path / "all") == {name: "one"}


def test_what_the_installer_left_is_not_shipped(tmp_path: Path) -> None:
    left = [".lock", "bin/a", "a/__pycache__/b.pyc", *(f"a-1.dist-info/{one}" for one in ("RECORD", "direct_url.json"))]
    merge(folder_of(tmp_path / "1", {**dict.fromkeys(left, ""), "a/bin/tool": ""}), tmp_path / "all")
    assert merged(tmp_path / "all") == {"a/bin/tool": ""}


def test_the_users_umask_is_not_shipped(tmp_path: Path) -> None:
    source = folder_of(tmp_path / "1", {"a.py": ""})
    (source / "a.py").chmod(0o600)
    merge(source, tmp_path / "all")
    assert (tmp_path / "all" / "a.py").stat().st_mode & 0o777 == 0o644


REQUIREMENTS = """\
a==1 \\
    --hash=sha256:0 \\
    --hash=sha256:1
    # via b
a-b==2 ; sys_platform == 'linux' \\
    --hash=sha256:2
c==3 \\
    --hash=sha256:3
"""


@pytest.mark.parametrize(
    ("names", "left"),
    [
        ([], ["a", "a-b", "c"]),
        (["a"], ["a-b", "c"]),
        (["a-b"], ["a", "c"]),
        (["a", "a-b", "c"], []),
        (["b"], ["a", "a-b", "c"]),
    ],
    ids=lambda one: ",".join(one) or "none",
)
def test_a_requirement_is_taken_out_with_its_hashes(names: list[str], left: list[str]) -> None:
    text = without(REQUIREMENTS, names)
    assert [line.partition("==")[0] for line in text.splitlines() if line[0] != " "] == left
    assert text.count("--hash") == sum({"a": 2, "a-b": 1, "c": 1}[name] for name in left)


def zipapp_of(folder: Path, check: str) -> Path:
    """A zipapp that prints `ran`, begun with the check."""
    with (folder / "packed").open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("__main__.py", "print('ran')\n")
            archive.writestr("other.py", "left alone")
    begin_with(check, folder / "packed", folder / "made.pyz")
    return folder / "made.pyz"


def started(python: str, zipapp: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, str(zipapp)], capture_output=True, text=True, check=False)


def test_a_python_that_the_file_is_for_runs_it(tmp_path: Path) -> None:
    made = zipapp_of(tmp_path, format_check(PYTHONS))
    assert (started(sys.executable, made).stdout, started(sys.executable, made).returncode) == ("ran\n", 0)
    assert made.read_bytes().startswith(b"#!/usr/bin/env python3\nPK")
    assert made.stat().st_mode & stat.S_IXOTH
    with zipfile.ZipFile(made) as archive:
        assert (archive.namelist(), archive.read("other.py")) == (["__main__.py", "other.py"], b"left alone")


def test_another_python_gets_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    made = zipapp_of(tmp_path, format_check(["3.98", "3.99"]))
    done = started(sys.executable, made)
    ours = "{}.{}".format(*sys.version_info)
    said = (
        f"Error: this needs Linux and Python 3.98 to 3.99, and Python {ours} on linux runs it; try: python3.98 {made}"
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", f"{said}\n", 3)


OLD = sorted(
    python
    for minor in ("2.7", *(f"3.{one}" for one in range(6, 11)))
    for python in Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv").glob(f"versions/{minor}.*/bin/python")
)


@pytest.mark.skipif(not OLD, reason="no Python older than 3.11 is installed")
def test_pythons_that_are_too_old_to_read_the_packages_can_read_that_line(tmp_path: Path) -> None:
    made = zipapp_of(tmp_path, format_check(PYTHONS))
    for python in OLD:
        done = started(str(python), made)
        assert (done.stdout, done.returncode) == ("", 3), python
        assert done.stderr.startswith("Error: this needs Linux and Python 3.11 to 3.14, and Python "), python
        assert len(done.stderr.splitlines()) == 1


def test_a_package_is_pure_by_its_wheel(tmp_path: Path) -> None:
    for name, pure in (("Some_pure.name-1.2", "true"), ("compiled-1.2", "false")):
        folder_of(tmp_path, {f"{name}.dist-info/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: {pure}\nTag: x\n"})
    assert pure_packages(tmp_path) == {"some-pure-name"}

"""`make image`: which builder it takes, with what it calls it, and what it refuses; scripts/image.sh.

Programs that only write down how they were called stand for the builders; tests/cluster plays it with a real one.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.release.clones import PROJECT, VERSION

CALLED: Final = """\
#!/bin/sh
[ "$1" != info ] || exit {status}
echo "{name} $*" >> {log}
case $1 in save | push) echo image > "build/switchback${{TARGET:+-nftables}}.tar.part" ;; esac
"""
TOOLS: Final = ("bash", "dirname", "env", "git", "make", "mkdir", "mv", "rm", "sed", "sh", "timeout")


@dataclass(frozen=True)
class Machine:
    """A copy of what the target reads, on a machine with these builders."""

    folder: Path
    log: Path

    def make(self, *, variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        command = [
            "make",
            "--no-print-directory",
            "image",
            *(f"{name}={value}" for name, value in (variables or {}).items()),
        ]
        env = {"PATH": str(self.folder / "programs"), "HOME": str(self.folder)}
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, env=env)

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


def machine(folder: Path, builders: Mapping[str, int]) -> Machine:
    """With these builders; the status of `info` by name, which is 1 where docker has no daemon."""
    programs = folder / "programs"
    programs.mkdir()
    for name in TOOLS:
        (programs / name).symlink_to(shutil.which(name) or name)
    log = folder / "calls"
    for name, status in builders.items():
        (programs / name).write_text(CALLED.format(name=name, status=status, log=log))
        (programs / name).chmod(0o755)
    (folder / "scripts").mkdir()
    for name in ("Makefile", "pyproject.toml", "uv.lock", "scripts/image.sh"):
        shutil.copy(PROJECT / name, folder / name)
    return Machine(folder, log)


BUILD: Final = (
    f"{{}} build --target programs --build-arg VERSION={VERSION} --build-arg REVISION=unknown"
    f" --tag localhost/switchback:{VERSION} ."
)
NAMED: Final = f"localhost/switchback:{VERSION}"
CHOICES = [
    ({"docker": 0, "podman": 0, "buildah": 0}, "docker", f"docker save --output build/switchback.tar.part {NAMED}"),
    (
        {"docker": 1, "podman": 0, "buildah": 0},
        "podman",
        f"podman save --quiet --format docker-archive --output build/switchback.tar.part {NAMED}",
    ),
    (
        {"docker": 1, "podman": 1, "buildah": 1},
        "buildah",
        f"buildah push --quiet {NAMED} docker-archive:build/switchback.tar.part:{NAMED}",
    ),
]


@pytest.mark.parametrize(("builders", "name", "saved"), CHOICES, ids=[row[1] for row in CHOICES])
def test_the_first_builder_that_works_builds_and_saves(
    tmp_path: Path, builders: Mapping[str, int], name: str, saved: str
) -> None:
    there = machine(tmp_path, builders)
    done = there.make()
    assert (done.returncode, done.stderr) == (0, "")
    assert [one for one in there.calls if "--version" not in one] == [BUILD.format(name), saved]
    assert done.stdout.endswith(f"{NAMED} is built, and in build/switchback.tar\n")


def test_variables_name_builder_image_target_and_options(tmp_path: Path) -> None:
    there = machine(tmp_path, {"docker": 0, "podman": 0})
    wanted = {
        "BUILDER": "podman",
        "IMAGE": "registry.example.org:5000/team/switchback-nftables",
        "TARGET": "with-nftables",
        "ARGS": "--build-arg=PIP_INDEX_URL=https://index.example.org/simple --no-cache",
    }
    done = there.make(variables=wanted)
    assert (done.returncode, done.stderr) == (0, "")
    build, save = there.calls
    assert build.startswith("podman build --target with-nftables ")
    assert f"--tag {wanted['IMAGE']}:{VERSION} {wanted['ARGS']} ." in build
    assert save.endswith(f"build/switchback-nftables.tar.part {wanted['IMAGE']}:{VERSION}")


def test_the_revision_is_that_of_the_checkout(tmp_path: Path) -> None:
    there = machine(tmp_path, {"docker": 0})
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    (tmp_path / ".gitignore").write_text("build\ncalls\n")
    for words in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "--message=test"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    commit = subprocess.check_output(["git", "-C", str(tmp_path), "rev-parse", "HEAD"], text=True).strip()
    assert there.make().returncode == 0
    assert f"--build-arg REVISION={commit} " in there.calls[0]
    # A changed tree is none.
    (tmp_path / "uv.lock").write_text("changed")
    assert there.make().returncode == 0
    assert "--build-arg REVISION=unknown " in there.calls[2]


def test_the_revision_is_not_that_of_a_repository_around_it(tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    there = machine(tmp_path / "sources", {"docker": 0})
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    for words in (["init", "--quiet"], [*identity, "commit", "--quiet", "--allow-empty", "--message=test"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    assert there.make().returncode == 0
    assert "--build-arg REVISION=unknown " in there.calls[0]


REFUSED: Sequence[tuple[str, Mapping[str, int], Mapping[str, str], str]] = [
    ("no builder", {}, {}, "none of docker, podman and buildah works here"),
    ("no daemon", {"docker": 1}, {}, "none of docker, podman and buildah works here"),
    ("a named builder without its daemon", {"docker": 1, "buildah": 0}, {"BUILDER": "docker"}, "docker does not work"),
    ("a named builder that is not there", {"docker": 0}, {"BUILDER": "podman"}, "podman does not work here"),
    ("another builder", {"docker": 0}, {"BUILDER": "kaniko"}, "BUILDER=kaniko is none of docker, podman, buildah"),
    ("a tag", {"docker": 0}, {"IMAGE": "registry.example.org/switchback:1"}, "has a tag or a digest"),
    ("a digest", {"docker": 0}, {"IMAGE": f"registry.example.org/switchback@sha256:{'0' * 64}"}, "has a tag or a dig"),
    ("no registry", {"docker": 0}, {"IMAGE": "switchback"}, "begins with no registry"),
    *(
        (f"IMAGE={name}", {"docker": 0}, {"IMAGE": name}, "is no name of an image")
        for name in (
            "registry.example.org/",
            "/switchback",
            "./x",
            "reg.example.org/UP",
            "--privileged/x",
            "reg.example.org/a b",
            "https://reg.example.org/x",
            "reg.example.org/\x1b[31m",
        )
    ),
    ("a path without a registry", {"docker": 0}, {"IMAGE": "team/switchback"}, "begins with no registry"),
    ("another target", {"docker": 0}, {"TARGET": "build"}, "TARGET=build is neither programs nor with-nftables"),
]


@pytest.mark.parametrize(
    ("builders", "variables", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_nothing_is_built_and_the_reason_is_given(
    tmp_path: Path, builders: Mapping[str, int], variables: Mapping[str, str], message: str
) -> None:
    there = machine(tmp_path, builders)
    done = there.make(variables=variables)
    assert done.returncode != 0
    assert done.stderr.startswith("image: ")
    assert message in done.stderr
    assert [one for one in there.calls if " build " in f" {one} "] == []


@pytest.mark.parametrize(
    "docker",
    [
        pytest.param('[ "$1" = info ]', id="build"),
        pytest.param('[ "$1" != save ] || { echo part > "$3"; exit 1; }', id="save"),
        pytest.param('[ "$1" != save ] || { echo part > "$3"; kill -TERM $PPID; sleep 1; }', id="interrupted save"),
        pytest.param("true", id="save that writes nothing"),
    ],
)
def test_a_build_that_fails_leaves_neither_a_part_nor_the_archive_of_an_earlier_one(
    tmp_path: Path, docker: str
) -> None:
    there = machine(tmp_path, {"docker": 0})
    (tmp_path / "programs" / "docker").write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{docker}\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "switchback.tar").write_text("of an earlier build")
    assert there.make().returncode != 0
    assert list((tmp_path / "build").iterdir()) == []


def test_the_archive_is_ignored_by_git() -> None:
    ignored = (PROJECT / ".gitignore").read_text(encoding="utf-8")
    assert re.search(r"^/?build/$", ignored, re.MULTILINE)


def test_the_default_name_is_that_of_the_manifests() -> None:
    manifest = (PROJECT / "deploy" / "base" / "relay.yaml").read_text(encoding="utf-8")
    assert f"image: {NAMED}\n" in manifest

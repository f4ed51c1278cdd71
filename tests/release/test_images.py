"""How an image of a release is built, by flags and machine; test_release_of_images.py has the images."""

from __future__ import annotations

from pathlib import Path

import pytest

from release.buildah import Buildah, BuildFailed
from release.images import TARGETS, BadBase, build_images, builder_arguments, parse_base
from tests.deploy.image import PROJECT


def test_no_base_means_the_dockerfiles_own() -> None:
    assert parse_base([]) is None
    assert builder_arguments("linux/arm64", machine="x86_64", base=None) == {"BUILDPLATFORM": "linux/amd64"}


def test_a_base_is_named_for_each_platform() -> None:
    words = ["linux/arm64=localhost/base-arm64:1", "linux/amd64=localhost/base:1@sha256:0a=b"]
    assert parse_base(words) == {"linux/arm64": "localhost/base-arm64:1", "linux/amd64": "localhost/base:1@sha256:0a=b"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["localhost/base"], "--base localhost/base: write linux/amd64=NAME or linux/arm64=NAME"),
        (["linux/riscv64=base"], "--base linux/riscv64=base: write linux/amd64=NAME"),
        (["arm64=base"], "--base arm64=base: write"),
        (["linux/arm64="], "--base linux/arm64=: write"),
        (["linux/arm64=--volume=/:/host"], "write linux/amd64=NAME"),
        (["=base"], "--base =base: write"),
        ([""], "--base : write"),
        (["linux/arm64=a", "linux/arm64=b"], "--base linux/arm64=b: linux/arm64 has the base a already"),
        (["linux/arm64=a"], "linux/amd64 has no base; add --base linux/amd64=NAME"),
        (["linux/amd64=a"], "linux/arm64 has no base; add --base linux/arm64=NAME"),
    ],
)
def test_a_bad_base_is_told_with_what_to_write(words: list[str], said: str) -> None:
    with pytest.raises(BadBase, match=said):
        parse_base(words)


@pytest.mark.parametrize(
    ("machine", "wanted", "expected"),
    [
        ("x86_64", "linux/amd64", ("linux/amd64", "amd", "amd")),
        ("x86_64", "linux/arm64", ("linux/amd64", "arm", "amd")),
        ("aarch64", "linux/amd64", ("linux/arm64", "amd", "arm")),
        ("aarch64", "linux/arm64", ("linux/arm64", "arm", "arm")),
    ],
)
def test_the_first_stages_run_on_the_machine_that_builds(
    machine: str, wanted: str, expected: tuple[str, str, str]
) -> None:
    arguments = builder_arguments(wanted, machine=machine, base={"linux/amd64": "amd", "linux/arm64": "arm"})
    assert tuple(arguments[name] for name in ("BUILDPLATFORM", "BASE", "BUILD_BASE")) == expected


@pytest.mark.parametrize("machine", ["riscv64", "i686", ""])
def test_no_image_is_built_on_another_machine(machine: str) -> None:
    with pytest.raises(BuildFailed, match="images are built on x86_64 and aarch64"):
        builder_arguments("linux/amd64", machine=machine, base=None)


def test_without_buildah_it_says_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="no-such-buildah is not installed: apt-get install buildah"):
        build(tmp_path, builder=Buildah((str(tmp_path / "no-such-buildah"),)))


def test_a_failed_build_shows_what_buildah_said(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match=r"buildah bud .*\n.*a reason"):
        build(tmp_path, builder=Buildah(("sh", "-c", "echo a reason >&2; exit 125")))


_NO_COPY = "Close_Fd sealing memfd copy: Device or resource busy"


@pytest.mark.parametrize(
    ("says", "fails", "runs", "succeeds"),
    [
        pytest.param(_NO_COPY, 1, 2, True, id="a copy that is refused once"),
        pytest.param(_NO_COPY, 2, 3, True, id="twice"),
        pytest.param(_NO_COPY, 9, 3, False, id="always"),
        pytest.param("unlinking: Device or resource busy", 1, 1, False, id="another thing that is busy"),
        pytest.param("no space left", 1, 1, False, id="another reason"),
        pytest.param("", 1, 1, False, id="no reason"),
    ],
)
def test_a_command_runs_again_if_buildah_could_not_copy_itself(
    tmp_path: Path, says: str, fails: int, runs: int, succeeds: bool
) -> None:
    # The kernel refuses the copy by chance.
    script = f'echo >>ran; test $(wc -l <ran) -gt {fails} && exec echo an output; echo "{says}" >&2; exit 1'
    builder = Buildah(("sh", "-c", f"cd {tmp_path}; {script}"))
    if succeeds:
        assert builder.run("inspect") == "an output\n"
    else:
        with pytest.raises(BuildFailed, match=f"buildah inspect\n{says}"):
            builder.run("inspect")
    assert (tmp_path / "ran").read_text().count("\n") == runs


def test_the_image_that_is_built_by_default_is_that_of_the_programs() -> None:
    stages = [line for line in (PROJECT / "Dockerfile").read_text().splitlines() if line.startswith("FROM ")]
    assert stages[-1] == "FROM programs"
    named = {line.rpartition(" AS ")[2] for line in stages if " AS " in line}
    assert set(TARGETS) <= named


def build(folder: Path, *, builder: Buildah) -> None:
    build_images(
        source=folder, dist=folder / "dist", version="1.2.3", revision="0a", epoch=0, base=None, buildah=builder
    )

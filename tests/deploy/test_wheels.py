"""The image builds for arm64 as for amd64 without a compiler: the lock file has wheels for both."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.deploy.image import PROJECT

PYTHON = "cp313"
"""The Python version of the Dockerfile's base."""


@functools.cache
def locked() -> dict[str, Mapping[str, Any]]:
    with (PROJECT / "uv.lock").open("rb") as file:
        return {one["name"]: one for one in tomllib.load(file)["package"]}


def needed(name: str, packages: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The run-time dependencies of a package, indirect ones included."""
    waiting, seen = [name], set[str]()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        waiting += [dependency["name"] for dependency in packages[one].get("dependencies", ())]
        yield one


def fits(wheel: str, machine: str) -> bool:
    """Whether a wheel's file name declares support for the platform (PEP 425, PEP 600)."""
    python, abi, platforms = wheel.removesuffix(".whl").split("-")[-3:]
    if platforms == "any":
        return any(tag in {"py3", PYTHON} for tag in python.split("."))
    # A wheel for a stable ABI names its lowest version.
    is_python = python == PYTHON or abi == "abi3"
    return is_python and any(tag.startswith("manylinux") and tag.endswith(machine) for tag in platforms.split("."))


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("name", [*sorted(set(needed("switchback", locked())) - {"switchback"}), "uv"])
def test_every_package_has_a_wheel(name: str, machine: str) -> None:
    wheels = [wheel["url"].rpartition("/")[2] for wheel in locked()[name].get("wheels", ())]
    # uv is a program, not a module: its wheels are for any Python.
    assert any(fits(wheel.replace("-py3-none-manylinux", f"-{PYTHON}-none-manylinux"), machine) for wheel in wheels)


@pytest.mark.parametrize(
    ("wheel", "expected"),
    [
        ("click-8.5.1-py3-none-any.whl", True),
        ("six-1.16.0-py2.py3-none-any.whl", True),
        ("msgspec-0.20.0-cp313-cp313-manylinux2014_aarch64.manylinux_2_17_aarch64.whl", True),
        ("cryptography-46-cp311-abi3-manylinux_2_28_aarch64.whl", True),
        ("msgspec-0.20.0-cp313-cp313-manylinux2014_x86_64.whl", False),
        ("msgspec-0.20.0-cp313-cp313-musllinux_1_2_aarch64.whl", False),
        ("msgspec-0.20.0-cp313-cp313t-manylinux_2_28_x86_64.whl", False),
        ("msgspec-0.20.0-cp312-cp312-manylinux_2_28_aarch64.whl", False),
        ("old-1.0-py2-none-any.whl", False),
    ],
)
def test_a_wheels_name_says_where_it_runs(wheel: str, expected: bool) -> None:
    assert fits(wheel, "aarch64") is expected

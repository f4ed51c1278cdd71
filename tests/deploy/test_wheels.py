"""The image builds for arm64 as for amd64 without a compiler: the lock file has wheels for both."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.deploy.image import PROJECT

DOCKERFILE = PROJECT / "Dockerfile"
BASE = re.search(r"^ARG BASE=\S*/python:3\.(\d+)-slim@sha256:[0-9a-f]{64}$", DOCKERFILE.read_text(), re.MULTILINE)
assert BASE, "the Dockerfile's base is python:3.MINOR-slim by its digest"
MINOR = int(BASE[1])
"""The Python of the Dockerfile's base."""


@functools.cache
def locked() -> dict[str, Mapping[str, Any]]:
    with (PROJECT / "uv.lock").open("rb") as file:
        return {one["name"]: one for one in tomllib.load(file)["package"]}


def needed(name: str, packages: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The packages of the image: run-time dependencies, indirect ones included, without those that it leaves out."""
    waiting, seen = [name], {"kubernetes"}
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        waiting += [dependency["name"] for dependency in packages[one].get("dependencies", ())]
        yield one


def wheels_of(name: str) -> list[str]:
    """The file names of a package's wheels. uv is a program, not a module: its wheels are for any Python."""
    wheels = [wheel["url"].rpartition("/")[2] for wheel in locked()[name].get("wheels", ())]
    return [wheel.replace("-py3-none-manylinux", "-cp311-abi3-manylinux") for wheel in wheels]


def fits(wheel: str, machine: str, *, minor: int) -> bool:
    """Whether a wheel's file name declares support for CPython 3.minor on the platform (PEP 425, PEP 600)."""
    python, abi, platforms = wheel.removesuffix(".whl").split("-")[-3:]
    if platforms == "any":
        return any(tag in {"py3", f"cp3{minor}"} for tag in python.split("."))
    # A wheel for a stable ABI names its lowest version.
    is_python = python == f"cp3{minor}" or abi == "abi3"
    return is_python and any(tag.startswith("manylinux") and tag.endswith(machine) for tag in platforms.split("."))


IN_THE_IMAGE = sorted(set(needed("switchback-dns", locked())) - {"switchback-dns"})


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_package_has_a_wheel(machine: str) -> None:
    found = {
        name: any(fits(wheel, machine, minor=MINOR) for wheel in wheels_of(name)) for name in [*IN_THE_IMAGE, "uv"]
    }
    assert [name for name, fitting in found.items() if not fitting] == []


@pytest.mark.parametrize(
    ("wheel", "expected"),
    [
        ("click-8.5.1-py3-none-any.whl", True),
        ("six-1.16.0-py2.py3-none-any.whl", True),
        ("msgspec-0.20.0-cp313-cp313-manylinux2014_aarch64.manylinux_2_17_aarch64.whl", True),
        ("cryptography-46-cp311-abi3-manylinux_2_28_aarch64.whl", True),
        ("old-1.0-cp313-none-any.whl", True),
        ("new-1.0-cp314-none-any.whl", False),
        ("msgspec-0.20.0-cp313-cp313-manylinux2014_x86_64.whl", False),
        ("msgspec-0.20.0-cp313-cp313-musllinux_1_2_aarch64.whl", False),
        ("msgspec-0.20.0-cp313-cp313t-manylinux_2_28_x86_64.whl", False),
        ("msgspec-0.20.0-cp312-cp312-manylinux_2_28_aarch64.whl", False),
        ("old-1.0-py2-none-any.whl", False),
    ],
)
def test_a_wheels_name_says_where_it_runs(wheel: str, expected: bool) -> None:
    assert fits(wheel, "aarch64", minor=13) is expected

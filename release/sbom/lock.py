"""What a wheel needs at run time, out of the text of uv.lock.

The law: markers are judged for Linux and CPython, where the programs run; a dependency that any supported version of
Python needs is in. Development groups are not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from packaging.markers import Marker

_LINUX: Final = {
    "os_name": "posix",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "extra": "",
}
_PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
_MACHINES: Final = ("x86_64", "aarch64")


class BadLock(Exception):
    """The lock file lacks a package; the message names it."""


@dataclass(frozen=True)
class Locked:
    """One package of the lock."""

    name: str
    version: str
    needs: tuple[str, ...]
    """Names, sorted."""


def needed_by(root: str, lock: str) -> tuple[Locked, ...]:
    """The package `root` and all that it needs, optional dependencies too, by name. Raises BadLock."""
    packages = {one["name"]: one for one in tomllib.loads(lock)["package"]}
    found: dict[str, Locked] = {}
    following = [root]
    while following:
        name = following.pop()
        if name in found:
            continue
        if name not in packages:
            raise BadLock(f"uv.lock has no package {name}: run `uv lock`")
        needs = _needs(packages[name], with_extras=name == root)
        found[name] = Locked(name, packages[name]["version"], needs)
        following += needs
    return tuple(found[name] for name in sorted(found))


def _needs(package: Mapping[str, Any], *, with_extras: bool) -> tuple[str, ...]:
    listed: list[Mapping[str, Any]] = list(package.get("dependencies", ()))
    if with_extras:
        optional: Mapping[str, Sequence[Mapping[str, Any]]] = package.get("optional-dependencies", {})
        listed += [one for several in optional.values() for one in several]
    return tuple(sorted({one["name"] for one in listed if _applies(one.get("marker"))}))


def _applies(marker: str | None) -> bool:
    if marker is None:
        return True
    parsed = Marker(marker)
    return any(
        parsed.evaluate(
            {**_LINUX, "python_version": python, "python_full_version": f"{python}.0", "platform_machine": machine}
        )
        for python in _PYTHONS
        for machine in _MACHINES
    )

"""What a wheel needs, out of the lock file."""

from __future__ import annotations

from pathlib import Path

import pytest

from release.sbom.lock import BadLock, Locked, needed_by

LOCK = """
[[package]]
name = "own"
version = "0.1.0"
dependencies = [{ name = "a" }, { name = "b", marker = "MARKER" }]
[package.optional-dependencies]
more = [{ name = "c", marker = "extra == 'more'" }, { name = "d" }]
[package.dev-dependencies]
test = [{ name = "tests" }]
[[package]]
name = "a"
version = "1"
dependencies = [{ name = "own" }]
[package.optional-dependencies]
foreign = [{ name = "tests" }]
[[package]]
name = "b"
version = "2"
[[package]]
name = "c"
version = "3"
[[package]]
name = "d"
version = "4"
[[package]]
name = "tests"
version = "5"
"""


def names(marker: str) -> list[str]:
    return [one.name for one in needed_by("own", LOCK.replace("MARKER", marker))]


def test_dependencies_are_followed_also_in_a_circle() -> None:
    assert needed_by("own", LOCK.replace("MARKER", "os_name == 'posix'")) == (
        Locked("a", "1", ("own",)),
        Locked("b", "2", ()),
        Locked("d", "4", ()),
        Locked("own", "0.1.0", ("a", "b", "d")),
    )


@pytest.mark.parametrize(
    ("marker", "applies"),
    [
        ("sys_platform == 'linux'", True),
        ("sys_platform == 'win32'", False),
        ("sys_platform != 'emscripten'", True),
        ("implementation_name != 'pypy' and os_name == 'nt'", False),
        ("python_full_version < '3.12'", True),
        ("python_full_version >= '3.14'", True),
        ("python_full_version < '3.11'", False),
        ("platform_machine == 'aarch64'", True),
        ("platform_machine == 'arm64' and sys_platform == 'darwin'", False),
    ],
)
def test_a_marker_is_judged_for_linux_and_every_python(marker: str, applies: bool) -> None:
    assert ("b" in names(marker)) is applies


def test_a_package_that_is_not_locked_is_named() -> None:
    with pytest.raises(BadLock, match="no package missing: run `uv lock`"):
        needed_by("missing", LOCK)


def test_our_own_lock_has_what_the_programs_import() -> None:
    lock = (Path(__file__).parents[3] / "uv.lock").read_text(encoding="utf-8")
    found = {one.name for one in needed_by("switchback-dns", lock)}
    assert {"trio", "msgspec", "outcome", "click"} <= found
    assert not {"pytest", "ruff", "shiv", "cffi"} & found

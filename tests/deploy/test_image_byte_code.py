"""A base whose standard library has no byte code, as the official images of Python: the image brings it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.containers import output, sources
from tests.deploy.image import BASE, Image, build_image, buildah, make_base

__all__ = ["sources"]

pytestmark = [pytest.mark.peer("buildah", "debian-base"), pytest.mark.timeout(900)]

IMPORTS = "import dnsproxy.serve.program, dnsproxy.install.command, proxy.serve.program, wholeip.agent.program"


@pytest.fixture(scope="module")
def bare() -> Iterator[str]:
    """The name of the base, without byte code."""
    make_base()
    name = f"localhost/bare-base:{os.getpid()}"
    container = buildah("from", "--pull-never", BASE).strip()
    try:
        buildah("run", "--isolation=chroot", container, "--", "find", "/usr/lib", "-name", "*.pyc", "-delete")
        buildah("commit", "--quiet", container, name)
    finally:
        buildah("rm", container)
    yield name
    Image(name).remove()


@pytest.fixture(scope="module")
def image(bare: str, sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    name = f"localhost/switchback-bare:{os.getpid()}"
    made = build_image(name, folder=tmp_path_factory.mktemp("bare"), context=sources, base=bare)
    yield made
    made.remove()


def test_the_base_has_no_byte_code_at_all(bare: str) -> None:
    """Otherwise the tests below would say nothing."""
    with Image(bare).mounted() as root:
        assert not list((root / "usr" / "lib").rglob("*.pyc"))
        assert list((root / "usr" / "lib").glob("python3*/os.py"))


def test_no_module_of_the_standard_library_is_compiled_at_a_start(image: Image) -> None:
    with image.container() as container:
        told = output(container, "sh", "-c", f"/app/bin/python -v -c '{IMPORTS}' 2>&1").splitlines()
    # `-v`: "# code object from /usr/lib/python3.11/os.py" was compiled, one from a .pyc has quotes.
    assert len([line for line in told if ".pyc matches " in line]) > 300
    assert [line for line in told if line.startswith("# code object from /")] == []


def test_a_changed_module_is_not_hidden_by_the_byte_code(image: Image) -> None:
    """The base may be a later patch of Python than the one whose library was compiled."""
    change = "echo 'CHANGED = 1' >> /usr/lib/python3.11/json/__init__.py; python3 -c 'import json; print(json.CHANGED)'"
    with image.container() as container:
        buildah("config", "--user", "0", container)
        assert output(container, "sh", "-c", change).strip() == "1"


def test_what_no_program_imports_has_no_byte_code(image: Image) -> None:
    with image.mounted() as root:
        (library,) = (root / "usr" / "lib").glob("python3.*")
        compiled = {path.relative_to(library).parts[0] for path in library.rglob("*.pyc")}
    assert {"__pycache__", "json", "importlib"} <= compiled
    assert not compiled & {"test", "idlelib", "lib2to3", "tkinter", "ensurepip"}

"""What a program states about its build; test_repository.py has what an archive of the sources records."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import pytest

from sidecar.values import build
from sidecar.values.build import DISTRIBUTION, UNKNOWN, Build, own_build

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ONE = Build("1.0.0", COMMIT, "3.13.1")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    own_build.cache_clear()
    yield
    own_build.cache_clear()


def test_it_is_what_the_installer_and_the_interpreter_say() -> None:
    assert own_build().version == version(DISTRIBUTION)
    assert sys.version.startswith(own_build().python)


@pytest.mark.parametrize(
    ("folders", "found"),
    [
        pytest.param(["switchback-1.2.3.dist-info"], "1.2.3", id="installed"),
        pytest.param(["switchback-1.2.3rc1+local.4.dist-info"], "1.2.3rc1+local.4", id="a local version"),
        pytest.param(["switchback_dns-9.dist-info", "switchbackup-9.dist-info"], UNKNOWN, id="others"),
        pytest.param(["switchback-9.egg-info", "switchback", "switchback-9"], UNKNOWN, id="no folder of a wheel"),
        pytest.param([], UNKNOWN, id="only the sources"),
    ],
)
def test_the_version_is_that_of_an_installed_distribution(
    folders: Sequence[str], found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stdlib.zip").touch()
    for name in folders:
        (tmp_path / "packages" / name).mkdir(parents=True)
    paths = [tmp_path / "stdlib.zip", tmp_path / "missing", tmp_path / "packages"]
    monkeypatch.setattr(sys, "path", list(map(str, paths)))
    monkeypatch.setattr(build, "DISTRIBUTION", "switchback")
    assert own_build().version == found


@pytest.mark.parametrize(
    ("recorded", "revision"),
    [(COMMIT, COMMIT), ("$Format:%H$", UNKNOWN), (UNKNOWN, UNKNOWN)],
    ids=["an archive or an image", "a checkout", "an image without REVISION"],
)
def test_the_revision_is_what_the_build_recorded(recorded: str, revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_REVISION", recorded)
    assert own_build().revision == revision


def test_people_see_the_beginning_of_a_revision() -> None:
    assert str(ONE) == "1.0.0, revision 0123456789ab"
    assert str(Build(UNKNOWN, UNKNOWN, "3.13.1")) == "unknown, revision unknown"


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        pytest.param(ONE, False, id="the same"),
        pytest.param(Build("1.0.0", COMMIT, "3.11.0"), False, id="another Python"),
        pytest.param(Build("1.0.0", UNKNOWN, "3.13.1"), False, id="no revision"),
        pytest.param(Build(UNKNOWN, COMMIT, "3.13.1"), False, id="no version"),
        pytest.param(Build("1.0.1", COMMIT, "3.13.1"), True, id="another version"),
        pytest.param(Build("1.0.1", UNKNOWN, "3.13.1"), True, id="another version, no revision"),
        pytest.param(Build("1.0.0", "f" * 40, "3.13.1"), True, id="another revision"),
    ],
)
def test_only_what_both_have_recorded_can_differ(other: Build, differs: bool) -> None:
    assert (ONE.differs(other), other.differs(ONE)) == (differs, differs)

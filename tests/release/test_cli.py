"""The command: what it refuses, what it prints, and that a dry run writes nothing. All reasons: test_judge.py."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from release.artefacts import artefacts
from tests.release.clones import IMAGE, PROJECT, VERSION, commit, git, make_clone, release


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_clone(tmp_path_factory.mktemp("clone") / "repository")


@pytest.fixture(scope="module")
def untagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_clone(tmp_path_factory.mktemp("untagged") / "repository", tag=None)


def test_a_dry_run_prints_what_would_be_built_and_pushed_and_writes_nothing(clone: Path, tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    done = release(clone, dist, "--image", IMAGE, "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Would be built in {dist}:" in done.stdout
    for one in artefacts(VERSION):
        assert one.name in done.stdout
    for word in ("docker://registry.example.org/switchback:0.1.0", "oci://registry.example.org/charts", "uv publish"):
        assert word in done.stdout
    assert not dist.exists()
    assert git(clone, "status", "--porcelain") == ""


def test_json_has_the_same(clone: Path, tmp_path: Path) -> None:
    done = release(clone, tmp_path / "dist", "--image", IMAGE, "--dry-run", "--output", "json")
    document = json.loads(done.stdout)
    assert document["version"] == VERSION
    assert document["commit"] == git(clone, "rev-parse", "HEAD").strip()
    assert document["image"] == IMAGE
    assert document["built"] is False
    assert [one["name"] for one in document["files"]] == [one.name for one in artefacts(VERSION)]
    assert [one["what"] for one in document["push"]][-1] == "files"


def test_the_image_has_one_default(clone: Path, tmp_path: Path) -> None:
    """In pyproject.toml, where it is an example, which a release refuses and a snapshot takes."""
    refused = release(clone, tmp_path / "dist", "--dry-run")
    assert refused.returncode == 1
    assert refused.stderr.startswith("Refused: registry.example.org/switchback is an example")
    assert release(clone, tmp_path / "dist", "--dry-run", "--snapshot").returncode == 0


def test_an_untagged_commit_is_refused_and_a_snapshot_is_not(untagged: Path, tmp_path: Path) -> None:
    refused = release(untagged, tmp_path / "dist", "--image", IMAGE)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Refused: HEAD has no tag" in refused.stderr
    assert not (tmp_path / "dist").exists()
    snapshot = release(untagged, tmp_path / "dist", "--image", IMAGE, "--snapshot", "--dry-run")
    assert (snapshot.returncode, "SNAPSHOT" in snapshot.stdout) == (0, True)


def test_a_changed_and_an_unknown_file_are_refused(tmp_path: Path) -> None:
    clone = make_clone(tmp_path / "repository")
    (clone / "README.md").write_text("other")
    (clone / "new file").write_text("new")
    refused = release(clone, tmp_path / "dist", "--image", IMAGE, "--dry-run")
    assert refused.returncode == 1
    assert refused.stderr.startswith("Refused: the work tree is not clean: README.md, new file;")


def test_dist_inside_the_repository_is_ignored_by_git(tmp_path: Path) -> None:
    """The second run finds the files of the first one, and the work tree is clean still."""
    clone = make_clone(tmp_path / "repository")
    (clone / "dist").mkdir()
    (clone / "dist" / "switchback.pyz").write_text("of an earlier run")
    assert release(clone, clone / "dist", "--image", IMAGE, "--dry-run").returncode == 0
    (clone / "dist" / "switchback-0.0.9.tgz").write_text("of another version")
    refused = release(clone, clone / "dist", "--image", IMAGE, "--dry-run")
    assert "not of 0.1.0: switchback-0.0.9.tgz;" in refused.stderr


def test_the_version_is_that_of_the_commit(tmp_path: Path) -> None:
    clone = make_clone(tmp_path / "repository")
    project = clone / "pyproject.toml"
    project.write_text(project.read_text().replace(f'version = "{VERSION}"', 'version = "0.2.0"', 1))
    commit(clone)
    git(clone, "tag", "--force", "v0.1.0")
    refused = release(clone, tmp_path / "dist", "--image", IMAGE, "--dry-run")
    assert refused.returncode == 1
    assert "HEAD has the tag v0.1.0, and pyproject.toml has the version 0.2.0" in refused.stderr
    assert "CHANGELOG.md has no section 0.2.0" in refused.stderr


BAD_USAGE = [
    ("an address that is none", ["--downloads", "ftp://example.org"], "--downloads: 'ftp://example.org' is not an add"),
    ("an image with a tag", ["--image", "registry.example.org/switchback:1"], "--image: "),
    ("an unknown kind", ["--only", "wheel,rpm"], "--only: 'rpm' is none of wheel, "),
    ("no kind", ["--only", ""], "--only: '' is none of"),
    ("a base for one platform", ["--base", "linux/amd64=a"], "linux/arm64 has no base"),
    ("a base for no platform", ["--base", "windows=a"], "--base windows=a: write"),
    ("another output", ["--output", "yaml"], "--output: 'yaml'"),
    ("an unknown flag", ["--push"], "--push"),
]


@pytest.mark.parametrize(("words", "message"), [row[1:] for row in BAD_USAGE], ids=[row[0] for row in BAD_USAGE])
def test_bad_usage_names_the_flag(clone: Path, tmp_path: Path, words: list[str], message: str) -> None:
    done = release(clone, tmp_path / "dist", "--dry-run", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_folder_without_sources_is_named(tmp_path: Path) -> None:
    done = release(tmp_path, tmp_path / "dist", "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not a source tree of Switchback" in done.stderr


def test_sources_without_a_repository_are_an_error(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CHANGELOG.md"):
        (tmp_path / name).write_text('[project]\nversion = "0.1.0"\n')
    done = release(tmp_path, tmp_path / "dist", "--dry-run", env={"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})
    assert (done.returncode, done.stdout) == (3, "")
    assert "git" in done.stderr


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (["IMAGE=registry.example.org/a"], " --image='registry.example.org/a' --dry-run"),
        (["IMAGE="], "release  --dry-run"),
    ],
    ids=["with IMAGE", "without"],
)
def test_make_hands_the_image_over(words: list[str], flag: str) -> None:
    command = ["make", "--dry-run", "--no-print-directory", "release", "ARGS=--dry-run", *words]
    assert flag in subprocess.check_output(command, cwd=PROJECT, text=True)


def test_variables_stand_for_flags(clone: Path, tmp_path: Path) -> None:
    done = release(clone, tmp_path / "dist", env={"RELEASE_IMAGE": IMAGE, "RELEASE_DRY_RUN": "1"})
    assert done.returncode == 0, done.stderr
    assert IMAGE in done.stdout

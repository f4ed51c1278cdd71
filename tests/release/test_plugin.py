"""kubectl's plugin: the archive, and the manifest that krew itself accepts."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from dnsproxy.cli import COMPLETER
from release.plugin import EXECUTABLE, NAME, format_plugin, pack_plugin
from tests.kit.programs import program

URI = "https://example.org/switchback/releases/download/v1.2.3/kubectl-switchback-1.2.3.tar.gz"
DIGEST = "0" * 64
ZIPAPP = b"#!/usr/bin/env python3\n"


def judged(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What krew's own judge says of a manifest, which it wants under the plugin's name."""
    file = folder / f"{NAME}.yaml"
    file.write_text(text, encoding="utf-8")
    command = [program("validate-krew-manifest"), f"-manifest={file}", "-skip-install"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.peer("validate-krew-manifest")
def test_krew_accepts_the_manifest(tmp_path: Path) -> None:
    done = judged(format_plugin("1.2.3", uri=URI, sha256=DIGEST), tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.peer("validate-krew-manifest")
@pytest.mark.parametrize(
    ("before", "after"),
    [(f"name: {NAME}", "name: other"), ("version: v1.2.3", "version: 1.2.3"), (DIGEST, "0"), ("bin: ", "binary: ")],
    ids=["another name", "no v before the version", "no digest", "an unknown field"],
)
def test_krew_refuses_a_spoiled_one(before: str, after: str, tmp_path: Path) -> None:
    text = format_plugin("1.2.3", uri=URI, sha256=DIGEST)
    assert before in text
    assert judged(text.replace(before, after), tmp_path).returncode != 0


def installed(archive: bytes, sha256: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What krew says while it installs an archive into `folder`/krew by a manifest with this digest."""
    manifest, file = folder / f"{NAME}.yaml", folder / "plugin.tar.gz"
    manifest.write_text(format_plugin("1.2.3", uri=URI, sha256=sha256), encoding="utf-8")
    file.write_bytes(archive)
    command = [program("krew"), "install", f"--manifest={manifest}", f"--archive={file}"]
    environment = {"HOME": str(folder), "KREW_ROOT": str(folder / "krew"), "KREW_NO_UPGRADE_CHECK": "1"}
    environment["PATH"] = f"{folder / 'krew/bin'}:{os.defpath}"
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL, timeout=60
    )


@pytest.mark.peer("krew")
def test_krew_installs_the_archive_as_a_program_with_the_name_that_kubectl_seeks(tmp_path: Path) -> None:
    archive = pack_plugin(b"#!/bin/sh\necho played as $0\n", b"the licence", epoch=1_700_000_000)
    done = installed(archive, hashlib.sha256(archive).hexdigest(), tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"~/.local/bin/{COMPLETER}" in done.stderr  # the caveats
    link = tmp_path / "krew/bin" / EXECUTABLE
    assert subprocess.run([link], capture_output=True, text=True, check=True).stdout == f"played as {link}\n"
    assert (link.resolve().parent / "LICENSE").read_text(encoding="utf-8") == "the licence"


@pytest.mark.peer("krew")
@pytest.mark.parametrize(
    ("archive", "sha256", "reason"),
    [
        (pack_plugin(ZIPAPP, b"", epoch=1), DIGEST, "checksum does not match"),
        (ZIPAPP, hashlib.sha256(ZIPAPP).hexdigest(), "mime type"),
    ],
    ids=["another digest", "no archive"],
)
def test_krew_installs_nothing_that_the_manifest_does_not_describe(
    archive: bytes, sha256: str, reason: str, tmp_path: Path
) -> None:
    done = installed(archive, sha256, tmp_path)
    assert done.returncode != 0
    assert reason in done.stderr
    assert not (tmp_path / "krew/bin" / EXECUTABLE).exists()


def test_the_manifest_names_both_processors_and_one_archive() -> None:
    spec = yaml.safe_load(format_plugin("1.2.3", uri=URI, sha256=DIGEST))["spec"]
    assert spec["version"] == "v1.2.3"
    assert spec["homepage"] == "https://example.org/switchback"
    assert len(spec["shortDescription"]) <= 50
    assert [one["selector"]["matchLabels"] for one in spec["platforms"]] == [
        {"os": "linux", "arch": "amd64"},
        {"os": "linux", "arch": "arm64"},
    ]
    assert {(one["uri"], one["sha256"], one["bin"]) for one in spec["platforms"]} == {(URI, DIGEST, EXECUTABLE)}


def test_the_caveats_say_what_krew_does_not_do() -> None:
    caveats = yaml.safe_load(format_plugin("1.2.3", uri=URI, sha256=DIGEST))["spec"]["caveats"]
    assert "Python 3.11 to 3.14 as python3" in caveats
    # krew links one program; the guide has the same line.
    link = f'ln -s "$(command -v {EXECUTABLE})" ~/.local/bin/{COMPLETER}'
    assert f"\n  {link}\n" in caveats
    assert f"\n{link}\n" in (Path(__file__).parents[2] / "docs/pages/standalone.md").read_text(encoding="utf-8")


def test_the_archive_has_the_executable_and_the_licence() -> None:
    with tarfile.open(fileobj=io.BytesIO(pack_plugin(ZIPAPP, b"the licence", epoch=1_700_000_000))) as archive:
        members = {one.name: one for one in archive}
        assert {name: (one.mode, one.mtime, one.uid) for name, one in members.items()} == {
            "LICENSE": (0o644, 1_700_000_000, 0),
            EXECUTABLE: (0o755, 1_700_000_000, 0),
        }
        content = archive.extractfile(EXECUTABLE)
        assert content is not None
        assert content.read() == ZIPAPP


def test_equal_input_gives_equal_octets() -> None:
    assert pack_plugin(ZIPAPP, b"", epoch=1) == pack_plugin(ZIPAPP, b"", epoch=1)
    assert pack_plugin(ZIPAPP, b"", epoch=1) != pack_plugin(ZIPAPP, b"", epoch=2)
